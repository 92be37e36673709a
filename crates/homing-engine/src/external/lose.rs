//! The end of a task that nobody told of.

use std::sync::Arc;

use homing_model::Ending;
use homing_model::units::millis;
use homing_store::outbox::Report;
use homing_store::store::Applied;
use homing_store::{Record, store};
use tokio::time::Instant;

use crate::engine::Inner;
use crate::entropy;
use crate::recovery::reconcile;
use crate::supervisor::retry_commit::Insist;

/// Records that a task is lost, however long that takes, unless somebody ended it before. On cancel (shutdown) the next engine looks again.
pub(super) async fn lose(inner: Arc<Inner>, record: Record, reason: String) {
    let mut ending = Ending::lost(reason, Vec::new(), inner.now());
    ending.duration_ms = inner.roll.age(&record.id, Instant::now()).map(millis);
    let at_most = Some(inner.config().notify.on);
    let report = Report { entropy: entropy::draw(), at_most, ..Report::default() };
    let mut insist = Insist::default();
    loop {
        match inner.store.finish(record.attempt(), ending.clone(), report.clone()).await {
            Ok(applied) => {
                insist.done(&inner);
                inner.roll.leave(&record.id);
                if let Applied::Done(record) = applied {
                    inner.announce(&record);
                }
                return;
            }
            Err(store::Error::Closed) => return,
            // Its own trouble, not the ledger's: the next pass looks again.
            Err(error @ store::Error::BadRow { .. }) => {
                reconcile::note_error(&inner, &record.id, "row", &error.to_string());
                inner.roll.leave(&record.id);
                return;
            }
            Err(error) => {
                if !insist.again(&inner, &record.id, &error).await {
                    return;
                }
            }
        }
    }
}
