//! What the daemon asks for, and what it is told.

use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use minicbor::bytes::ByteVec;
use rustix::io::Errno;
use rustix::net::{self, SocketFlags};
use rustix::process::Pid;

use super::channel::Channel;
use super::ending::{Phase, Safety};
use super::launch;
use super::service::Service;
use super::stop::{Cause, MainProcess, Stop};
use crate::clock;
use crate::wire::{FromShim, PauseAnswer, Standing, ToShim};
use homing_sys::confine::{self, Confinement};

/// Between two looks at a queue that could not be taken from.
const SHORTAGE_MS: i64 = 50;
/// Between two tries at what the disk or the system would not give: a socket, a record.
const RETRY_MS: i64 = 2_000;

/// The main process for a stop, if there is one that is not waited for.
pub(super) fn main_process(pid: Option<u32>, signals: &OwnedFd, held: bool) -> Option<MainProcess<'_>> {
    let pid = pid.and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw)?;
    Some(MainProcess { pid, signals: signals.as_fd(), held })
}

impl Service {
    pub(super) fn accept(&mut self) {
        let Some(listener) = &self.listener else { return };
        let socket = match net::accept_with(listener, SocketFlags::CLOEXEC) {
            Ok(socket) => socket,
            Err(Errno::AGAIN | Errno::INTR) => return,
            // No descriptor to be had: the connection stays in the queue, and looking at once again would not help.
            Err(_) => return clock::pause(SHORTAGE_MS),
        };
        if confine::is_trusted_peer(&socket, Confinement::beyond_as_successor) {
            // A daemon that connects is the one that holds the lock: the old connection is of one that is gone.
            self.watch = None;
            self.forget_askers();
            self.vigil.end();
            self.channel = Some(Channel::new(socket));
        }
    }

    /// The daemon is gone. From here on there is a socket at which the next one finds us; while one is there none is needed, and most
    /// tasks never need one.
    pub(super) fn part(&mut self) {
        self.channel = None;
        self.watch = None;
        self.forget_askers();
        self.input.forget();
        self.listen();
        self.keep_vigil();
    }

    /// Somebody must bring the daemon back, unless nobody wants one (an engine inside another program).
    pub(super) fn keep_vigil(&mut self) {
        if let Some(home) = &self.launch.revive {
            self.vigil.look(Path::new(OsStr::from_bytes(home)));
        }
    }

    /// Makes the socket; what does not work now (a full disk, no descriptor) is tried again, so that the task stays within reach.
    pub(super) fn listen(&mut self) {
        if self.listener.is_none() {
            self.listener = launch::listen(&self.folder).ok();
        }
        self.plan_retry();
    }

    /// With no daemon there, what the disk or the system would not give is tried again: a socket, the record of the end.
    pub(super) fn plan_retry(&mut self) {
        let unsafe_end = matches!(self.phase, Phase::Told { safety: Safety::Memory, .. });
        let needed = self.channel.is_none() && (self.listener.is_none() || unsafe_end);
        self.retry_at = needed.then(|| clock::monotonic() + RETRY_MS);
    }

    pub(super) fn hear(&mut self) {
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

    pub(super) fn obey(&mut self, message: ToShim) {
        match message {
            ToShim::Launch(_) => {}
            ToShim::Hello => {
                if let Some(pause) = &mut self.pause {
                    pause.make_sure();
                }
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
                if let Some(pause) = &mut self.pause {
                    // It may have been a SIGCONT.
                    pause.look_again();
                }
                self.tell(&FromShim::Signalled(sent));
            }
            ToShim::Input(request) => {
                let answers = self.input.push(request);
                self.tell_all(&answers);
            }
            ToShim::CancelInput(seq) => {
                let answers = self.input.cancel(seq);
                self.tell_all(&answers);
            }
            ToShim::Resize(cols, rows) => {
                let (offset, (cols, rows)) = self.resize(cols, rows);
                self.tell(&FromShim::Resized(offset, cols, rows));
            }
            ToShim::Pause => self.pause(),
            ToShim::Resume => self.resume(),
            ToShim::Grace(grace_ms) => self.launch.grace_ms = grace_ms,
            ToShim::Watch(seen) => {
                // Several may follow: all of them are told at once, so whoever has seen least decides.
                self.watch = Some(self.watch.map_or(seen, |least| least.min(seen)));
                self.tell_growth();
            }
            ToShim::Recorded => {
                self.settle(Safety::Ledger);
            }
        }
    }

    pub(super) fn begin_stop(&mut self, cause: Cause, signal: i32, grace_ms: u64) {
        if self.tree_gone {
            return;
        }
        let now = clock::monotonic();
        let main = self.pid.filter(|_| self.ended.is_none() && self.status.is_none());
        let main = main_process(main, &self.signals, self.pause.is_some());
        match &mut self.stop {
            Some(stop) => stop.hasten(signal, grace_ms, self.group.as_ref(), main, now),
            None => self.stop = Some(Stop::begin(cause, signal, grace_ms, self.group.as_ref(), main, now)),
        }
        // The signal, be it the last one, is sent before the next end is seen, and before a tree that stands still goes on.
        if let Some(stop) = &mut self.stop {
            stop.advance(self.group.as_ref(), main, now);
        }
        self.let_go(&PauseAnswer::Stopping);
        // The stop takes news of children off the descriptor while it waits for the main process.
        self.reap();
    }

    /// Signals the main process's group. Its leader is ours and not yet waited for, so the number is still its own.
    pub(super) fn signal_group(&self, number: i32) -> bool {
        let (Some(pid), None) = (self.pid, &self.ended) else { return false };
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
        let number = rustix::process::Signal::from_named_raw(number);
        match (pid, number) {
            (Some(pid), Some(number)) => rustix::process::kill_process_group(pid, number).is_ok(),
            (None, _) | (_, None) => false,
        }
    }

    pub(super) fn standing(&self) -> Standing {
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
            stopping: Some(self.stop.is_some()),
            stillness: Some(self.stillness()),
        }
    }
}
