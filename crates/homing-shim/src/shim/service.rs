//! The shim's loop.

use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::capture::{REST_MS, Source};
use super::channel::Channel;
use super::child::{self, Child, StartFailure};
use super::ending::{DRAIN_MS, Ended, Phase, QUIET_MS, Safety};
use super::input::Input;
use super::launch;
use super::orders::main_process;
use super::pause::Pause;
use super::stop::Stop;
use super::vigil::Vigil;
use crate::cgroup::{self, Group};
use crate::clock::{self, Wall};
use crate::output::{SizeWriter, Writer};
use crate::record;
use crate::wire::{FromShim, Launch, ToShim};
use homing_sys::sys;

/// A task that runs for this long may run for hours, and what its start took is given back.
const TRIM_AFTER_MS: i64 = 100;

/// One attempt, and all that its shim knows of it.
pub(super) struct Service {
    pub(super) folder: OwnedFd,
    pub(super) launch: Launch,
    pub(super) boot_id: String,
    pub(super) channel: Option<Channel>,
    pub(super) listener: Option<OwnedFd>,
    /// When to try again what the disk or the system would not give.
    pub(super) retry_at: Option<i64>,
    /// Who brings the daemon back, while none is there.
    pub(super) vigil: Vigil,
    /// A daemon was asked for before this process could leave.
    pub(super) revived: bool,
    pub(super) signals: OwnedFd,
    pub(super) group: Option<Group>,
    pub(super) output: Writer,
    pub(super) sizes: SizeWriter,
    pub(super) marker: Option<File>,
    pub(super) sources: Vec<Source>,
    /// Room for large reads, while there are any.
    pub(super) buffer: Option<Box<[u8]>>,
    pub(super) input: Input,
    /// The pipe that tells whether the command was executed.
    pub(super) status: Option<OwnedFd>,
    pub(super) failure: Option<StartFailure>,
    /// There is no command because a stop came first.
    pub(super) forestalled: bool,
    pub(super) pid: Option<u32>,
    pub(super) wall: Wall,
    pub(super) cloned_at: i64,
    pub(super) started_at: Option<i64>,
    pub(super) timeout_at: Option<i64>,
    /// When to give back what the start took: most tasks are over sooner.
    pub(super) trim_at: Option<i64>,
    pub(super) stop: Option<Stop>,
    /// The tree stands still, or is about to.
    pub(super) pause: Option<Pause>,
    /// When it last went on, in wall-clock milliseconds.
    pub(super) resumed_at: Option<i64>,
    pub(super) stopped_by: Option<String>,
    pub(super) ended: Option<Ended>,
    /// The kernel said that there are no children.
    pub(super) tree_gone: bool,
    pub(super) watch: Option<u64>,
    pub(super) phase: Phase,
}

/// Runs one attempt over the socket and folder that the keeper handed over. Returns when there is nothing left to do.
pub(crate) fn run(socket: OwnedFd, folder: OwnedFd, boot_id: &str) {
    let mut channel = Channel::new(socket);
    let Some((launch, early)) = launch::receive(&mut channel) else { return };
    // What this process cannot do without comes first: where it is not to be had, the attempt was not begun.
    let (Ok(signals), Ok(for_output)) = (sys::child_signal(), folder.try_clone()) else { return };
    let means = Means { channel, folder, signals, for_output };
    let marker = match launch::begin(&means.folder) {
        Ok(Ok(marker)) => marker,
        Ok(Err(refusal)) => {
            let mut channel = means.channel;
            let _ = channel.send(&FromShim::Refused(refusal));
            return;
        }
        Err(error) => {
            let failure = StartFailure::other(format!("the attempt's folder could not be used: {error}"));
            Service::new(means, launch, None, boot_id).serve_failed(failure);
            return;
        }
    };
    record::reserve(&marker);
    let mut service = Service::new(means, launch, Some(marker), boot_id);
    let (stops, others): (Vec<_>, Vec<_>) =
        early.into_iter().partition(|message| matches!(message, ToShim::Stop(_)));
    match stops.into_iter().next() {
        Some(ToShim::Stop(request)) => service.forestall(request.by),
        Some(_) | None => service.start(),
    }
    for message in others {
        service.obey(message);
    }
    service.serve();
    service.leave();
}

/// What a shim is made of before it begins.
struct Means {
    channel: Channel,
    folder: OwnedFd,
    signals: OwnedFd,
    for_output: OwnedFd,
}

