//! One task, whole: with its attempts, what was told of it, and where that went.

use homing_model::{Delivery, NoticeInfo, Outcome, Status, Task, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One task and all that belongs to it: the task's own fields, and beside them the lists.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskDetail {
    /// The task.
    #[serde(flatten)]
    pub task: Task,
    /// Its attempts, as far as they are known, oldest first.
    #[serde(default)]
    pub attempts: Vec<AttemptInfo>,
    /// What was told of it, oldest first; of very many, the newest.
    #[serde(default)]
    pub notices: Vec<NoticeInfo>,
    /// Where that went, oldest first; of very many, the newest.
    #[serde(default)]
    pub deliveries: Vec<Delivery>,
}

/// One attempt at a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AttemptInfo {
    /// Which, counted from 1.
    pub number: u32,
    /// Where it is in its life.
    pub status: Status,
    /// Its main process.
    pub pid: Option<u32>,
    /// When its command was executed.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// How long it ran.
    pub duration_ms: Option<u64>,
    /// How it ended.
    pub outcome: Option<Outcome>,
}

impl From<&Task> for AttemptInfo {
    fn from(task: &Task) -> Self {
        Self {
            number: task.attempt,
            status: task.status,
            pid: task.pid,
            started_at: task.started_at,
            ended_at: task.ended_at,
            duration_ms: task.duration_ms,
            outcome: task.outcome.clone(),
        }
    }
}
