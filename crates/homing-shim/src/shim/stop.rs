//! Ending the tree: politely, then not, then making sure. Keeps P8.
//!
//! # Which end is ours (P2)
//!
//! An end counts as stopped or timed out if and only if a signal of ours reached the main process before it ended. A successful
//! `kill` is no proof of that: the kernel also accepts a signal for a zombie and for a process that is inside `exit_group`, and
//! drops it. So the first signal is preceded by SIGSTOP, and `waitid` reports which of two things happened:
//! - The process stopped. It is then at a point where it takes signals, so the next signal reaches it before it runs any further.
//! - The process ended. SIGSTOP ends nothing, so it ended by itself, and the end is not ours.
//!
//! A process that does neither within [`HANDSHAKE_MS`] (it sleeps in the kernel, or the freezer holds it) gets the signal all the
//! same. The signal then counts if the process is not exiting afterwards. That check has one gap: a process that had already called
//! `exit_group`, and that the kernel did not yet mark as exiting, for all of that time.
//!
//! Independently of this, an end by the very signal that was sent is ours, unless the process was seen to have ended before. For
//! SIGKILL that is the only proof.

use std::os::fd::BorrowedFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

use crate::cgroup::Group;
use crate::clock;
use crate::freeze::members;
use homing_sys::process;
use homing_sys::sys::End;

/// How long the main process gets to stop before its first signal is sent.
const HANDSHAKE_MS: i64 = 100;

/// Between two looks at what is left after the last signal.
const RETRY_MS: i64 = 20;
const LONGEST_PAUSE_MS: i64 = 10_000;
/// After the last signal, how long the kernel gets before survivors are named.
const PATIENCE_MS: i64 = 800;

/// Why the tree is being ended; decides the verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    /// Somebody asked.
    Requested,
    /// Its time was up.
    TimedOut,
    /// The main process ended by itself and its children are not to outlive it.
    Leftovers,
}

/// The process whose end decides the outcome, while it is not waited for: its pid is still its own.
#[derive(Debug, Clone, Copy)]
pub(super) struct MainProcess<'a> {
    pub(super) pid: Pid,
    /// Becomes readable when a child stops or ends.
    pub(super) signals: BorrowedFd<'a>,
    /// The tree is held by a pause: SIGSTOP may take effect only later.
    pub(super) held: bool,
}

/// What a look at the main process found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    Stopped,
    /// Ended, or out of our reach.
    Gone,
    Neither,
}

impl MainProcess<'_> {
    fn look(&self) -> Answer {
        let options =
            WaitIdOptions::EXITED | WaitIdOptions::STOPPED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        match waitid(WaitId::Pid(self.pid), options) {
            Ok(Some(status)) if status.stopped() => Answer::Stopped,
            Ok(Some(_)) => Answer::Gone,
            Ok(None) | Err(_) => Answer::Neither,
        }
    }

    /// Sends SIGSTOP and waits until the process has stopped or ended.
    fn halt(&self) -> Answer {
        let first = self.look();
        if first != Answer::Neither || self.held {
            return first;
        }
        if kill_process(self.pid, Signal::STOP).is_err() {
            return Answer::Gone;
        }
        let until = clock::monotonic() + HANDSHAKE_MS;
        loop {
            let answer = self.look();
            let left = until - clock::monotonic();
            if answer != Answer::Neither || left <= 0 {
                return answer;
            }
            // What is taken off the descriptor here is news of children. The caller looks for ended children afterwards.
            let _ = rustix::io::read(self.signals, &mut [0; 128]);
            if self.look() == Answer::Neither {
                let timeout = Timespec { tv_sec: 0, tv_nsec: left.min(HANDSHAKE_MS) * 1_000_000 };
                let _ = poll(&mut [PollFd::from_borrowed_fd(self.signals, PollFlags::IN)], Some(&timeout));
            }
        }
    }

    fn is_exiting(&self) -> bool {
        u32::try_from(self.pid.as_raw_nonzero().get()).is_ok_and(process::is_exiting)
    }
}

/// A stop under way.
#[derive(Debug)]
pub(super) struct Stop {
    cause: Cause,
    /// A signal reached the main process before it ended.
    reached: bool,
    /// The same, but an end by a foreign signal may have begun before: a core dump takes its time.
    presumed: bool,
    /// Signals that were sent while the main process was not seen to have ended.
    sent: Vec<i32>,
    signal: i32,
    escalate_at: i64,
    next_look: i64,
    pause: i64,
    /// When the last signal was first sent.
    killed_at: Option<i64>,
}

