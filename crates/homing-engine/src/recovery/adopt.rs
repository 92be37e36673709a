//! Taking over what an earlier engine left, before anybody is served. Keeps P3 and P4.
//!
//! Nothing is launched here: the [scheduler] gets what is found.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use homing_model::{Kind, Status, TaskId};
use homing_store::{Record, store};
use homing_sys::home::{self, START_MARKER};
use tokio::sync::oneshot;

use crate::engine::Inner;
use crate::{external, retention, scheduler};

/// How long all tasks together may take until their state is certain.
const PATIENCE: Duration = Duration::from_secs(10);

/// Adopts every task that has not ended, all at once, and returns when the state of each is certain.
pub(crate) async fn all(inner: &Arc<Inner>) -> Result<(), store::Error> {
    let (records, damaged) = inner.store.live().await?;
    for error in damaged {
        tracing::error!(%error, "a task cannot be read; the others are not affected");
    }
    let known: HashSet<TaskId> = records.iter().map(|record| record.id.clone()).collect();
    let queued = records.iter().any(|record| record.status == Status::Queued);
    let waiting: Vec<_> = records.into_iter().filter_map(|record| one(inner, record)).collect();
    // A task whose command or shim hangs must not keep the others from being served; its attendant goes on.
    let deadline = tokio::time::Instant::now() + PATIENCE;
    for settled in waiting {
        let _ = tokio::time::timeout_at(deadline, settled).await;
    }
    sweep(inner, &known).await;
    if queued {
        scheduler::claim_waiting(inner).await;
    }
    Ok(())
}

/// Adopts one task, unless it is attended already or waits.
pub(crate) fn one(inner: &Arc<Inner>, record: Record) -> Option<oneshot::Receiver<()>> {
    let adopted = || inner.reconcile.lock().adopted += 1;
    if record.kind == Kind::External {
        adopted();
        return external::adopt(inner, record);
    }
    let waiting = scheduler::resume(inner, record)?;
    adopted();
    Some(waiting)
}

/// Removes folders that no task has: of a submit that died before its commit, and of a task that was forgotten just before a crash. Only at
/// start, when nothing is being submitted.
async fn sweep(inner: &Arc<Inner>, live: &HashSet<TaskId>) {
    let Ok(entries) = std::fs::read_dir(inner.home.path().join(home::TASKS)) else { return };
    let (marked, unmarked): (Vec<_>, Vec<_>) = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<TaskId>().ok())
        .filter(|id| !live.contains(id))
        .partition(|id| inner.home.task(id).join(START_MARKER).exists());
    // There may be thousands of them, and whether they are there or not is nothing to wait for.
    tokio::spawn(retention::remove_forgotten(Arc::clone(inner), marked));
    // A task that ever began has its marker; only what never did can be unknown to the ledger.
    for id in unmarked {
        match inner.store.get(id.clone()).await {
            Ok(None) => {
                tracing::info!(task = %id, "removing the folder of a submit that was never acknowledged");
                let _ = inner.home.remove_task(&id);
            }
            // It was stopped while it waited, and the daemon died before it came to the folder.
            Ok(Some(record)) if record.status.is_terminal() => scheduler::cancelled(inner, &record),
            Ok(Some(_)) | Err(_) => {}
        }
    }
}
