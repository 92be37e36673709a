//! Ends what an attempt left behind when its shim was killed. Keeps P2 and P8.
//!
//! The keeper, as subreaper, inherits and ends the orphans of its own shims. But the keeper may have been killed too, or be a later one
//! that never was their ancestor. So the daemon looks for itself before it says `lost`: in the attempt's cgroup, and for processes that
//! were started with the task's id in their environment.

use std::path::Path;

use crate::cgroup::{self, Group};
use crate::clock;
use crate::process::{self, Process};

/// How long the kernel gets to end what was killed.
const PATIENCE_MS: i64 = 1_000;
const PAUSE_MS: i64 = 5;

/// Kills whatever is left of an attempt and says what could not be killed. Blocks, for a second at most.
#[must_use]
pub fn end_orphans(task: &str, attempt: u32, cgroups: Option<&Path>) -> Vec<Process> {
    let group = cgroups
        .map(|base| base.join(cgroup::name(task, attempt)))
        .filter(|path| path.is_dir())
        .and_then(|path| Group::make(path.parent()?, path.file_name()?.to_str()?).ok())
        .map(|(group, _)| group);
    let give_up = clock::monotonic() + PATIENCE_MS;
    loop {
        if let Some(group) = &group {
            group.kill();
        }
        let mut alive = process::with_variable("HOMING_TASK_ID", task);
        alive.extend(group.iter().flat_map(Group::members));
        // A shim's own environment is its keeper's, so it is never among them; neither are we.
        for process in &alive {
            process::signal(process, libc::SIGKILL);
        }
        if alive.is_empty() || clock::monotonic() >= give_up {
            if let Some(group) = &group {
                group.remove();
            }
            return alive;
        }
        // There is no event for the end of a process that is neither child nor held by pidfd; the wait is short and bounded.
        clock::pause(PAUSE_MS);
    }
}
