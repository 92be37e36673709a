//! How a task ended: what the kernel said, or that nobody knows. Keeps P2.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::status::Status;
use crate::time::Timestamp;

/// The judgement on an ended attempt. One word each; the facts behind it are in [`Outcome`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Exit code 0.
    Succeeded,
    /// Another exit code or a foreign signal.
    Failed,
    /// The shim had signalled it, on request, before it saw the end.
    Stopped,
    /// The shim had signalled it, for its time limit, before it saw the end.
    TimedOut,
    /// The command was never executed.
    StartFailed,
    /// There is no record and nobody who could make one.
    Lost,
}

impl Verdict {
    /// Every verdict.
    pub const ALL: [Self; 6] =
        [Self::Succeeded, Self::Failed, Self::Stopped, Self::TimedOut, Self::StartFailed, Self::Lost];

    /// The terminal state it leads to.
    #[must_use]
    pub const fn status(self) -> Status {
        match self {
            Self::Succeeded => Status::Succeeded,
            Self::Failed => Status::Failed,
            Self::Stopped => Status::Stopped,
            Self::TimedOut => Status::TimedOut,
            Self::StartFailed => Status::StartFailed,
            Self::Lost => Status::Lost,
        }
    }
}

/// What a start failed at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StartError {
    /// There is no such program.
    NotFound,
    /// It is there, and cannot be executed.
    NotExecutable,
    /// Something else: the folder, the input, a secret, a limit.
    #[serde(other)]
    Other,
}

/// A process that outlived the task's main process, or that could not be ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Survivor {
    /// Its process id when it was seen.
    pub pid: u32,
    /// The name of its program.
    pub name: String,
}

/// The facts of an end. `exit_code` and `signal` are the kernel's or null, never invented.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Outcome {
    /// What the main process passed to `exit`.
    pub exit_code: Option<i32>,
    /// The number of the signal that ended it.
    pub signal: Option<i32>,
    /// Why, where the code does not say: `machine rebooted`, `supervisor killed`, `no such file or directory: …`.
    pub reason: Option<String>,
    /// Who asked for the end.
    pub stopped_by: Option<String>,
    /// Processes of the task that were alive when it ended.
    #[serde(default)]
    pub survivors: Vec<Survivor>,
    /// Peak resident memory of the largest process, where the kernel told.
    #[serde(default)]
    pub max_rss_bytes: u64,
    /// Processor time, user and system, of the main process and the children it waited for.
    #[serde(default)]
    pub cpu_ms: u64,
    /// For `start_failed`: what the start failed at; not there for ends that earlier releases recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_error: Option<StartError>,
}

/// All that is known when an attempt ends; what the one transaction of an end records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ending {
    /// The judgement.
    pub verdict: Verdict,
    /// The facts.
    pub outcome: Outcome,
    /// When the command was executed, if it was.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Timestamp,
    /// How long it ran by the monotonic clock, if it ran and somebody measured.
    pub duration_ms: Option<u64>,
    /// The main process, if it was known.
    pub pid: Option<u32>,
    /// Bytes of output written in all.
    pub output_bytes: u64,
    /// Of those, bytes no longer kept.
    pub output_dropped: u64,
}

impl Ending {
    /// An end that nobody saw.
    #[must_use]
    pub fn lost(reason: impl Into<String>, survivors: Vec<Survivor>, now: Timestamp) -> Self {
        Self {
            verdict: Verdict::Lost,
            outcome: Outcome { reason: Some(reason.into()), survivors, ..Outcome::default() },
            started_at: None,
            ended_at: now,
            duration_ms: None,
            pid: None,
            output_bytes: 0,
            output_dropped: 0,
        }
    }

    /// An attempt that never ran and never will.
    #[must_use]
    pub fn never_started(verdict: Verdict, reason: impl Into<String>, now: Timestamp) -> Self {
        let start_error = (verdict == Verdict::StartFailed).then_some(StartError::Other);
        let outcome = Outcome { reason: Some(reason.into()), start_error, ..Outcome::default() };
        Self { verdict, outcome, ..Self::lost("", Vec::new(), now) }
    }
}
