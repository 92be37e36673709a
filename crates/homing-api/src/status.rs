//! Status of the daemon, its configuration and its upkeep.

use std::collections::BTreeMap;

use crate::listener::ListenerInfo;
use homing_model::counts::{DeliveryCounts, TaskCounts};
use homing_model::{Status, TaskId, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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

/// A background loop of the daemon.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BackgroundLoop {
    /// Its name.
    pub name: String,
    /// What it does.
    pub purpose: String,
    /// False after it returned or panicked.
    pub running: bool,
    /// How often it runs; null if it runs on events only.
    #[serde(default)]
    pub period_ms: Option<u64>,
    /// How often it ran since the daemon started.
    pub runs: u64,
    /// When it last ran.
    #[serde(default)]
    pub last_run_at: Option<Timestamp>,
    /// The last error of a run.
    #[serde(default)]
    pub last_error: Option<String>,
    /// When that was.
    #[serde(default)]
    pub last_error_at: Option<Timestamp>,
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
    /// The daemon's background loops.
    #[serde(default)]
    pub background: Vec<BackgroundLoop>,
    /// Deliveries.
    pub deliveries: DeliveryCounts,
    /// The configuration; absent from an engine that was given one by its program.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub configuration: Option<ConfigurationInfo>,
    /// The loopback listener; absent from an engine that no server serves.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub listener: Option<ListenerInfo>,
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
