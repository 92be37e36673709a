//! The bodies and answers of the HTTP surface that are not a task or an event.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::{DeliveryId, NoticeId, TaskId};
use crate::notice::Notice;
use crate::notify::Notify;
use crate::session::{Pane, Session};
use crate::spec::Secret;
use crate::status::Status;
use crate::task::Task;
use crate::text::OsText;
use crate::time::Timestamp;

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

/// An owner with something in the inbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InboxOwner {
    /// Whose inbox.
    pub owner: String,
    /// Entries that are not acknowledged, those under a lease included.
    pub open: u64,
}

/// Answer of `GET /v1/inbox/{owner}` and of a take.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct InboxAnswer {
    /// Oldest first.
    pub items: Vec<Notice>,
    /// Whether there is more: an answer has at most so many entries, and ends at a few megabytes.
    #[serde(default)]
    pub more: bool,
}

/// Body of `POST /v1/inbox/{owner}/take`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TakeRequest {
    /// At most so many; 100 if absent.
    pub max: Option<u32>,
    /// Nobody else gets them for so long; what is not acknowledged by then is available again. 60 s if absent.
    pub lease_ms: Option<u64>,
    /// If there is nothing, wait this long for something.
    pub wait_ms: Option<u64>,
}

/// Body of `POST /v1/inbox/{owner}/ack`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AckRequest {
    /// Ids of notices, or of tasks: all that is there of them.
    pub ids: Vec<String>,
}

/// Answer of an acknowledgement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AckAnswer {
    /// What was there, and is now gone.
    pub acknowledged: Vec<NoticeId>,
}

/// Answer of a redelivery.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct RedeliverAnswer {
    /// What goes out again.
    pub redelivered: Vec<DeliveryId>,
    /// What stays as it is: nothing may go to its target by now, or its owner has it by another way.
    #[serde(default)]
    pub refused: Vec<NotRedelivered>,
}

/// A delivery that does not go out again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NotRedelivered {
    /// Its id.
    pub id: DeliveryId,
    /// Why.
    pub reason: String,
}

/// Who serves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DaemonInfo {
    /// Its process.
    pub pid: u32,
    /// The keeper's process, where there is one.
    #[serde(default)]
    pub keeper_pid: Option<u32>,
    /// Its version.
    pub version: String,
    /// Since when.
    pub started_at: Timestamp,
    /// Which home.
    pub home: String,
    /// Why it accepts nothing new, where it does not.
    #[serde(default)]
    pub degraded: Option<String>,
}

/// Tasks by rough state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct TaskCounts {
    /// Waiting.
    pub queued: u64,
    /// Starting, running, paused or stopping.
    pub running: u64,
    /// Ended and not yet forgotten.
    pub finished: u64,
}

/// One task that a reconcile pass could not judge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReconcileError {
    /// Which.
    pub task_id: TaskId,
    /// A stable code.
    pub code: String,
    /// What went wrong.
    pub message: String,
}

/// What the safety-net pass did.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ReconcileInfo {
    /// How often it runs.
    pub interval_ms: u64,
    /// When it last ran.
    pub last_run_at: Option<Timestamp>,
    /// How long that took.
    pub last_duration_ms: u64,
    /// How often it ran.
    pub passes: u64,
    /// Tasks taken over from an earlier daemon.
    pub adopted: u64,
    /// Tasks whose recorded state was mended to the facts.
    pub repaired: u64,
    /// What the last pass could not judge.
    pub errors: Vec<ReconcileError>,
}

/// What waits to go out, and what did not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct DeliveryCounts {
    /// Still to go.
    pub pending: u64,
    /// Given up.
    pub dead: u64,
    /// Wakes that were not needed.
    #[serde(default)]
    pub superseded: u64,
}

/// Where the configuration in force was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ConfigurationSource {
    /// In the file.
    File,
    /// Nowhere: there was no file.
    Defaults,
    /// In the copy of the last good file: the file is broken.
    LastGood,
}

/// The configuration, as the daemon goes by it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConfigurationInfo {
    /// The file.
    pub path: String,
    /// Where the values in force were read.
    pub source: ConfigurationSource,
    /// What is wrong with the file now, if anything: it is not in force.
    #[serde(default)]
    pub problem: Option<String>,
    /// Whether the file says something else by now than what is in force.
    #[serde(default)]
    pub changed: bool,
    /// Whether HOMING_RECONCILE_INTERVAL is in force instead of the file's interval.
    #[serde(default)]
    pub interval_is_set: bool,
    /// Whether HOMING_LOG is in force instead of the file's `log.level`.
    #[serde(default)]
    pub log_is_set: bool,
    /// What is to be said of variables that are not, or not quite, in force.
    #[serde(default)]
    pub variables: Vec<String>,
    /// What is in force: sections, keys and values as in the file, defaults included.
    pub values: serde_json::Value,
}