/// When the last signal is due.
fn deadline(signal: i32, grace_ms: u64, now: i64) -> i64 {
    let grace = if signal == libc::SIGKILL { 0 } else { i64::try_from(grace_ms).unwrap_or(i64::MAX / 4) };
    now.saturating_add(grace)
}

fn say(signal: i32, group: Option<&Group>) {
    let members = members(group);
    for process in &members {
        process::signal(process, signal);
    }
    // A frozen process hears nothing until it is thawed. Children first: a shell that saw its job still stopped would take the terminal from it.
    for process in members.iter().rev() {
        process::signal(process, libc::SIGCONT);
    }
}

impl Stop {
    /// Sends the polite signal to everybody. There is no main process if it has ended, or is not known to have executed the command.
    pub(super) fn begin(
        cause: Cause,
        signal: i32,
        grace_ms: u64,
        group: Option<&Group>,
        main: Option<MainProcess<'_>>,
        now: i64,
    ) -> Self {
        let escalate_at = deadline(signal, grace_ms, now);
        let mut stop = Self {
            cause,
            reached: false,
            presumed: false,
            sent: Vec::new(),
            signal,
            escalate_at,
            next_look: escalate_at,
            pause: RETRY_MS,
            killed_at: None,
        };
        if escalate_at > now {
            stop.say(signal, group, main);
        }
        stop
    }

    fn say(&mut self, signal: i32, group: Option<&Group>, main: Option<MainProcess<'_>>) {
        let main = main.filter(|_| !self.reached && self.cause != Cause::Leftovers);
        let answer = main.map(|main| main.halt());
        if answer != Some(Answer::Gone) {
            self.sent.push(signal);
        }
        say(signal, group);
        match (answer, main) {
            (Some(Answer::Stopped), _) => self.reached = true,
            (Some(Answer::Neither), Some(main)) => self.presumed = self.presumed || !main.is_exiting(),
            (Some(Answer::Gone), _) | (None, _) | (_, None) => {}
        }
    }

    /// Why the main process ended so, if a signal of ours had reached it.
    pub(super) fn cause_of(&self, end: End) -> Option<Cause> {
        let ours = match end {
            End::Signal(signal) => self.sent.contains(&signal),
            End::Code(_) => self.presumed,
        };
        (self.reached || ours).then_some(self.cause)
    }

    /// A second request: never slower than the first. One that asks for nothing new (a client that had to ask twice) is no second signal:
    /// many programs take that for impatience.
    pub(super) fn hasten(
        &mut self,
        signal: i32,
        grace_ms: u64,
        group: Option<&Group>,
        main: Option<MainProcess<'_>>,
        now: i64,
    ) {
        let escalate_at = deadline(signal, grace_ms, now);
        let news = signal != self.signal || escalate_at < self.escalate_at;
        if news && escalate_at > now {
            self.say(signal, group, main);
            self.signal = signal;
        }
        self.escalate_at = self.escalate_at.min(escalate_at);
        self.next_look = self.next_look.min(now.max(self.escalate_at));
        self.pause = RETRY_MS;
    }

    /// Sends the polite signal once more, with no more time than before.
    pub(super) fn repeat(&mut self, group: Option<&Group>, main: Option<MainProcess<'_>>, now: i64) {
        if self.escalate_at > now {
            self.say(self.signal, group, main);
        }
    }

    /// When to be asked again.
    pub(super) const fn deadline(&self) -> i64 {
        self.next_look
    }

    /// Goes on: the last signal when it is due, and again for whoever is still there.
    pub(super) fn advance(&mut self, group: Option<&Group>, main: Option<MainProcess<'_>>, now: i64) {
        if now < self.next_look {
            return;
        }
        self.killed_at.get_or_insert(now);
        if main.is_none_or(|main| main.look() != Answer::Gone) {
            self.sent.push(libc::SIGKILL);
        }
        if let Some(group) = group {
            group.kill();
        }
        for process in members(group) {
            process::signal(&process, libc::SIGKILL);
        }
        self.next_look = now + self.pause;
        if self.is_exhausted(now) {
            // What the kernel cannot end, or we may not, is looked at less and less.
            self.pause = (self.pause * 2).min(LONGEST_PAUSE_MS);
        }
    }

    /// Whether the kernel had its time, from the last signal on, however late that was: who is left now is named.
    pub(super) fn is_exhausted(&self, now: i64) -> bool {
        self.killed_at.is_some_and(|at| now >= at.saturating_add(PATIENCE_MS))
    }
}
