//! The event log.

use homing_model::{EventKind, Timestamp};

use super::{EventFilter, Events, Op};

/// The event log.
pub trait EventLog: Send + Sync + 'static {
    /// Appends an event that concerns no task.
    fn note(&self, kind: EventKind, data: serde_json::Value, now: Timestamp) -> Op<u64>;

    /// Events after a cursor, at most `limit` of them.
    fn events(&self, after: u64, filter: EventFilter, limit: u32) -> Op<Events>;

    /// The newest event's cursor.
    fn last_event(&self) -> Op<u64>;

    /// Says which start of the machine this is. After another one than the last, events that were told may be gone, since not all of them are
    /// synced: the next ones are numbered on from far beyond them, so that no number is told twice.
    fn booted(&self, boot_id: String) -> Op<()>;
}