impl Service {
    fn new(means: Means, launch: Launch, marker: Option<File>, boot_id: &str) -> Self {
        let Means { channel, folder, signals, for_output } = means;
        let wall = Wall::read();
        let now = clock::monotonic();
        Self {
            output: Writer::new(for_output, launch.max_output),
            sizes: SizeWriter::default(),
            signals,
            folder,
            channel: Some(channel),
            listener: None,
            retry_at: None,
            vigil: Vigil::default(),
            revived: false,
            group: None,
            marker,
            boot_id: boot_id.to_owned(),
            sources: Vec::new(),
            buffer: None,
            input: Input::new(None, false),
            status: None,
            failure: None,
            forestalled: false,
            pid: None,
            wall,
            cloned_at: now,
            started_at: None,
            timeout_at: None,
            trim_at: None,
            stop: None,
            pause: None,
            resumed_at: None,
            stopped_by: None,
            ended: None,
            tree_gone: false,
            watch: None,
            phase: Phase::Running,
            launch,
        }
    }

    pub(super) fn start(&mut self) {
        let cgroup = self.launch.cgroup.as_ref().and_then(|base| {
            let base = Path::new(OsStr::from_bytes(base));
            Group::make(base, &cgroup::name(&self.launch.task, self.launch.attempt)).ok()
        });
        let (group, fd) = cgroup.map_or((None, None), |(group, fd)| (Some(group), Some(fd)));
        self.group = group;
        self.cloned_at = clock::monotonic();
        // A cgroup that cannot be cloned into (an old kernel, a frozen parent) is done without.
        let spawned = child::spawn(&self.launch, fd.as_ref().map(AsFd::as_fd))
            .or_else(|failure| if fd.is_some() { child::spawn(&self.launch, None) } else { Err(failure) });
        match spawned {
            Ok(Child { pid, status, sources, input }) => {
                self.pid = Some(pid);
                self.status = status;
                self.sources = sources.into_iter().map(|(fd, stream)| Source::new(fd, stream)).collect();
                self.input = Input::new(input, self.launch.pty);
                // Before anything is taken that was printed for it.
                if let Some(size) = self.launch.pty_size.filter(|_| self.launch.pty) {
                    self.sizes.note(&self.folder, 0, size);
                }
            }
            Err(failure) => {
                self.failure = Some(failure);
                self.tree_gone = true;
            }
        }
        // The shim may wait for hours: it keeps what it needs to know and lets go of the rest.
        self.launch.wipe();
        self.launch.rlimits = Vec::new();
    }

    /// The end was asked for before the beginning: the command is not executed.
    fn forestall(&mut self, by: Option<String>) {
        self.forestalled = true;
        self.stopped_by = by;
        self.failure = Some(StartFailure::other("stopped before it was started".to_owned()));
        self.tree_gone = true;
    }

    pub(super) fn serve_failed(mut self, failure: StartFailure) {
        self.failure = Some(failure);
        self.tree_gone = true;
        self.serve();
        self.leave();
    }

    pub(super) fn serve(&mut self) {
        loop {
            self.advance();
            if self.is_done() {
                self.take_rest();
                return;
            }
            self.poll_once();
        }
    }

