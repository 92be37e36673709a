//! The shim's loop.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use minicbor::bytes::ByteVec;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use rustix::process::Pid;

use super::channel::Channel;
use super::child::{self, Child, StartFailure};
use super::input::Input;
use super::revive;
use super::stop::{self, Cause, Stop};
use crate::cgroup::{self, Group};
use crate::clock::{self, Wall};
use crate::output::{Stream, Taken, Writer};
use crate::record::{self, ExitRecord, Survivor, Verdict};
use crate::wire::{FromShim, Launch, Refusal, Standing, ToShim};
use crate::{confine, folder, output, sys};

/// After the main process's end, a pipe that is silent this long is considered drained.
const QUIET_MS: i64 = 100;
/// And after this long it is, silent or not.
const DRAIN_MS: i64 = 2_000;
/// Moves of output before the loop looks at its other business.
const TURNS: usize = 16;
/// A move of at least this much, twice, earns a pipe more room.
const BUSY: u64 = 60 * 1024;

/// One pipe or terminal.
struct Source {
    fd: OwnedFd,
    stream: Stream,
    busy: u8,
}

/// How the main process ended.
struct Ended {
    end: sys::End,
    max_rss_bytes: u64,
    cpu_ms: u64,
    at: i64,
    wall: i64,
    /// What had been done to it before its end was seen.
    cause: Option<Cause>,
}

/// Where the shim is in its work.
enum Phase {
    /// The main process lives, or its start is not yet known.
    Running,
    /// It has ended; its output is being drained.
    Draining { since: i64, last_output: i64 },
    /// The end was told.
    Told { record: Vec<u8>, durable: bool, confirmed: bool },
}

struct Service {
    folder: OwnedFd,
    launch: Launch,
    boot_id: String,
    channel: Option<Channel>,
    listener: Option<OwnedFd>,
    signals: OwnedFd,
    group: Option<Group>,
    output: Writer,
    marker: Option<File>,
    sources: Vec<Source>,
    input: Input,
    /// The pipe that tells whether the command was executed.
    status: Option<OwnedFd>,
    failure: Option<StartFailure>,
    pid: Option<u32>,
    wall: Wall,
    cloned_at: i64,
    started_at: Option<i64>,
    timeout_at: Option<i64>,
    stop: Option<Stop>,
    stopped_by: Option<String>,
    ended: Option<Ended>,
    /// The kernel said that there are no children.
    tree_gone: bool,
    watch: Option<u64>,
    phase: Phase,
}

/// Runs one attempt over the socket and folder that the keeper handed over. Returns when there is nothing left to do.
pub(crate) fn run(socket: OwnedFd, folder: OwnedFd, boot_id: &str) {
    let mut channel = Channel::new(socket);
    let Some((launch, early)) = receive_launch(&mut channel) else { return };
    let marker = match begin(&folder) {
        Ok(Ok(marker)) => marker,
        Ok(Err(refusal)) => {
            let _ = channel.send(&FromShim::Refused(refusal));
            return;
        }
        Err(error) => {
            let failure = StartFailure { reason: format!("the attempt's folder could not be used: {error}") };
            Service::new(channel, folder, launch, None, boot_id).serve_failed(failure);
            return;
        }
    };
    record::reserve(&marker);
    let mut service = Service::new(channel, folder, launch, Some(marker), boot_id);
    service.start();
    for message in early {
        service.obey(message);
    }
    service.serve();
    service.leave();
}

/// Waits for the launch; beside it, what came with it. If the daemon goes away first, the attempt was never begun.
fn receive_launch(channel: &mut Channel) -> Option<(Launch, Vec<ToShim>)> {
    loop {
        let mut fds = [PollFd::new(channel, PollFlags::IN)];
        match poll(&mut fds, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return None,
        }
        let mut messages = channel.receive().ok()?.into_iter();
        while let Some(message) = messages.next() {
            if let ToShim::Launch(launch) = message {
                // A stop, a question or input may have been sent before this process was there to read the launch.
                return Some((*launch, messages.collect()));
            }
        }
    }
}

