//! The event log.

use homing_model::{EventKind, Timestamp};

use super::SqliteStore;
use crate::sqlite::notices::events;
use crate::sqlite::tasks::row;
use crate::sqlite::threads::writer::Durability::{Full, Relaxed};
use crate::store::EventLog;
use crate::store::{EventFilter, Events, Op};

impl EventLog for SqliteStore {
    fn note(&self, kind: EventKind, data: serde_json::Value, now: Timestamp) -> Op<u64> {
        self.writer.run(Relaxed, move |conn| events::insert(conn, kind, now, None, &data).map(row::unsigned))
    }

    fn events(&self, after: u64, filter: EventFilter, limit: u32) -> Op<Events> {
        if let Some(found) = self.recent.after(after, &filter, limit) {
            return Box::pin(std::future::ready(Ok(found)));
        }
        self.reader.run(move |conn| events::after(conn, after, &filter, limit))
    }

    fn last_event(&self) -> Op<u64> {
        self.reader.run(|conn| events::last(conn).map(row::unsigned))
    }

    fn booted(&self, boot_id: String) -> Op<()> {
        self.writer.run_essential(Full, move |conn| events::booted(conn, &boot_id))
    }
}
