//! The keeper's loop.

use std::collections::HashSet;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode as FileMode, OFlags};
use rustix::process::{Pid, Resource, Rlimit, getrlimit, setrlimit};

use super::client::{EXIT_HELD, Mode};
use super::daemon::Daemon;
use super::peers::Peer;
use super::restart::Restart;
use super::starter::Starter;
use super::{announcement, names};
use crate::{cgroup, clock};
use homing_sys::presence::{self, Identity, SETTLE_MS};
use homing_sys::private::PrivateHome;
use homing_sys::{boot, home, sys};

/// A keeper at work.
pub(super) struct Keeper {
    pub(super) home: PathBuf,
    pub(super) mode: Mode,
    pub(super) folder: OwnedFd,
    pub(super) lock: OwnedFd,
    pub(super) listener: OwnedFd,
    /// Which file its name must mean.
    pub(super) bound: Option<Identity>,
    /// Readable when names in the home come and go; none where the system has no more of these.
    pub(super) changes: Option<OwnedFd>,
    /// When to look whether lock and socket are still there.
    pub(super) look_at: Option<i64>,
    /// Another keeper has the lock by now.
    pub(super) displaced: bool,
    pub(super) signals: OwnedFd,
    pub(super) peers: Vec<Peer>,
    pub(super) shims: HashSet<u32>,
    pub(super) daemon: Option<Daemon>,
    pub(super) restart: Restart,
    pub(super) restart_at: Option<i64>,
    /// A shim died unnaturally: its children may be ours now.
    pub(super) orphans: bool,
    /// Who started this process, until somebody has said what is wanted of it.
    pub(super) starter: Option<Starter>,
    pub(super) boot_id: String,
}

/// Runs as the keeper of a home; the process's whole life. The exit code says what became of it.
pub(crate) fn run(home: &Path, mode: Mode, starter: Option<u32>) -> i32 {
    // A descriptor that the starter forgot to mark (a lock, a pipe somebody reads to its end) must not live as long as we do.
    sys::close_range(3, u32::MAX, false);
    let keeper = match Keeper::open(home, mode, Starter::find(starter)) {
        Ok(Some(keeper)) => keeper,
        Ok(None) => return EXIT_HELD,
        Err(error) => {
            complain(&format!("{}: {error}", home.display()));
            return 1;
        }
    };
    // Whoever started us waits for this process; the one that goes on is nobody's child.
    match sys::fork() {
        Ok(sys::Fork::Parent(_)) => sys::exit_now(0),
        Ok(sys::Fork::Child) => {}
        Err(error) => {
            complain(&error.to_string());
            return 1;
        }
    }
    keeper.detach();
    keeper.serve();
    0
}

/// Stack and descriptors that suffice, also for tasks whose submitter named no limits. More would change how such tasks run.
const ENOUGH: [(Resource, u64); 2] = [(Resource::Stack, 8 << 20), (Resource::Nofile, 4096)];

/// Descriptors that keeper and daemon need at the least.
const LEAST_FILES: u64 = 32;

/// A keeper that can never have what it needs would be in the way of everybody who comes after its starter.
fn fit() -> io::Result<()> {
    match getrlimit(Resource::Nofile).maximum {
        Some(most) if most < LEAST_FILES => {
            let why = format!(
                "the hard limit of open files is {most} here, and a daemon needs {LEAST_FILES}: start it from elsewhere"
            );
            Err(io::Error::other(why))
        }
        Some(_) | None => Ok(()),
    }
}

/// The limits of whoever started us are not those of everybody who comes later: each is raised as far as we may.
fn raise_limits() {
    let raise = |resource, wanted: Option<u64>| {
        let Rlimit { current, maximum } = getrlimit(resource);
        let wanted = match (wanted, maximum) {
            (Some(wanted), Some(maximum)) => Some(wanted.min(maximum)),
            (wanted, maximum) => wanted.or(maximum),
        };
        if current.is_some_and(|current| wanted.is_none_or(|wanted| current < wanted)) {
            let _ = setrlimit(resource, Rlimit { current: wanted, maximum });
        }
    };
    let kept = [
        Resource::Cpu,
        Resource::Fsize,
        Resource::Data,
        Resource::As,
        Resource::Rss,
        Resource::Nproc,
        Resource::Memlock,
        Resource::Locks,
        Resource::Sigpending,
        Resource::Msgqueue,
    ];
    for resource in kept {
        raise(resource, None);
    }
    for (resource, enough) in ENOUGH {
        raise(resource, Some(enough));
    }
}

/// To whoever started us; this is the only thing the keeper ever prints.
fn complain(text: &str) {
    let _ = rustix::io::write(rustix::stdio::stderr(), text.as_bytes());
}

impl Keeper {
    /// Takes the lock and the socket; none if another keeper has them.
    fn open(home: &Path, mode: Mode, starter: Starter) -> io::Result<Option<Self>> {
        sys::reset_signals();
        sys::ignore_signals();
        rustix::process::umask(FileMode::from_raw_mode(0o077));
        fit()?;
        let folder = PrivateHome::open(home)?.into_folder();
        let Some(lock) = names::lock(&folder)? else { return Ok(None) };
        let listener = names::bind(&folder)?;
        let bound = presence::named(&folder, home::KEEPER_SOCKET);
        let signals = sys::child_signal()?;
        Ok(Some(Self {
            home: home.to_owned(),
            mode,
            folder,
            lock,
            bound,
            changes: presence::changes(home).ok(),
            look_at: None,
            displaced: false,
            listener,
            signals,
            peers: Vec::new(),
            shims: HashSet::new(),
            daemon: None,
            restart: Restart::default(),
            restart_at: None,
            orphans: false,
            starter: Some(starter),
            // In records it is for people; nothing is decided by it.
            boot_id: boot::id().unwrap_or_default(),
        }))
    }

