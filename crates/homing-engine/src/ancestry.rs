//! Which task a process runs in, found by its ancestors: a shim is subreaper, so nothing of its task escapes it. Keeps P11.
//!
//! A shim that this engine attends has said who it is. One that it does not attend (its task ended under an earlier daemon and left
//! children, or its first words are still on their way) is known by the folder that it holds open.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use homing_model::{Kind, TaskId};
use homing_shim::home;
use homing_shim::process::{self, Process};
use homing_store::{Record, store};

use crate::engine::Inner;

/// What the kernel shows as the name of a shim.
pub(crate) const SHIM: &str = "homing-shim";
/// No process is nested deeper than this in others; a longer chain is a race with their ends.
pub(crate) const ANCESTORS: usize = 1_000;

/// The task that a process runs in, if any. A process may call itself a shim, but it cannot get out of the one that it is in: of
/// several the deepest counts.
pub(crate) async fn enclosing(inner: &Inner, pid: u32) -> Result<Option<Record>, store::Error> {
    let mut found: Option<Record> = None;
    let mut pid = pid;
    for _ in 0..ANCESTORS {
        let Some(process) = process::stat(pid) else { break };
        if process.name == SHIM {
            let record = match inner.live.by_shim(&process) {
                Some(record) => Some(record),
                None => match task_of(inner.home.path(), &process) {
                    Some(id) => inner.store.get(id).await?,
                    None => None,
                },
            };
            // Whoever calls from inside a hook is nobody's child.
            let record = record.filter(|record| record.kind != Kind::Hook);
            found = found.into_iter().chain(record).max_by_key(|record| record.depth);
        }
        pid = process.parent;
        if pid <= 1 {
            break;
        }
    }
    Ok(found)
}

/// The process of that pid, if it is a shim.
pub(crate) fn shim(pid: u32) -> Option<Process> {
    process::stat(pid).filter(|process| process.name == SHIM)
}

/// The task of this home whose folder a shim holds.
pub(crate) fn task_of(home: &Path, shim: &Process) -> Option<TaskId> {
    let open = std::fs::read_dir(format!("/proc/{}/fd", shim.pid)).ok()?;
    let held = |descriptor: PathBuf| {
        let target = std::fs::read_link(&descriptor).ok()?;
        let mut parts = target.iter();
        let id: TaskId = parts.find_map(|part| part.to_str()?.parse().ok())?;
        // What a path looks like depends on whom one asks; which folder it is does not.
        let ours = home.join(home::TASKS).join(id.as_str()).join(parts.as_path());
        let (theirs, ours) = (std::fs::metadata(&descriptor).ok()?, std::fs::metadata(ours).ok()?);
        (theirs.is_dir() && (theirs.dev(), theirs.ino()) == (ours.dev(), ours.ino())).then_some(id)
    };
    open.flatten().find_map(|entry| held(entry.path()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_known_by_the_task_folder_that_it_holds() {
        let dir = tempfile::tempdir().unwrap();
        let id = TaskId::from_entropy(7);
        let folder = dir.path().join(home::TASKS).join(id.as_str());
        std::fs::create_dir_all(&folder).unwrap();
        let me = process::stat(std::process::id()).unwrap();
        assert_eq!(task_of(dir.path(), &me), None);
        let held = std::fs::File::open(&folder).unwrap();
        assert_eq!(task_of(dir.path(), &me), Some(id));
        let other = tempfile::tempdir().unwrap();
        assert_eq!(task_of(other.path(), &me), None, "it is of another home");
        drop(held);
    }
}
