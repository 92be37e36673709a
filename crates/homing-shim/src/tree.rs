//! Ends what an attempt left behind when its shim was killed. Keeps P2 and P8.
//!
//! The keeper, as subreaper, inherits and ends the orphans of its own shims. But the keeper may have been killed too, or be a later one
//! that never was their ancestor. So the daemon looks for itself before it says `lost`: in the attempt's cgroup, and for processes that
//! were started with the task's id in their environment. What tells of the task has that id as well, and must not be ended with it: it would
//! have told and be taken for one that has not (P6).
//!
//! The environment of another user's process (a program that runs as root, whoever starts it) cannot be read, and it cannot be ended. So the main process
//! is also known by its pid, if whoever has that was started no later than the task: that is enough to name it, and what it started.

use std::path::Path;

use crate::cgroup::{self, Group};
use crate::clock::{self, Wall};
use homing_sys::process::{self, Process};

/// Whose a command hook or a wake is: it has the id of the task that it tells of too, and is none of that one's processes.
pub const HOOK: &str = "HOMING_HOOK_ID";

/// How long the kernel gets to end what was killed.
const PATIENCE_MS: i64 = 1_000;
const PAUSE_MS: i64 = 5;
/// By how much two readings of the same moment may differ: the kernel counts in ticks, and clocks are set right.
const SLACK_MS: i64 = 1_000;

/// An attempt whose shim was killed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Orphaned {
    /// Its task's id.
    pub task: String,
    /// Its number.
    pub attempt: u32,
    /// Its main process, once that was executed.
    pub main: Option<Main>,
}

/// The main process of an attempt, as its shim told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Main {
    /// Its id.
    pub pid: u32,
    /// When it was executed, in milliseconds since the epoch.
    pub executed_at: i64,
}

impl Main {
    /// Itself and its descendants, if it lives.
    fn tree(self) -> Vec<Process> {
        let is_it = |process: &Process| {
            !process.zombie
                && Wall::read().at_ticks(process.start) <= self.executed_at.saturating_add(SLACK_MS)
        };
        let Some(main) = process::stat(self.pid).filter(is_it) else { return Vec::new() };
        std::iter::once(main).chain(process::descendants(self.pid)).collect()
    }
}

/// Kills whatever is left of these attempts and says, for each, what could not be killed. Blocks, for a second at most: every look at
/// the machine's processes is for all of them together.
#[must_use]
pub fn end_orphans(orphaned: &[Orphaned], cgroups: Option<&Path>) -> Vec<Vec<Process>> {
    let groups: Vec<_> = orphaned.iter().map(|attempt| group(attempt, cgroups)).collect();
    let give_up = clock::monotonic() + PATIENCE_MS;
    loop {
        groups.iter().flatten().for_each(Group::kill);
        // One that was paused when its shim was killed: whoever is killed dies all the same, and nobody who is left stands still for ever.
        for group in groups.iter().flatten() {
            let _ = group.freeze(false);
        }
        let mut by_task = process::by_variable(&[HOOK, "HOMING_TASK_ID"]);
        let mut alive: Vec<Vec<Process>> = orphaned
            .iter()
            .zip(&groups)
            .map(|(attempt, group)| {
                let mut alive = by_task.remove(&attempt.task).unwrap_or_default();
                add(&mut alive, group.iter().flat_map(Group::members));
                alive
            })
            .collect();
        // A shim's own environment is its keeper's, so it is never among them; neither are we.
        for process in alive.iter().flatten() {
            process::signal(process, libc::SIGKILL);
        }
        // Whoever is known by its pid only is left to the keeper, whose child it is.
        for (attempt, alive) in orphaned.iter().zip(&mut alive) {
            add(alive, attempt.main.into_iter().flat_map(Main::tree));
        }
        if alive.iter().all(Vec::is_empty) || clock::monotonic() >= give_up {
            groups.iter().flatten().for_each(Group::remove);
            return alive;
        }
        // There is no event for the end of a process that is neither child nor held by pidfd; the wait is short and bounded.
        clock::pause(PAUSE_MS);
    }
}

/// Adds those who are not among them.
fn add(known: &mut Vec<Process>, others: impl Iterator<Item = Process>) {
    for other in others {
        if known.iter().all(|process| process.pid != other.pid) {
            known.push(other);
        }
    }
}

/// The cgroup of an attempt, if it is there.
fn group(attempt: &Orphaned, cgroups: Option<&Path>) -> Option<Group> {
    let (base, name) = (cgroups?, cgroup::name(&attempt.task, attempt.attempt));
    base.join(&name).is_dir().then(|| Group::make(base, &name).ok())?.map(|(group, _)| group)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_found_in_two_ways_is_named_once() {
        let me = process::stat(std::process::id()).unwrap();
        let other = Process { pid: 1, ..me.clone() };
        let mut known = vec![me.clone()];
        add(&mut known, [me.clone(), other.clone(), other.clone()].into_iter());
        assert_eq!(known, [me, other]);
    }

    #[test]
    fn a_main_process_is_known_by_its_pid_unless_that_was_given_to_a_later_one() {
        let pid = std::process::id();
        let start = Wall::read().at_ticks(process::stat(pid).unwrap().start);
        let main = |executed_at| Main { pid, executed_at };
        assert_eq!(main(start).tree().first().map(|main| main.pid), Some(pid));
        assert_eq!(main(start + 60_000).tree().first().map(|main| main.pid), Some(pid));
        assert!(main(start - 60_000).tree().is_empty());
    }
}
