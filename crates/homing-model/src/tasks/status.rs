//! The states of a task.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::words::words;

/// Where a task is in its life. The last six are terminal and never change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Accepted, waiting for its turn.
    Queued,
    /// Its turn has come; durable before anything is spawned.
    Starting,
    /// The command runs.
    Running,
    /// Somebody asked for the whole tree to stand still, and it does.
    Paused,
    /// Its end was asked for.
    Stopping,
    /// Exit code 0.
    Succeeded,
    /// Another exit code, or a signal that was not ours.
    Failed,
    /// Ended by a signal that the shim sent because someone asked.
    Stopped,
    /// Ended by the shim because its time was up.
    TimedOut,
    /// The command could not be started.
    StartFailed,
    /// Nobody knows how it ended, and nobody will pretend to.
    Lost,
}

words! {
    Status is "a status; statuses are queued, starting, running, paused, stopping, succeeded, failed, stopped, timed_out, start_failed, lost":
    Queued = "queued",
    Starting = "starting",
    Running = "running",
    Paused = "paused",
    Stopping = "stopping",
    Succeeded = "succeeded",
    Failed = "failed",
    Stopped = "stopped",
    TimedOut = "timed_out",
    StartFailed = "start_failed",
    Lost = "lost",
}

impl Status {
    /// Whether this is an end.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        match self {
            Self::Queued | Self::Starting | Self::Running | Self::Paused | Self::Stopping => false,
            Self::Succeeded
            | Self::Failed
            | Self::Stopped
            | Self::TimedOut
            | Self::StartFailed
            | Self::Lost => true,
        }
    }

    /// Whether a shim may exist for it.
    #[must_use]
    pub const fn is_active(self) -> bool {
        matches!(self, Self::Starting | Self::Running | Self::Paused | Self::Stopping)
    }
}
