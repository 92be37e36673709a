//! The states of a task.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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

impl Status {
    /// Every status, in the order of a life.
    pub const ALL: [Self; 11] = [
        Self::Queued,
        Self::Starting,
        Self::Running,
        Self::Paused,
        Self::Stopping,
        Self::Succeeded,
        Self::Failed,
        Self::Stopped,
        Self::TimedOut,
        Self::StartFailed,
        Self::Lost,
    ];

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

    /// The word that every surface uses.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Paused => "paused",
            Self::Stopping => "stopping",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Stopped => "stopped",
            Self::TimedOut => "timed_out",
            Self::StartFailed => "start_failed",
            Self::Lost => "lost",
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Why a text is not a status.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a status; statuses are queued, starting, running, paused, stopping, succeeded, failed, stopped, timed_out, start_failed, lost"
)]
pub struct Unknown(String);

impl FromStr for Status {
    type Err = Unknown;

    fn from_str(text: &str) -> Result<Self, Unknown> {
        Self::ALL.into_iter().find(|status| status.as_str() == text).ok_or_else(|| Unknown(text.to_owned()))
    }
}
