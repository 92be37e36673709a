//! A notice as its task's page shows it: with its place in the owner's inbox.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::NoticeId;
use crate::time::Timestamp;

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
