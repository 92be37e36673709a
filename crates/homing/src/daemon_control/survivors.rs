//! Processes that outlived their task: what has become of them, as `/proc` says now.

use homing_model::{Survivor, Task, TaskId};
use homing_sys::process;

/// What has become of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Now {
    /// It runs, under this name: a program may have become another one since.
    Runs(String),
    /// A process of its pid and name runs, but does not show that it belongs to the task.
    MayRun,
    /// It is gone; its pid may be somebody else's by now.
    Gone,
}

/// Looks for one.
pub(crate) fn look(task: &TaskId, left: &Survivor) -> Now {
    let Some(found) = process::stat(left.pid).filter(|found| !found.zombie) else { return Now::Gone };
    let mark = format!("HOMING_TASK_ID={task}");
    let environ = std::fs::read(format!("/proc/{}/environ", left.pid)).unwrap_or_default();
    if environ.split(|byte| *byte == 0).any(|entry| entry == mark.as_bytes()) {
        Now::Runs(found.name)
    } else if found.name == left.name {
        Now::MayRun
    } else {
        Now::Gone
    }
}

/// How many of a task's are not gone.
pub(crate) fn count(task: &Task) -> usize {
    let survivors = task.outcome.iter().flat_map(|outcome| &outcome.survivors);
    survivors.filter(|left| look(&task.id, left) != Now::Gone).count()
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt;
    use std::process::{Child, Command};

    use super::*;

    fn sleeper(id: &TaskId) -> Child {
        Command::new("sleep")
            .arg("600")
            .arg0("sleep")
            .env_clear()
            .env("HOMING_TASK_ID", id.as_str())
            .spawn()
            .unwrap()
    }

    fn end(mut child: Child) -> u32 {
        child.kill().unwrap();
        child.wait().unwrap();
        child.id()
    }

    #[test]
    fn a_process_of_the_task_is_known_by_its_environment_and_called_by_its_name_of_today() {
        let (ours, other) = (TaskId::from_entropy(1), TaskId::from_entropy(2));
        let child = sleeper(&ours);
        let left = |name: &str| Survivor { pid: child.id(), name: name.to_owned() };
        assert_eq!(look(&ours, &left("sh")), Now::Runs("sleep".to_owned()));
        assert_eq!(look(&other, &left("sh")), Now::Gone);
        assert_eq!(look(&other, &left("sleep")), Now::MayRun);
        let left = left("sleep");
        end(child);
        assert_eq!(look(&ours, &left), Now::Gone);
    }
}