    pub(super) fn poll_once(&mut self) {
        let timeout = self.deadline().map(|at| {
            let wait = (at - clock::monotonic()).max(0);
            Timespec { tv_sec: wait / 1000, tv_nsec: wait % 1000 * 1_000_000 }
        });
        let mut ready = [PollFlags::empty(); 8];
        {
            let mut fds: Vec<PollFd<'_>> = Vec::with_capacity(8);
            let mut slots: Vec<usize> = Vec::with_capacity(8);
            fds.push(PollFd::new(&self.signals, PollFlags::IN));
            slots.push(0);
            if let Some(channel) = &self.channel {
                let flags = if channel.is_pending() { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
                fds.push(PollFd::from_borrowed_fd(channel.as_fd(), flags));
                slots.push(1);
            }
            if let Some(listener) = &self.listener {
                fds.push(PollFd::new(listener, PollFlags::IN));
                slots.push(2);
            }
            if let Some(status) = &self.status {
                fds.push(PollFd::new(status, PollFlags::IN));
                slots.push(3);
            }
            if let Some(fd) = self.input.waits_for_room() {
                fds.push(PollFd::from_borrowed_fd(fd, PollFlags::OUT));
                slots.push(4);
            }
            if let Some(keeper) = self.vigil.watched() {
                fds.push(PollFd::from_borrowed_fd(keeper, PollFlags::IN));
                slots.push(7);
            }
            for (number, source) in self.sources.iter().enumerate().take(2) {
                fds.push(PollFd::new(&source.fd, PollFlags::IN));
                slots.push(5 + number);
            }
            if poll(&mut fds, timeout.as_ref()).is_err() {
                return;
            }
            for (slot, fd) in slots.iter().zip(&fds) {
                if let Some(flags) = ready.get_mut(*slot) {
                    *flags = fd.revents();
                }
            }
        }
        let [signals, channel, listener, status, input, first, second, keeper] = ready;
        // Output before the end: what was written before an exit is taken before the exit is seen.
        self.take_output([first, second]);
        if !status.is_empty() {
            self.read_status();
        }
        if !signals.is_empty() {
            self.reap();
        }
        if !channel.is_empty() {
            self.hear();
        }
        if !listener.is_empty() {
            self.accept();
        }
        if !keeper.is_empty() {
            self.keep_vigil();
        }
        if !input.is_empty() {
            let answers = self.input.pump();
            self.tell_all(&answers);
        }
    }

    /// The next moment at which something is due by itself.
    pub(super) fn deadline(&self) -> Option<i64> {
        let stop = self.stop.as_ref().filter(|_| !self.tree_gone).map(Stop::deadline);
        let timed = self.ended.is_none() && self.stop.is_none() && self.pause.is_none();
        let timeout = self.timeout_at.filter(|_| timed);
        let pause = self.pause.as_ref().map(Pause::deadline);
        let drain = match &self.phase {
            Phase::Draining { since, last_output } => Some((since + DRAIN_MS).min(last_output + QUIET_MS)),
            Phase::Told { safety: Safety::Pending { sync_at }, .. } => Some(*sync_at),
            Phase::Running | Phase::Told { .. } => None,
        };
        let rest = self.buffer.as_ref().map(|_| clock::monotonic() + REST_MS);
        let dues = [stop, timeout, pause, drain, rest, self.retry_at, self.trim_at, self.vigil.deadline()];
        dues.into_iter().flatten().min()
    }

    /// The child's word: closed means executed, eight bytes mean that it could not be.
    pub(super) fn read_status(&mut self) {
        let Some(status) = &self.status else { return };
        let mut report = [0; 8];
        match rustix::io::read(status, &mut report) {
            Err(Errno::AGAIN | Errno::INTR) => return,
            Ok(0) | Err(_) => {
                let at = self.wall.now();
                self.started_at = Some(at);
                let limit = self.launch.timeout_ms.map(|limit| i64::try_from(limit).unwrap_or(i64::MAX / 4));
                self.timeout_at = limit.map(|limit| self.cloned_at.saturating_add(limit));
                if let Some(pid) = self.pid {
                    self.tell(&FromShim::Started(pid, at, Some(std::process::id()), Some(true)));
                }
                self.trim_at = Some(clock::monotonic() + TRIM_AFTER_MS);
            }
            Ok(_) => {
                let (program, cwd) = match &self.launch.shown {
                    Some(shown) => (shown.program.clone().into(), shown.cwd.clone().into()),
                    None => {
                        let program =
                            self.launch.argv.first().map(|text| text.as_slice()).unwrap_or_default();
                        (String::from_utf8_lossy(program), String::from_utf8_lossy(&self.launch.cwd))
                    }
                };
                self.failure = Some(child::start_failure(&report, &program, &cwd));
            }
        }
        self.status = None;
        let main = self.pid.filter(|_| self.ended.is_none() && self.failure.is_none());
        if let Some(stop) = &mut self.stop {
            // Until its exec the child ignored what we ignore, so a polite signal that came so early was not heard.
            let main = main_process(main, &self.signals, self.pause.is_some());
            stop.repeat(self.group.as_ref(), main, clock::monotonic());
        }
    }

    /// Takes every ended child: the main process, and orphans that this subreaper inherited.
    pub(super) fn reap(&mut self) {
        let mut drain = [0; 128];
        let _ = rustix::io::read(&self.signals, &mut drain);
        if let Some(pause) = &mut self.pause {
            // A child may have been continued by somebody else.
            pause.look_again();
        }
        loop {
            match sys::wait() {
                sys::Wait::Ended(reaped) => {
                    if Some(reaped.pid) == self.pid && self.ended.is_none() {
                        let cause = self.stop.as_ref().and_then(|stop| stop.cause_of(reaped.end));
                        let now = clock::monotonic();
                        self.ended = Some(Ended {
                            end: reaped.end,
                            max_rss_bytes: reaped.max_rss_bytes,
                            cpu_ms: reaped.cpu_ms,
                            at: now,
                            wall: self.wall.now(),
                            cause,
                        });
                        // Whether it was executed is known before its end is told; its pid is no longer its own.
                        self.read_status();
                        self.sources.iter_mut().for_each(Source::let_go);
                    }
                }
                sys::Wait::Alive => {
                    self.tree_gone = false;
                    return;
                }
                sys::Wait::None => {
                    self.tree_gone = true;
                    return;
                }
            }
        }
    }

    pub(super) fn tell(&mut self, message: &FromShim) {
        if let Some(channel) = &mut self.channel
            && channel.send(message).is_err()
        {
            self.part();
        }
    }

    pub(super) fn tell_all(&mut self, messages: &[FromShim]) {
        for message in messages {
            self.tell(message);
        }
    }
}