/// A task that did not end well.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RecentFailure {
    /// Which.
    pub task_id: TaskId,
    /// Its name, or else its command.
    pub title: String,
    /// Whose it is.
    pub owner: String,
    /// How it ended.
    pub status: Status,
    /// Why, where that is known: the reason, the exit code or the signal, in words.
    #[serde(default)]
    pub reason: Option<String>,
    /// When it ended.
    #[serde(default)]
    pub ended_at: Option<Timestamp>,
}

/// Answer of `GET /v1/status`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StatusAnswer {
    /// Who serves.
    pub daemon: DaemonInfo,
    /// Tasks.
    pub tasks: TaskCounts,
    /// Tasks that are not forgotten, by status; what is not named there is none of.
    #[serde(default)]
    pub statuses: BTreeMap<String, u64>,
    /// The tasks that were submitted last among those that failed, timed out, could not be started or were lost; at most five.
    #[serde(default)]
    pub failures: Vec<RecentFailure>,
    /// Notices that wait in inboxes.
    #[serde(default)]
    pub inbox: u64,
    /// The safety net.
    pub reconcile: ReconcileInfo,
    /// Deliveries.
    pub deliveries: DeliveryCounts,
    /// The configuration; absent from an engine that was given one by its program.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub configuration: Option<ConfigurationInfo>,
    /// The loopback listener; absent from an engine that no server serves.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub listener: Option<ListenerInfo>,
}

/// Body of `POST /v1/listener`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ListenerRequest {
    /// The port to listen at: any if it is 0; the one it has, or had, if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
}

/// The loopback listener.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ListenerInfo {
    /// Whether it is open.
    pub enabled: bool,
    /// Its port, while it is open.
    pub port: Option<u16>,
    /// Where it listens: `http://127.0.0.1:PORT`, `http://[::1]:PORT`.
    pub addresses: Vec<String>,
    /// Why it is not open, though it should be.
    pub problem: Option<String>,
    /// Connections now.
    pub connections: u64,
    /// Requests since the daemon's start that were not let in.
    pub refused: u64,
    /// Of those, requests without the token.
    pub failed_auth: u64,
}

/// Answer of `POST /v1/token/rotate`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct RotateAnswer {
    /// Always true: the old token is worth nothing.
    pub rotated: bool,
}

/// Answer of `POST /v1/page`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct PageAnswer {
    /// Opens the page in a browser and signs it in. Good once.
    pub url: String,
    /// For how long.
    pub valid_ms: u64,
}

/// Answer of `POST /v1/config/reload`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ReloadAnswer {
    /// The file.
    pub path: String,
    /// Whether it said something else than what was in force.
    pub changed: bool,
}

/// Answer of `POST /v1/gc`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct GcAnswer {
    /// Finished tasks turned into tombstones.
    pub forgotten: u64,
    /// Tombstones past their time.
    pub tombstones_removed: u64,
    /// Bytes of output freed.
    pub bytes_freed: u64,
}

/// Why a stream of events could not go on from a cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ResetReason {
    /// Events after it are no longer kept.
    TooOld,
    /// It is beyond the newest event: it comes from another home, or from before a backup was put back.
    Unknown,
}

/// Data of a `reset` event in `GET /v1/events`: what to begin anew with. It holds all that events up to `seq` tell of tasks, and the stream
/// goes on after it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EventsReset {
    /// The cursor to go on from; also the event's id.
    pub seq: u64,
    /// Always `reset`.
    #[serde(rename = "type")]
    pub kind: ResetKind,
    /// When the tasks were read.
    pub at: Timestamp,
    /// Why the cursor was of no use.
    pub reason: ResetReason,
    /// Events up to this one are no longer kept.
    pub trimmed_to: u64,
    /// Live tasks first, then ended ones, each newest first; the rest is `GET /v1/tasks` with `next_cursor`.
    pub tasks: Page<Task>,
}

/// The word in the place of an event's type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ResetKind {
    /// The only one.
    #[default]
    Reset,
}

/// Data of an `output` event in `GET /v1/tasks/{id}/follow`; the event's id is the next offset.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OutputChunk {
    /// Offset of the first byte.
    pub offset: u64,
    /// Bytes in this chunk.
    pub bytes: u64,
    /// The bytes as text, where they are UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub text: Option<String>,
    /// The bytes in base64, where they are not.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub base64: Option<String>,
}

/// Data of a `gap` event: bytes that are no longer kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OutputGap {
    /// Offset of the first missing byte.
    pub offset: u64,
    /// How many are missing.
    pub bytes: u64,
}
