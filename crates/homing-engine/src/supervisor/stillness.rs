//! What the shim says of its tree, standing still or going on, into the ledger. Keeps P2 and P3.
//!
//! The shim's word is the fact and the ledger follows it: what was asked for decides nothing. A daemon that dies between the order and its record
//! leaves a shim that says the same to the next one, and there is nothing to take back.

use std::sync::Arc;

use homing_model::Timestamp;
use homing_shim::wire::Stillness;
use homing_store::store::{self, Applied};

use super::attendant::Attendant;

impl Attendant {
    /// The shim said whether the tree stands still.
    pub(super) async fn heard_stillness(&mut self, stillness: Stillness) {
        self.inner.live.set_stillness(&self.record.id, stillness);
        self.unrecorded = Some(stillness);
        self.record_stillness().await;
    }

    /// Records what was said last. What the ledger cannot take now is tried again; orders are passed on meanwhile.
    pub(super) async fn record_stillness(&mut self) {
        let Some(stillness) = self.unrecorded.take() else { return };
        // News of the start that came after this would be late news.
        if let Some(starting) = self.starting.take() {
            let _ = starting.await;
        }
        let inner = Arc::clone(&self.inner);
        let at = stillness.since.map_or_else(|| inner.now(), Timestamp::from_millis);
        let attempt = self.record.attempt();
        let recorded =
            if stillness.paused { inner.store.paused(attempt, at) } else { inner.store.resumed(attempt, at) };
        match recorded.await {
            Ok(Applied::Done(record)) => {
                inner.live.update(&record);
                inner.bump();
            }
            // It is so already, or on its way to the end.
            Ok(Applied::Rejected(_) | Applied::Unknown) | Err(store::Error::Closed) => {}
            Err(error) => {
                tracing::warn!(task = %self.record.id, %error, "whether a task is paused could not be recorded");
                crate::recovery::reconcile::note_error(&inner, &self.record.id, "pause", &error.to_string());
                self.unrecorded = Some(stillness);
            }
        }
    }
}
