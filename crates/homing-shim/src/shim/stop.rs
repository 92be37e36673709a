//! Ending the tree: politely, then not, then making sure. Keeps P8.

use crate::cgroup::Group;
use crate::freeze::members;
use crate::process;

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

/// A stop under way.
#[derive(Debug)]
pub(super) struct Stop {
    pub(super) cause: Cause,
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
    /// Sends the polite signal to everybody.
    pub(super) fn begin(cause: Cause, signal: i32, grace_ms: u64, group: Option<&Group>, now: i64) -> Self {
        let escalate_at = deadline(signal, grace_ms, now);
        if escalate_at > now {
            say(signal, group);
        }
        Self { cause, signal, escalate_at, next_look: escalate_at, pause: RETRY_MS, killed_at: None }
    }

    /// A second request: never slower than the first. One that asks for nothing new (a client that had to ask twice) is no second signal:
    /// many programs take that for impatience.
    pub(super) fn hasten(&mut self, signal: i32, grace_ms: u64, group: Option<&Group>, now: i64) {
        let escalate_at = deadline(signal, grace_ms, now);
        let news = signal != self.signal || escalate_at < self.escalate_at;
        if news && escalate_at > now {
            say(signal, group);
            self.signal = signal;
        }
        self.escalate_at = self.escalate_at.min(escalate_at);
        self.next_look = self.next_look.min(now.max(self.escalate_at));
        self.pause = RETRY_MS;
    }

    /// Sends the polite signal once more, with no more time than before.
    pub(super) fn repeat(&self, group: Option<&Group>, now: i64) {
        if self.escalate_at > now {
            say(self.signal, group);
        }
    }

    /// When to be asked again.
    pub(super) const fn deadline(&self) -> i64 {
        self.next_look
    }

    /// Goes on: the last signal when it is due, and again for whoever is still there.
    pub(super) fn advance(&mut self, group: Option<&Group>, now: i64) {
        if now < self.next_look {
            return;
        }
        self.killed_at.get_or_insert(now);
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