/// Lock, then marker: from here on the attempt is this shim's, or it is not run. Keeps P10.
fn begin(folder: &OwnedFd) -> io::Result<Result<File, Refusal>> {
    if !folder::lock(folder)? {
        return Ok(Err(Refusal::Held));
    }
    // It can no longer start a second time: the marker is what its environment was.
    Ok(folder::mark(folder)?.ok_or(Refusal::AlreadyStarted))
}

/// The socket at which a later daemon finds this shim. Named through the folder's descriptor: no path is too long.
fn listen(folder: &OwnedFd) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let listener = net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    let path = format!("/proc/self/fd/{}/{}", folder.as_raw_fd(), folder::SOCKET);
    let address = SocketAddrUnix::new(path)?;
    if net::bind(&listener, &address) == Err(Errno::ADDRINUSE) {
        // Of a shim that was killed before its marker: the lock is ours now.
        folder::remove(folder, folder::SOCKET)?;
        net::bind(&listener, &address)?;
    }
    net::listen(&listener, 4)?;
    Ok(listener)
}

impl Service {
    fn new(channel: Channel, folder: OwnedFd, launch: Launch, marker: Option<File>, boot_id: &str) -> Self {
        let wall = Wall::read();
        let now = clock::monotonic();
        // The writer gets its own descriptor; with none to be had, output is counted and let go.
        let output_folder = folder.try_clone().unwrap_or_else(|_| {
            rustix::fs::open("/dev/null", rustix::fs::OFlags::CLOEXEC, rustix::fs::Mode::empty())
                .unwrap_or_else(|_| sys::exit_now(1))
        });
        Self {
            output: Writer::new(output_folder, launch.max_output),
            signals: sys::child_signal().unwrap_or_else(|_| sys::exit_now(1)),
            folder,
            channel: Some(channel),
            listener: None,
            group: None,
            marker,
            boot_id: boot_id.to_owned(),
            sources: Vec::new(),
            input: Input::new(None, false),
            status: None,
            failure: None,
            pid: None,
            wall,
            cloned_at: now,
            started_at: None,
            timeout_at: None,
            stop: None,
            stopped_by: None,
            ended: None,
            tree_gone: false,
            watch: None,
            phase: Phase::Running,
            launch,
        }
    }

