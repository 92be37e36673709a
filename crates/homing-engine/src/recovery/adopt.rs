//! Taking over what an earlier engine left, before anybody is served. Keeps P3 and P4.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use homing_model::{Kind, TaskId};
use homing_store::{Record, store};
use homing_sys::home::{self, START_MARKER};
use tokio::sync::oneshot;

use crate::engine::Inner;
use crate::external;
use crate::retention;
use crate::supervisor::{self, Begin};

/// How long all tasks together may take until their state is certain.
const PATIENCE: Duration = Duration::from_secs(10);

/// Adopts every task that has not ended, all at once, and returns when the state of each is certain.
pub(crate) async fn all(inner: &Arc<Inner>) -> Result<(), store::Error> {
    let (records, damaged) = inner.store.live().await?;
    for error in damaged {
        tracing::error!(%error, "a task cannot be read; the others are not affected");
    }
    let known: HashSet<TaskId> = records.iter().map(|record| record.id.clone()).collect();
    let waiting: Vec<_> = records.into_iter().filter_map(|record| one(inner, record)).collect();
    // A task whose command or shim hangs must not keep the others from being served; its attendant goes on.
    let deadline = tokio::time::Instant::now() + PATIENCE;
    for settled in waiting {
        let _ = tokio::time::timeout_at(deadline, settled).await;
    }
    sweep(inner, &known).await;
    Ok(())
}

/// Adopts one task, unless it is attended already.
pub(crate) fn one(inner: &Arc<Inner>, record: Record) -> Option<oneshot::Receiver<()>> {
    if record.kind == Kind::External {
        inner.reconcile.lock().adopted += 1;
        return external::adopt(inner, record);
    }
    let attendance = inner.live.enter(record.clone())?;
    let (settled, waiting) = oneshot::channel();
    inner.reconcile.lock().adopted += 1;
    tokio::spawn(supervisor::attend(Arc::clone(inner), record, attendance, Begin::Adopt, Some(settled)));
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
        if let Ok(None) = inner.store.get(id.clone()).await {
            tracing::info!(task = %id, "removing the folder of a submit that was never acknowledged");
            let _ = inner.home.remove_task(&id);
        }
    }
}
