//! Accepting tasks, and claiming those that wait.

use homing_model::Timestamp;

use super::SqliteStore;
use crate::record::Record;
use crate::sqlite::tasks::submit;
use crate::sqlite::threads::writer::Durability::Full;
use crate::store::Queue;
use crate::store::{Answered, ClaimQueued, Idempotency, Op, Submit, Submitted};

impl Queue for SqliteStore {
    fn submit(&self, task: Submit, now: Timestamp) -> Op<Submitted> {
        self.writer.run(Full, move |conn| submit::submit(conn, task, now))
    }

    fn claim_queued(&self, claim: ClaimQueued) -> Op<Vec<Record>> {
        // Full: a command that was started before a power cut must not be started again after it.
        self.writer.run(Full, move |conn| submit::claim_queued(conn, &claim))
    }

    fn answered(&self, owner: String, request: Idempotency, now: Timestamp) -> Op<Option<Answered>> {
        self.reader.run(move |conn| submit::answered(conn, &owner, &request, now))
    }
}