    fn start(&mut self) {
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
                let source = |(fd, stream)| Source { fd, stream, busy: 0 };
                self.sources = sources.into_iter().map(source).collect();
                self.input = Input::new(input, self.launch.pty);
            }
            Err(failure) => {
                self.failure = Some(failure);
                self.tree_gone = true;
            }
        }
        // The shim may wait for hours: it keeps what it needs to know and lets go of the rest.
        self.launch.env = Vec::new();
        self.launch.argv.truncate(1);
        self.launch.rlimits = Vec::new();
    }

    fn serve_failed(mut self, failure: StartFailure) {
        self.failure = Some(failure);
        self.tree_gone = true;
        self.serve();
        self.leave();
    }

    fn serve(&mut self) {
        loop {
            self.advance();
            if self.is_done() {
                return;
            }
            self.poll_once();
        }
    }

    // ---- what happens -------------------------------------------------------------------------------------------------------

    fn poll_once(&mut self) {
        let timeout = self.deadline().map(|at| {
            let wait = (at - clock::monotonic()).max(0);
            Timespec { tv_sec: wait / 1000, tv_nsec: wait % 1000 * 1_000_000 }
        });
        let mut ready = [PollFlags::empty(); 7];
        {
            let mut fds: Vec<PollFd<'_>> = Vec::with_capacity(7);
            let mut slots: Vec<usize> = Vec::with_capacity(7);
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
        let [signals, channel, listener, status, input, first, second] = ready;
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
        if !input.is_empty() {
            let answers = self.input.pump();
            self.tell_all(&answers);
        }
    }

    /// The next moment at which something is due by itself.
    fn deadline(&self) -> Option<i64> {
        let stop = self.stop.as_ref().filter(|_| !self.tree_gone).map(Stop::deadline);
        let timeout = self.timeout_at.filter(|_| self.ended.is_none() && self.stop.is_none());
        let drain = match &self.phase {
            Phase::Draining { since, last_output } => Some((since + DRAIN_MS).min(last_output + QUIET_MS)),
            Phase::Running | Phase::Told { .. } => None,
        };
        [stop, timeout, drain].into_iter().flatten().min()
    }

    fn take_output(&mut self, ready: [PollFlags; 2]) {
        let now = self.wall.now();
        let mut any = false;
        let mut number = 0;
        let output = &mut self.output;
        self.sources.retain_mut(|source| {
            let ready = ready.get(number).copied().unwrap_or(PollFlags::empty());
            number += 1;
            if ready.is_empty() {
                return true;
            }
            for _ in 0..TURNS {
                let taken = match source.stream {
                    Stream::Pty => output.take_terminal(source.fd.as_fd(), now),
                    Stream::Stdout | Stream::Stderr | Stream::Mixed => {
                        output.take_pipe(source.fd.as_fd(), source.stream, now)
                    }
                };
                match taken {
                    Taken::Bytes(count) => {
                        any = true;
                        if count >= BUSY && source.busy < 2 {
                            source.busy += 1;
                            if source.busy == 2 {
                                let _ = output::widen(source.fd.as_fd());
                            }
                        }
                    }
                    Taken::Nothing => return true,
                    Taken::End => return false,
                }
            }
            true
        });
        if any {
            if let Phase::Draining { last_output, .. } = &mut self.phase {
                *last_output = clock::monotonic();
            }
            self.tell_growth();
        }
    }

    fn tell_growth(&mut self) {
        if self.watch.is_some_and(|seen| self.output.total() > seen) {
            self.watch = None;
            self.tell(&FromShim::Output(self.output.total(), self.output.dropped()));
        }
    }

    /// The child's word: closed means executed, eight bytes mean that it could not be.
    fn read_status(&mut self) {
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
                    self.tell(&FromShim::Started(pid, at, Some(std::process::id())));
                }
                sys::trim_memory();
            }
            Ok(_) => {
                let program = self.launch.argv.first().map(|text| String::from_utf8_lossy(text).into_owned());
                let cwd = String::from_utf8_lossy(&self.launch.cwd).into_owned();
                self.failure = Some(child::start_failure(&report, &program.unwrap_or_default(), &cwd));
            }
        }
        self.status = None;
        if let Some(stop) = &mut self.stop {
            // Until its exec the child ignored what we ignore, so a polite signal that came so early was not heard.
            stop.repeat(self.group.as_ref(), clock::monotonic());
        }
    }

    /// Takes every ended child: the main process, and orphans that this subreaper inherited.
    fn reap(&mut self) {
        let mut drain = [0; 128];
        let _ = rustix::io::read(&self.signals, &mut drain);
        loop {
            match sys::wait() {
                sys::Wait::Ended(reaped) => {
                    if Some(reaped.pid) == self.pid && self.ended.is_none() {
                        // Whether it was executed is known before its end is told.
                        self.read_status();
                        let cause = self.stop.as_ref().map(|stop| stop.cause);
                        let now = clock::monotonic();
                        self.ended = Some(Ended {
                            end: reaped.end,
                            max_rss_bytes: reaped.max_rss_bytes,
                            cpu_ms: reaped.cpu_ms,
                            at: now,
                            wall: self.wall.now(),
                            cause,
                        });
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

    fn accept(&mut self) {
        let Some(listener) = &self.listener else { return };
        let Ok(socket) = net::accept_with(listener, SocketFlags::CLOEXEC) else { return };
        if confine::is_trusted(&socket) {
            // A daemon that connects is the one that holds the lock: the old connection is of one that is gone.
            self.watch = None;
            self.channel = Some(Channel::new(socket));
        }
    }

    /// The daemon is gone. From here on there is a socket at which the next one finds us; while one is there none is needed, and most
    /// tasks never need one.
    fn part(&mut self) {
        self.channel = None;
        self.watch = None;
        if self.listener.is_none() {
            self.listener = listen(&self.folder).ok();
        }
    }

    fn hear(&mut self) {
        let Some(channel) = &mut self.channel else { return };
        if channel.flush().is_err() {
            self.part();
            return;
        }
        let Ok(messages) = channel.receive() else {
            self.part();
            return;
        };
        for message in messages {
            self.obey(message);
        }
    }

    fn obey(&mut self, message: ToShim) {
        match message {
            ToShim::Launch(_) => {}
            ToShim::Hello => {
                let standing = self.standing();
                self.tell(&FromShim::Standing(Box::new(standing)));
            }
            ToShim::Stop(request) => {
                // The truth first: an end that has happened is not a stop.
                self.reap();
                let signal = request.signal.unwrap_or(libc::SIGTERM);
                let grace = request.grace_ms.unwrap_or(self.launch.grace_ms);
                if self.ended.is_none() && self.stop.is_none() {
                    self.stopped_by = request.by;
                }
                self.begin_stop(Cause::Requested, signal, grace);
            }
            ToShim::Signal(number) => {
                self.reap();
                let sent = self.signal_group(number);
                self.tell(&FromShim::Signalled(sent));
            }
            ToShim::Input(request) => {
                let answers = self.input.push(request);
                self.tell_all(&answers);
            }
            ToShim::CancelInput => {
                let answers = self.input.cancel();
                self.tell_all(&answers);
            }
            ToShim::Resize(rows, columns) => {
                if let Some(terminal) = self.input.terminal() {
                    let size = rustix::termios::Winsize {
                        ws_row: rows,
                        ws_col: columns,
                        ws_xpixel: 0,
                        ws_ypixel: 0,
                    };
                    let _ = rustix::termios::tcsetwinsize(terminal, size);
                }
            }
            ToShim::Watch(seen) => {
                self.watch = Some(seen);
                self.tell_growth();
            }
            ToShim::Recorded => {
                if let Phase::Told { confirmed, .. } = &mut self.phase {
                    *confirmed = true;
                }
            }
        }
    }

    fn begin_stop(&mut self, cause: Cause, signal: i32, grace_ms: u64) {
        if self.tree_gone {
            return;
        }
        let now = clock::monotonic();
        match &mut self.stop {
            Some(stop) => stop.hasten(signal, grace_ms, self.group.as_ref(), now),
            None => self.stop = Some(Stop::begin(cause, signal, grace_ms, self.group.as_ref(), now)),
        }
    }

    /// Signals the main process's group. Its leader is ours and not yet waited for, so the number is still its own.
    fn signal_group(&self, number: i32) -> bool {
        let (Some(pid), None) = (self.pid, &self.ended) else { return false };
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
        let number = rustix::process::Signal::from_named_raw(number);
        match (pid, number) {
            (Some(pid), Some(number)) => rustix::process::kill_process_group(pid, number).is_ok(),
            (None, _) | (_, None) => false,
        }
    }

    fn standing(&self) -> Standing {
        let ended = match &self.phase {
            Phase::Told { record, .. } => Some(ByteVec::from(record.clone())),
            Phase::Running | Phase::Draining { .. } => None,
        };
        Standing {
            task: self.launch.task.clone(),
            attempt: self.launch.attempt,
            nonce: self.launch.nonce,
            pid: self.pid.filter(|_| self.started_at.is_some()),
            started_at: self.started_at,
            ended,
            output_bytes: self.output.total(),
            output_dropped: self.output.dropped(),
            shim: Some(std::process::id()),
        }
    }

    fn tell(&mut self, message: &FromShim) {
        if let Some(channel) = &mut self.channel
            && channel.send(message).is_err()
        {
            self.part();
        }
    }

    fn tell_all(&mut self, messages: &[FromShim]) {
        for message in messages {
            self.tell(message);
        }
    }

    // ---- what follows -------------------------------------------------------------------------------------------------------

    /// Everything that is due because of what is now known, or of the time.
    fn advance(&mut self) {
        let now = clock::monotonic();
        if self.ended.is_none() && self.stop.is_none() && self.timeout_at.is_some_and(|at| now >= at) {
            self.begin_stop(Cause::TimedOut, libc::SIGTERM, self.launch.grace_ms);
        }
        if let Some(stop) = &mut self.stop
            && !self.tree_gone
        {
            stop.advance(self.group.as_ref(), now);
        }
        if matches!(self.phase, Phase::Running) && self.has_ended() {
            if self.launch.kill_on_exit && !self.tree_gone && self.stop.is_none() {
                self.begin_stop(Cause::Leftovers, libc::SIGTERM, self.launch.grace_ms);
            }
            // A stop is not over before the tree is.
            let stopped = self.stop.as_ref().is_none_or(|stop| self.tree_gone || stop.is_exhausted(now));
            if stopped {
                let answers = self.input.close();
                self.tell_all(&answers);
                self.phase = Phase::Draining { since: now, last_output: now };
                self.take_output([PollFlags::IN; 2]);
            }
        }
        if let Phase::Draining { since, last_output } = self.phase {
            let drained = self.sources.is_empty() || now >= since + DRAIN_MS || now >= last_output + QUIET_MS;
            if drained {
                self.finish();
            }
        }
    }

    fn has_ended(&self) -> bool {
        self.ended.is_some() || (self.pid.is_none() && self.failure.is_some())
    }

    /// Tells the daemon and makes the record durable, in this order: the ledger and the disk then work at the same time, and either
    /// alone is enough. Nothing that anybody is told depends on this process from here on.
    fn finish(&mut self) {
        let record = self.exit_record().encode();
        self.tell(&FromShim::Exited(ByteVec::from(record.clone())));
        let durable = self
            .marker
            .as_ref()
            .is_some_and(|marker| record::commit(self.folder.as_fd(), marker, &record).is_ok());
        self.marker = None;
        self.phase = Phase::Told { record, durable, confirmed: false };
    }

    fn exit_record(&self) -> ExitRecord {
        let survivors = if self.tree_gone { Vec::new() } else { stop::members(self.group.as_ref()) };
        let survivors = survivors
            .into_iter()
            .take(record::MAX_SURVIVORS)
            .map(|process| Survivor { pid: process.pid, name: process.name })
            .collect();
        let (exit_code, signal) = match self.ended.as_ref().map(|ended| ended.end) {
            Some(sys::End::Code(code)) if self.failure.is_none() => (Some(code), None),
            Some(sys::End::Signal(signal)) if self.failure.is_none() => (None, Some(signal)),
            Some(_) | None => (None, None),
        };
        let verdict = match (&self.failure, self.ended.as_ref().and_then(|ended| ended.cause)) {
            (Some(_), _) => Verdict::StartFailed,
            (None, Some(Cause::Requested)) => Verdict::Stopped,
            (None, Some(Cause::TimedOut)) => Verdict::TimedOut,
            (None, Some(Cause::Leftovers) | None) => Verdict::Exited,
        };
        let ended_at = self.ended.as_ref().map_or_else(clock::monotonic, |ended| ended.at);
        ExitRecord {
            task: self.launch.task.clone(),
            attempt: self.launch.attempt,
            nonce: self.launch.nonce,
            boot_id: self.boot_id.clone(),
            verdict,
            exit_code,
            signal,
            reason: self.failure.as_ref().map(|failure| failure.reason.chars().take(500).collect()),
            stopped_by: self.stopped_by.clone().filter(|_| verdict == Verdict::Stopped),
            survivors,
            pid: self.pid.filter(|_| self.failure.is_none()),
            started_at: self.started_at,
            ended_at: self.ended.as_ref().map_or_else(|| self.wall.now(), |ended| ended.wall),
            duration_ms: u64::try_from(ended_at - self.cloned_at).unwrap_or(0),
            max_rss_bytes: self.ended.as_ref().map_or(0, |ended| ended.max_rss_bytes),
            cpu_ms: self.ended.as_ref().map_or(0, |ended| ended.cpu_ms),
            output_bytes: self.output.total(),
            output_dropped: self.output.dropped(),
        }
    }

    /// Whether this process may leave: the end is safe somewhere, and nobody of the tree is left to look after.
    fn is_done(&self) -> bool {
        let Phase::Told { durable, confirmed, .. } = &self.phase else { return false };
        // Without a socket, or a folder to find it in, nobody will ever come to ask; what could not be made durable then is lost,
        // and says so.
        let hidden = || {
            self.listener.is_none() || rustix::fs::fstat(&self.folder).is_ok_and(|found| found.st_nlink == 0)
        };
        let unreachable = self.channel.is_none() && (*durable || hidden());
        (*confirmed || unreachable) && self.tree_gone
    }

    fn leave(&mut self) {
        if let Some(group) = &self.group {
            group.remove();
        }
        if self.listener.is_some() {
            let _ = folder::remove(&self.folder, folder::SOCKET);
        }
        let confirmed = matches!(self.phase, Phase::Told { confirmed: true, .. });
        if !confirmed && let Some(home) = &self.launch.revive {
            revive::revive(Path::new(OsStr::from_bytes(home)));
        }
    }
}
