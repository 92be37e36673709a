//! Operations on tasks.

use std::collections::BTreeMap;

use homing_model::notify::Notify;
use homing_model::session::{Pane, Session};
use homing_model::{OsText, Secret, Task, TaskId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A page of a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Page<T> {
    /// The items.
    pub items: Vec<T>,
    /// Ask again with this to go on; null at the end.
    pub next_cursor: Option<String>,
}

/// Body of `POST /v1/tasks/{id}/stop`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct StopRequest {
    /// Between the polite signal and the last one; the task's own if absent.
    pub grace_ms: Option<u64>,
    /// The polite signal: a name (`TERM`, `SIGINT`) or a number; TERM if absent.
    pub signal: Option<String>,
    /// Who asks; recorded as `stopped_by`.
    pub by: Option<String>,
    /// Answer only when the tree is gone.
    pub wait: bool,
}

/// Answer of a stop.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StopAnswer {
    /// False if it had ended before: nothing was changed then.
    pub stopping: bool,
    /// The task now.
    pub task: Task,
}

/// Answer of a pause or a resume.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PauseAnswer {
    /// Whether this request did it; false if it was so before, or the task had ended.
    pub changed: bool,
    /// The task now.
    pub task: Task,
}

/// Body of `POST /v1/tasks/{id}/signal`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SignalRequest {
    /// A name (`INT`, `SIGUSR1`) or a number.
    pub signal: String,
}

/// Body of `POST /v1/tasks/{id}/progress`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ProgressRequest {
    /// Of a hundred; absent if it cannot be told.
    pub percent: Option<f64>,
    /// What the task is at, in a few words.
    pub text: Option<String>,
}

/// Body of `POST /v1/tasks/{id}/complete`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CompleteRequest {
    /// What came of it; at most 256 KiB.
    pub answer: Option<String>,
    /// It did not succeed; the answer says why.
    pub failed: bool,
    /// Whose task it is, instead of the header.
    pub owner: Option<String>,
}

/// Answer of a completion.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CompleteAnswer {
    /// False if it had ended before: the first end stands, and nothing was changed.
    pub completed: bool,
    /// The task now.
    pub task: Task,
}

/// Body of `POST /v1/tasks/{id}/heartbeat`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HeartbeatRequest {
    /// Whose task it is, instead of the header.
    pub owner: Option<String>,
}

/// Body of `POST /v1/tasks/{id}/rerun`: what a task does not keep, and what is to be different.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RerunRequest {
    /// Whose the new task is; the caller's if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// The whole environment: values are not kept, so that of the first run is gone. A small default one if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub env: Option<BTreeMap<String, OsText>>,
    /// Variables over those that were set for the first run, which are kept unless they were secrets.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env_set: BTreeMap<String, OsText>,
    /// Secrets, which are not kept either: every one that was given as a value has to be given again.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub secrets: BTreeMap<String, Secret>,
    /// Who is told of the end, instead of those whom the first run told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notify: Option<Notify>,
    /// The agent's session that asks: `wake` goes there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<Session>,
    /// The pane of tmux that `wake:tmux:…` names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pane: Option<Pane>,
}

/// Body of `POST /v1/tasks/{id}/input`; raw bytes may be sent instead as `application/octet-stream` with `?eof=true` to end.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct InputRequest {
    /// Text to write.
    pub text: Option<String>,
    /// Bytes to write, base64.
    pub base64: Option<String>,
    /// Close the input afterwards.
    pub eof: bool,
}

/// Answer of an input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InputAnswer {
    /// Bytes that the task's pipe or terminal took.
    pub written: u64,
}

/// Answer of `GET /v1/wait`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WaitAnswer {
    /// Whether all (or any, as asked) have ended.
    pub done: bool,
    /// The tasks, in the order asked.
    pub items: Vec<Task>,
    /// With `mode=any`: the one that ended first.
    pub first: Option<TaskId>,
}
