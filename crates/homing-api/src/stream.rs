//! Parts of an output, and of the event stream.

use crate::tasks::Page;
use homing_model::{Task, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
