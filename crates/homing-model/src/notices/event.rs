//! The event log: what happened, in the order it was committed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::TaskId;
use crate::time::Timestamp;
use crate::words::words;

/// What kind of thing happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum EventKind {
    /// A task was accepted.
    #[serde(rename = "task.queued")]
    TaskQueued,
    /// Its command was executed.
    #[serde(rename = "task.started")]
    TaskStarted,
    /// Its whole tree stands still.
    #[serde(rename = "task.paused")]
    TaskPaused,
    /// It goes on.
    #[serde(rename = "task.resumed")]
    TaskResumed,
    /// Its end was asked for.
    #[serde(rename = "task.stopping")]
    TaskStopping,
    /// It ended.
    #[serde(rename = "task.completed")]
    TaskCompleted,
    /// Its output matched what was watched for.
    #[serde(rename = "task.matched")]
    TaskMatched,
    /// It printed nothing for a while.
    #[serde(rename = "task.quiet")]
    TaskQuiet,
    /// It runs, and printed something new.
    #[serde(rename = "task.heartbeat")]
    TaskHeartbeat,
    /// It said how far it is.
    #[serde(rename = "task.progress")]
    TaskProgress,
    /// It was forgotten; only its tombstone is left.
    #[serde(rename = "task.forgotten")]
    TaskForgotten,
    /// A target has a notice.
    #[serde(rename = "delivery.delivered")]
    DeliveryDelivered,
    /// A wake is not needed any more: its owner has the notice by another way.
    #[serde(rename = "delivery.superseded")]
    DeliverySuperseded,
    /// A target could not be given a notice.
    #[serde(rename = "delivery.dead")]
    DeliveryDead,
    /// An owner was woken as often as it may be; what else there is waits in the inbox.
    #[serde(rename = "wake.paused")]
    WakePaused,
    /// So many matches were told in all that none is for a while; `data.until` says how long.
    #[serde(rename = "watch.paused")]
    WatchPaused,
    /// A daemon began to serve this home.
    #[serde(rename = "daemon.started")]
    DaemonStarted,
}

words! {
    EventKind is "a kind of event":
    TaskQueued = "task.queued",
    TaskStarted = "task.started",
    TaskPaused = "task.paused",
    TaskResumed = "task.resumed",
    TaskStopping = "task.stopping",
    TaskCompleted = "task.completed",
    TaskMatched = "task.matched",
    TaskQuiet = "task.quiet",
    TaskHeartbeat = "task.heartbeat",
    TaskProgress = "task.progress",
    TaskForgotten = "task.forgotten",
    DeliveryDelivered = "delivery.delivered",
    DeliverySuperseded = "delivery.superseded",
    DeliveryDead = "delivery.dead",
    WakePaused = "wake.paused",
    WatchPaused = "watch.paused",
    DaemonStarted = "daemon.started",
}

/// One line of the log. `seq` increases and is otherwise opaque: there may be holes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Event {
    /// The cursor: ask for events after it.
    pub seq: u64,
    /// What happened.
    #[serde(rename = "type")]
    pub kind: EventKind,
    /// When.
    pub at: Timestamp,
    /// To which task, if to one.
    pub task_id: Option<TaskId>,
    /// Whose.
    pub owner: Option<String>,
    /// More, by kind.
    pub data: serde_json::Value,
}
