//! The keeper's loop.

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FlockOperation, Mode as FileMode, OFlags};
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::announcement;
use super::client::{EXIT_HELD, Mode};
use super::connection::Connection;
use super::restart::Restart;
use super::starter::Starter;
use crate::presence::{self, Identity, SETTLE_MS};
use crate::wire::{FromKeeper, ToKeeper};
use crate::{boot, cgroup, clock, confine, dispatch, folder, home, process, shim, sys};

/// Between two tries to make a socket again that was removed.
const REBIND_MS: i64 = 10_000;

/// Between two looks at a queue that could not be taken from.
const SHORTAGE_MS: i64 = 50;

/// Somebody connected.
struct Peer {
    connection: Connection,
    pid: u32,
    role: Role,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    /// Has not said.
    Unknown,
    /// The engine of this home.
    Engine,
    /// Waits for a daemon.
    Waiting,
}

/// The daemon's process, whoever started it.
struct Daemon {
    pid: u32,
    /// For one that is not our child: readable when it is gone.
    pidfd: Option<OwnedFd>,
    since: i64,
    ready: bool,
    leaving: bool,
    complaint: Option<String>,
}

struct Keeper {
    home: PathBuf,
    mode: Mode,
    folder: OwnedFd,
    lock: OwnedFd,
    listener: OwnedFd,
    /// Which file its name must mean.
    bound: Option<Identity>,
    /// Readable when names in the home come and go; none where the system has no more of these.
    changes: Option<OwnedFd>,
    /// When to look whether lock and socket are still there.
    look_at: Option<i64>,
    /// Another keeper has the lock by now.
    displaced: bool,
    signals: OwnedFd,
    peers: Vec<Peer>,
    shims: HashSet<u32>,
    daemon: Option<Daemon>,
    restart: Restart,
    restart_at: Option<i64>,
    /// A shim died unnaturally: its children may be ours now.
    orphans: bool,
    /// Who started this process, until somebody has said what is wanted of it.
    starter: Option<Starter>,
    boot_id: String,
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
        let folder = folder::open(home)?;
        let Some(lock) = lock(&folder)? else { return Ok(None) };
        let listener = bind(&folder)?;
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
            boot_id: boot::id(),
        }))
    }

    /// Out of the starter's session, terminal and cgroup, with none of its descriptors.
    fn detach(&self) {
        announcement::announce(&self.lock);
        let _ = rustix::process::setsid();
        let _ = rustix::process::chdir("/");
        let _ = rustix::process::set_child_subreaper(Pid::from_raw(1));
        let _ = rustix::thread::set_name(c"homing-keeper");
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
                self.start_daemon();
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
            let _ = folder::remove(&self.folder, home::KEEPER_SOCKET);
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
    fn folder_is_there(&self) -> bool {
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

    /// Somebody may have removed our lock or our socket. The lock decides who is the keeper: one that has it makes its socket again.
    fn look_at_names(&mut self) {
        self.look_at = None;
        if !self.folder_is_there() {
            return;
        }
        if presence::named(&self.folder, home::KEEPER_LOCK) != presence::held(&self.lock) {
            match lock(&self.folder) {
                Ok(Some(taken)) => {
                    self.lock = taken;
                    announcement::announce(&self.lock);
                }
                Ok(None) => self.displaced = true,
                Err(_) => {}
            }
        }
        if !self.displaced && presence::named(&self.folder, home::KEEPER_SOCKET) != self.bound {
            match bind(&self.folder) {
                Ok(listener) => {
                    self.listener = listener;
                    self.bound = presence::named(&self.folder, home::KEEPER_SOCKET);
                }
                Err(_) => self.look_at = Some(clock::monotonic() + REBIND_MS),
            }
        }
    }

    fn accept(&mut self) {
        let socket = match net::accept_with(&self.listener, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
            Ok(socket) => socket,
            Err(Errno::AGAIN | Errno::INTR) => return,
            // No descriptor to be had: the connection stays in the queue, and looking at once again would not help.
            Err(_) => return clock::pause(SHORTAGE_MS),
        };
        if let Some(pid) = confine::trusted_peer(&socket) {
            self.peers.push(Peer { connection: Connection::new(socket), pid, role: Role::Unknown });
        }
    }

    fn hear(&mut self, number: usize) {
        let Some(peer) = self.peers.get(number) else { return };
        match peer.connection.receive::<ToKeeper>() {
            Ok(Some(received)) => {
                if let Some(message) = received.message {
                    self.obey(number, message, received.descriptors);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Ok(None) | Err(_) => {
                self.peers.swap_remove(number);
            }
        }
    }

    fn obey(&mut self, number: usize, message: ToKeeper, descriptors: Vec<OwnedFd>) {
        let Some(peer) = self.peers.get_mut(number) else { return };
        self.starter = None;
        match message {
            ToKeeper::Engine => {
                peer.role = Role::Engine;
                let _ = peer.connection.send(&FromKeeper::Welcome(std::process::id()), &[]);
                let pid = peer.pid;
                self.meet_engine(pid);
            }
            ToKeeper::Launch(nonce) => {
                if peer.role == Role::Engine
                    && let Ok([socket, folder]) = <[OwnedFd; 2]>::try_from(descriptors)
                    && let Err(error) = self.fork_shim(socket, folder)
                    && let Some(peer) = self.peers.get(number)
                {
                    let code = error.raw_os_error().unwrap_or(libc::EAGAIN);
                    let _ = peer.connection.send(&FromKeeper::LaunchFailed(nonce, code), &[]);
                }
            }
            ToKeeper::Ready => {
                if let Some(daemon) = &mut self.daemon {
                    daemon.ready = true;
                }
                self.answer_waiting(&FromKeeper::Running);
            }
            ToKeeper::CannotStart(reason) => {
                if let Some(daemon) = &mut self.daemon {
                    daemon.complaint = Some(reason);
                }
                // The end of the line says that it was heard: until then the daemon stays, so that its words come before its death.
                self.peers.swap_remove(number);
            }
            ToKeeper::Leaving => {
                if let Some(daemon) = &mut self.daemon {
                    daemon.leaving = true;
                }
            }
            ToKeeper::Start => {
                peer.role = Role::Waiting;
                self.ensure_daemon();
            }
        }
    }

    /// An engine said who it is: our child, or one that was there before us.
    fn meet_engine(&mut self, pid: u32) {
        if self.mode == Mode::Embedded || self.daemon.as_ref().is_some_and(|daemon| daemon.pid == pid) {
            return;
        }
        let pidfd = i32::try_from(pid)
            .ok()
            .and_then(Pid::from_raw)
            .and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        if pidfd.is_some() {
            self.restart_at = None;
            let since = clock::monotonic();
            self.daemon = Some(Daemon { pid, pidfd, since, ready: true, leaving: false, complaint: None });
        }
    }

    fn answer_waiting(&mut self, answer: &FromKeeper) {
        self.peers.retain(|peer| {
            if peer.role == Role::Waiting {
                let _ = peer.connection.send(answer, &[]);
            }
            peer.role != Role::Waiting
        });
    }

    // ---- the daemon ---------------------------------------------------------------------------------------------------------

    fn ensure_daemon(&mut self) {
        if self.mode == Mode::Embedded {
            self.answer_waiting(&FromKeeper::NotRunning("this home is served by an embedded engine".into()));
            return;
        }
        match &self.daemon {
            Some(daemon) if daemon.ready && !daemon.leaving => self.answer_waiting(&FromKeeper::Running),
            // It is on its way, in or out: whoever waits is answered then.
            Some(_) => {}
            None => {
                self.restart.forgive();
                self.start_daemon();
            }
        }
    }

    /// Whoever started us may die before it says what for. All who do want a daemon, and some were it.
    fn look_at_starter(&mut self) {
        let Some(starter) = &self.starter else { return };
        let gone = starter.is_gone();
        if gone || !starter.may_still_come() {
            self.starter = None;
        }
        if gone && self.mode == Mode::Daemon && self.daemon.is_none() && !home::is_stopped(&self.home) {
            self.start_daemon();
        }
    }

    fn start_daemon(&mut self) {
        self.restart_at = None;
        if !self.folder_is_there() {
            self.answer_waiting(&FromKeeper::NotRunning("the home folder is gone".into()));
            return;
        }
        let _ = folder::remove(&self.folder, home::STOPPED);
        match self.spawn_daemon() {
            Ok(pid) => {
                let since = clock::monotonic();
                self.daemon =
                    Some(Daemon { pid, pidfd: None, since, ready: false, leaving: false, complaint: None });
            }
            Err(error) => {
                self.answer_waiting(&FromKeeper::NotRunning(format!(
                    "the daemon could not be executed: {error}"
                )));
                self.restart_at = self.restart.after_death(false, 0).map(|pause| clock::monotonic() + pause);
            }
        }
    }

    fn spawn_daemon(&self) -> io::Result<u32> {
        // The program that the home records may be newer than this keeper's own.
        let program = match home::recorded_program(&self.home).filter(|program| program.exists()) {
            Some(program) => program,
            None => std::env::current_exe()?,
        };
        let mut command = Command::new(program);
        command.arg(dispatch::DAEMON).arg(&self.home).stdin(Stdio::null()).stdout(Stdio::null());
        let log = File::options().append(true).create(true).open(self.home.join(home::LOG));
        command.stderr(log.map_or_else(|_| Stdio::null(), Stdio::from));
        Ok(command.spawn()?.id())
    }

    fn daemon_died(&mut self) {
        let Some(daemon) = self.daemon.take() else { return };
        let lived = clock::monotonic() - daemon.since;
        let waiting = self.peers.iter().any(|peer| peer.role == Role::Waiting);
        if daemon.leaving {
            // Stopped on purpose, unless somebody has asked for it again meanwhile.
            if waiting {
                self.start_daemon();
            }
            return;
        }
        let stopped = home::is_stopped(&self.home);
        let pause = if stopped { None } else { self.restart.after_death(daemon.ready, lived) };
        self.restart_at = pause.map(|pause| clock::monotonic() + pause);
        // One that was killed as it started is tried again before anybody is told; one that said why it cannot is believed.
        let hopeless = daemon.complaint.is_some() || pause.is_none() || self.restart.is_failing();
        if !daemon.ready && waiting && hopeless {
            let reason =
                daemon.complaint.unwrap_or_else(|| "it died while it started; daemon.log may say why".into());
            self.answer_waiting(&FromKeeper::NotRunning(reason));
        }
    }

    // ---- shims --------------------------------------------------------------------------------------------------------------

    fn fork_shim(&mut self, socket: OwnedFd, folder: OwnedFd) -> io::Result<()> {
        match sys::fork()? {
            sys::Fork::Parent(pid) => {
                self.shims.insert(pid);
                Ok(())
            }
            sys::Fork::Child => {
                sys::close_all_but(socket.as_fd(), folder.as_fd());
                let _ = rustix::process::setsid();
                let _ = rustix::process::set_child_subreaper(Pid::from_raw(1));
                let _ = rustix::thread::set_name(c"homing-shim");
                shim::run(socket, folder, &self.boot_id);
                sys::exit_now(0)
            }
        }
    }

    fn reap(&mut self) {
        let mut drain = [0; 128];
        let _ = rustix::io::read(&self.signals, &mut drain);
        while let sys::Wait::Ended(reaped) = sys::wait() {
            if self.daemon.as_ref().is_some_and(|daemon| daemon.pid == reaped.pid && daemon.pidfd.is_none()) {
                self.daemon_died();
            } else if self.shims.remove(&reaped.pid) {
                self.orphans |= reaped.end != sys::End::Code(0);
            } else {
                // An orphan of a killed shim, whose own children are ours now.
                self.orphans = true;
            }
        }
    }

    /// Ends every child that is neither shim nor daemon: what a killed shim left behind. Their ends come back through `reap`.
    fn end_orphans(&mut self) {
        self.orphans = false;
        let me = std::process::id();
        let daemon = self.daemon.as_ref().map(|daemon| daemon.pid);
        for child in process::all().into_iter().filter(|child| child.parent == me) {
            if !self.shims.contains(&child.pid) && Some(child.pid) != daemon {
                process::signal(&child, libc::SIGKILL);
            }
        }
    }
}

/// The keeper's lock; none if another keeper has it.
fn lock(folder: &OwnedFd) -> io::Result<Option<OwnedFd>> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let lock = rustix::fs::openat(folder, home::KEEPER_LOCK, flags, FileMode::RUSR | FileMode::WUSR)?;
    match rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(lock)),
        Err(Errno::WOULDBLOCK) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The keeper's socket: bound under another name and renamed, so that it is there whole or not at all.
fn bind(folder: &OwnedFd) -> io::Result<OwnedFd> {
    const TEMPORARY: &str = "keeper.sock.new";
    folder::remove(folder, TEMPORARY)?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let listener = net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
    let path = format!("/proc/self/fd/{}/{TEMPORARY}", folder.as_raw_fd());
    net::bind(&listener, &SocketAddrUnix::new(path)?)?;
    net::listen(&listener, 128)?;
    rustix::fs::renameat(folder, TEMPORARY, folder, home::KEEPER_SOCKET)?;
    Ok(listener)
}
