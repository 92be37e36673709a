//! How many tasks and deliveries there are, by state.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
