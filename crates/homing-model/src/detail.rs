//! One task, whole: with its attempts, what was told of it, and where that went.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::delivery::Delivery;
use crate::id::NoticeId;
use crate::outcome::Outcome;
use crate::status::Status;
use crate::task::Task;
use crate::time::Timestamp;

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

/// Where a notice is in its owner's inbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum InboxState {
    /// It was never there: the task does not tell the inbox.
    None,
    /// It waits for its owner.
    Waiting,
    /// Somebody has it, and has not acknowledged it yet.
    Held,
    /// It was there, and was acknowledged.
    Acknowledged,
}

impl InboxState {
    /// In words.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "not in the inbox",
            Self::Waiting => "waits in the inbox",
            Self::Held => "held",
            Self::Acknowledged => "acknowledged",
        }
    }
}

/// A notice, and whether its owner has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NoticeInfo {
    /// Its id.
    pub id: NoticeId,
    /// Its place in the event log.
    pub seq: u64,
    /// What it tells; null if it is damaged.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// When that happened.
    pub at: Option<Timestamp>,
    /// Where it is in the inbox.
    pub inbox: InboxState,
    /// Until when it is held.
    #[serde(default)]
    pub held_until: Option<Timestamp>,
}
