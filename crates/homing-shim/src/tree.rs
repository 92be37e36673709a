//! Ends what an attempt left behind when its shim was killed. Keeps P2 and P8.
//!
//! The keeper, as subreaper, inherits and ends the orphans of its own shims. But the keeper may have been killed too, or be a later one
//! that never was their ancestor. So the daemon looks for itself before it says `lost`: in the attempt's cgroup, and for processes that
//! were started with the task's id in their environment. What tells of the task has that id as well, and must not be ended with it: it would
//! have told and be taken for one that has not (P6).

use std::path::Path;

use crate::cgroup::{self, Group};
use crate::clock;
use crate::process::{self, Process};

/// Whose a command hook or a wake is: it has the id of the task that it tells of too, and is none of that one's processes.
pub const HOOK: &str = "HOMING_HOOK_ID";

/// How long the kernel gets to end what was killed.
const PATIENCE_MS: i64 = 1_000;
const PAUSE_MS: i64 = 5;

/// An attempt whose shim was killed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Orphaned {
    /// Its task's id.
    pub task: String,
    /// Its number.
    pub attempt: u32,
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
        let alive: Vec<Vec<Process>> = orphaned
            .iter()
            .zip(&groups)
            .map(|(attempt, group)| {
                let mut alive = by_task.remove(&attempt.task).unwrap_or_default();
                alive.extend(group.iter().flat_map(Group::members));
                alive
            })
            .collect();
        // A shim's own environment is its keeper's, so it is never among them; neither are we.
        for process in alive.iter().flatten() {
            process::signal(process, libc::SIGKILL);
        }
        if alive.iter().all(Vec::is_empty) || clock::monotonic() >= give_up {
            groups.iter().flatten().for_each(Group::remove);
            return alive;
        }
        // There is no event for the end of a process that is neither child nor held by pidfd; the wait is short and bounded.
        clock::pause(PAUSE_MS);
    }
}

/// The cgroup of an attempt, if it is there.
fn group(attempt: &Orphaned, cgroups: Option<&Path>) -> Option<Group> {
    let (base, name) = (cgroups?, cgroup::name(&attempt.task, attempt.attempt));
    base.join(&name).is_dir().then(|| Group::make(base, &name).ok())?.map(|(group, _)| group)
}