    /// Out of the starter's session, terminal and cgroup, with none of its descriptors.
    fn detach(&self) {
        announcement::announce(&self.lock);
        let _ = rustix::process::setsid();
        let _ = rustix::process::chdir("/");
        let _ = rustix::process::set_child_subreaper(Pid::from_raw(1));
        let _ = rustix::thread::set_name(c"homing-keeper");
        raise_limits();
        let _ = sys::set_rlimit(libc::RLIMIT_CORE, Some(0), None);
        if let Ok(null) = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, FileMode::empty()) {
            let _ = rustix::stdio::dup2_stdin(&null);
            let _ = rustix::stdio::dup2_stdout(&null);
            let _ = rustix::stdio::dup2_stderr(&null);
        }
        if self.mode == Mode::Daemon
            && let Some(base) = cgroup::base(&self.home)
        {
            let _ = cgroup::detach(&base);
        }
    }

    fn serve(mut self) {
        loop {
            self.look_at_starter();
            if self.is_done() {
                break;
            }
            self.poll_once();
            if self.restart_at.is_some_and(|at| clock::monotonic() >= at) {
                self.restart_daemon();
            }
            if self.look_at.is_some_and(|at| clock::monotonic() >= at) {
                self.look_at_names();
            }
            if self.orphans {
                self.end_orphans();
            }
        }
        // By then it may be the next keeper's.
        if presence::named(&self.folder, home::KEEPER_SOCKET) == self.bound {
            let _ = homing_sys::atomic_file::remove_at(&self.folder, home::KEEPER_SOCKET);
        }
        if let Some(base) = cgroup::base(&self.home).filter(|_| !self.displaced) {
            cgroup::leave(&base);
        }
    }

    /// Nothing to keep: no shim, no daemon now or soon, nobody who asks.
    fn is_done(&self) -> bool {
        // A keeper that was just started waits for the first word, for a while; one that had it leaves after the last.
        let expecting = self.starter.as_ref().is_some_and(Starter::may_still_come);
        let idle = self.shims.is_empty()
            && self.daemon.is_none()
            && self.restart_at.is_none()
            && self.peers.is_empty();
        self.displaced || (idle && (!expecting || !self.folder_is_there()))
    }

    /// Whether the home is still the folder that this keeper locked: one that was deleted, or moved away, is not served at its old place.
    pub(super) fn folder_is_there(&self) -> bool {
        let (ours, there) = (rustix::fs::fstat(&self.folder), rustix::fs::lstat(&self.home));
        matches!((ours, there), (Ok(ours), Ok(there)) if ours.st_ino == there.st_ino && ours.st_dev == there.st_dev)
    }

    fn poll_once(&mut self) {
        let first_word = self.starter.as_ref().map(Starter::deadline);
        let next = [self.restart_at, first_word, self.look_at].into_iter().flatten().min();
        let timeout = next.map(|at| {
            let wait = (at - clock::monotonic()).max(0);
            Timespec { tv_sec: wait / 1000, tv_nsec: wait % 1000 * 1_000_000 }
        });
        let mut fds =
            vec![PollFd::new(&self.signals, PollFlags::IN), PollFd::new(&self.listener, PollFlags::IN)];
        let watched = self.daemon.as_ref().and_then(|daemon| daemon.pidfd.as_ref());
        let foreign = watched.map(|pidfd| {
            fds.push(PollFd::new(pidfd, PollFlags::IN));
            fds.len() - 1
        });
        let changes = self.changes.as_ref().map(|changes| {
            fds.push(PollFd::new(changes, PollFlags::IN));
            fds.len() - 1
        });
        // Its end is looked at by the loop.
        if let Some(pidfd) = self.starter.as_ref().and_then(Starter::watched) {
            fds.push(PollFd::from_borrowed_fd(pidfd, PollFlags::IN));
        }
        let first_peer = fds.len();
        fds.extend(self.peers.iter().map(|peer| PollFd::new(&peer.connection, PollFlags::IN)));
        if poll(&mut fds, timeout.as_ref()).is_err() {
            return;
        }
        let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        let is_ready = |at: usize| ready.get(at).copied().unwrap_or(false);
        let foreign_daemon_gone = foreign.is_some_and(is_ready);
        let names_changed = changes.is_some_and(is_ready);
        // Backwards, so that a peer that is taken out does not move those still to come.
        for number in (0..self.peers.len()).rev() {
            if is_ready(first_peer + number) {
                self.hear(number);
            }
        }
        if is_ready(0) {
            self.reap();
        }
        if foreign_daemon_gone {
            self.daemon_died();
        }
        if is_ready(1) {
            self.accept();
        }
        if let Some(changes) = self.changes.as_ref().filter(|_| names_changed) {
            presence::drain(changes);
            self.look_at = Some(clock::monotonic() + SETTLE_MS.cast_signed());
        }
    }
}
