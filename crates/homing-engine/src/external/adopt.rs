//! Taking over tracked tasks from an earlier engine, and making sure that none is forgotten. Keeps P4.

use std::sync::Arc;

use homing_store::{Record, Tracking};
use tokio::sync::oneshot;

use super::foreign::{self, Absent};
use super::{lose, track};
use crate::engine::Inner;
use crate::recovery::reconcile;

/// Puts a task on the roll: its lease begins anew, its process is looked for. Tells when its state is certain, where that takes a moment.
pub(crate) fn adopt(inner: &Arc<Inner>, record: Record) -> Option<oneshot::Receiver<()>> {
    let reason = match record.tracking {
        Some(Tracking::Process { pid, start }) => {
            if record.boot_id == inner.boot_id {
                match foreign::open(pid) {
                    // Another process may have got its number since.
                    Ok(found) if found.start == start => {
                        track::begin(inner, record, Some(found), false);
                        return None;
                    }
                    Ok(_) | Err(Absent::Gone | Absent::Thread) => foreign::ended(pid),
                    Err(Absent::System(error)) => {
                        tracing::warn!(task = %record.id, %error, "a process cannot be watched now; the next pass tries again");
                        reconcile::note_error(inner, &record.id, "process", &error.to_string());
                        return None;
                    }
                }
            } else {
                "machine rebooted".to_owned()
            }
        }
        Some(Tracking::Lease { .. }) => {
            track::begin(inner, record, None, false);
            return None;
        }
        None => "the ledger does not say by what it is tracked".to_owned(),
    };
    let (settled, waiting) = oneshot::channel();
    let inner = Arc::clone(inner);
    tokio::spawn(async move {
        lose::lose(inner, record, reason).await;
        let _ = settled.send(());
    });
    Some(waiting)
}

/// Whether a task that the ledger calls live is on the roll; the pass asks, and takes it over if it is not. True if that was done.
pub(crate) async fn mend(inner: &Arc<Inner>, record: &Record) -> bool {
    if inner.live.contains(&record.id) || inner.roll.attends(&record.id) {
        return false;
    }
    // Whoever watched its process is gone without a word.
    inner.roll.leave(&record.id);
    // It may have changed or ended since the list was read.
    let record = match inner.store.get(record.id.clone()).await {
        Ok(Some(record)) if !record.status.is_terminal() => record,
        Ok(_) => return false,
        Err(error) => {
            reconcile::note_error(inner, &record.id, "store", &error.to_string());
            return false;
        }
    };
    let id = record.id.clone();
    let settled = adopt(inner, record);
    if let Some(settled) = settled {
        let _ = tokio::time::timeout(reconcile::PATIENCE, settled).await;
    } else if matches!(inner.store.get(id.clone()).await, Ok(Some(record)) if record.status.is_terminal()) {
        // It ended before it was on the roll.
        inner.roll.leave(&id);
    }
    inner.roll.attends(&id)
}
