//! What the scheduler keeps in memory.

use std::collections::HashMap;

use homing_model::TaskId;
use homing_model::queue::{QueueView, QueuedTask, StartPolicy, reason};
use homing_store::NewTask;
use parking_lot::Mutex;

use crate::supervisor::launch::{self, Values};

/// The policy, and the secrets of waiting tasks.
#[derive(Debug, Default)]
pub(crate) struct Scheduler {
    policy: StartPolicy,
    /// Values that are nowhere else.
    secrets: Mutex<HashMap<TaskId, Values>>,
}

impl Scheduler {
    pub(crate) fn new(policy: StartPolicy) -> Self {
        Self { policy, secrets: Mutex::default() }
    }

    pub(crate) const fn policy(&self) -> StartPolicy {
        self.policy
    }

    /// Whether a task may wait once it is committed.
    pub(crate) fn may_wait(&self, row: &NewTask) -> bool {
        let task = QueuedTask { id: row.id.clone(), kind: row.kind };
        reason(&task, &QueueView { policy: self.policy, waiting: &[] }).is_some()
    }

    /// Keeps the secrets of a task until it starts. To be called before its row is committed: it may be claimed at once.
    pub(crate) fn keep_secrets(&self, row: &NewTask, values: &Values) {
        let secrets = values.iter().filter(|(name, _)| launch::is_secret(row, name));
        let secrets: Values = secrets.map(|(name, value)| (name.clone(), value.clone())).collect();
        if !secrets.is_empty() {
            self.secrets.lock().insert(row.id.clone(), secrets);
        }
    }

    /// The secrets of a task that starts or ends.
    pub(crate) fn take_secrets(&self, id: &TaskId) -> Values {
        self.secrets.lock().remove(id).unwrap_or_default()
    }
}
