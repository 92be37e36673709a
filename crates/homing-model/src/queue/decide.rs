//! The rules of the queue.

use crate::id::TaskId;
use crate::task::Kind;

/// When accepted tasks start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StartPolicy {
    /// Every task starts at once.
    #[default]
    StartAll,
    /// Commands and agents wait.
    HoldAll,
}

/// A task that was accepted and has not started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuedTask {
    /// The task.
    pub id: TaskId,
    /// Hooks and external tasks never wait.
    pub kind: Kind,
}

/// The facts of one decision, read in the transaction that acts on it.
#[derive(Debug, Clone, Copy)]
pub struct QueueView<'a> {
    /// When tasks start.
    pub policy: StartPolicy,
    /// The waiting tasks in submit order.
    pub waiting: &'a [QueuedTask],
}

/// A task that starts now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Start(pub TaskId);

/// Why a task waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitReason {
    /// The policy holds all tasks back.
    Held,
}

/// The tasks that start now, in this order.
#[must_use]
pub fn decide(view: &QueueView<'_>) -> Vec<Start> {
    let due = view.waiting.iter().filter(|task| reason(task, view).is_none());
    due.map(|task| Start(task.id.clone())).collect()
}

/// Why `task` does not start now; `None` if it does.
#[must_use]
pub const fn reason(task: &QueuedTask, view: &QueueView<'_>) -> Option<WaitReason> {
    match (view.policy, task.kind) {
        (StartPolicy::HoldAll, Kind::Command | Kind::Agent) => Some(WaitReason::Held),
        (StartPolicy::HoldAll, Kind::External | Kind::Hook) | (StartPolicy::StartAll, _) => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn waiting(kinds: &[Kind]) -> Vec<QueuedTask> {
        let ids = (0..).map(TaskId::from_entropy);
        ids.zip(kinds).map(|(id, kind)| QueuedTask { id, kind: *kind }).collect()
    }

    fn kind() -> impl Strategy<Value = Kind> {
        prop::sample::select(vec![Kind::Command, Kind::Agent, Kind::External, Kind::Hook])
    }

    #[test]
    fn hooks_and_external_tasks_never_wait() {
        let waiting = waiting(&[Kind::Command, Kind::Hook, Kind::Agent, Kind::External]);
        let starts = decide(&QueueView { policy: StartPolicy::HoldAll, waiting: &waiting });
        assert_eq!(starts, [Start(waiting[1].id.clone()), Start(waiting[3].id.clone())]);
    }

    proptest! {
        #[test]
        fn each_waiting_task_starts_once_or_has_a_reason(
            kinds in prop::collection::vec(kind(), 0..50),
            held: bool,
        ) {
            let waiting = waiting(&kinds);
            let policy = if held { StartPolicy::HoldAll } else { StartPolicy::StartAll };
            let view = QueueView { policy, waiting: &waiting };
            let starts = decide(&view);
            for task in &waiting {
                let times = starts.iter().filter(|Start(id)| *id == task.id).count();
                prop_assert_eq!(times, usize::from(reason(task, &view).is_none()));
            }
            prop_assert!(held || starts.len() == waiting.len());
        }
    }
}
