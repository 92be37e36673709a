//! How long finished tasks are kept.

use std::time::Duration;

/// Whichever limit is reached first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// A finished task is kept this long.
    pub age: Duration,
    /// At most so many finished tasks.
    pub count: u64,
    /// At most so much output of finished tasks.
    pub bytes: u64,
    /// A tombstone answers for this long.
    pub tombstones: Duration,
}

impl Default for Policy {
    fn default() -> Self {
        const DAY: u64 = 86_400;
        Self {
            age: Duration::from_secs(7 * DAY),
            count: 10_000,
            bytes: 4 << 30,
            tombstones: Duration::from_secs(90 * DAY),
        }
    }
}
