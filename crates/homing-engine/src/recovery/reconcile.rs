//! The safety net: a bounded look, now and then, at whether what the ledger says is attended really is.
//!
//! Everything normally happens by events; this pass finds nothing to do. It changes nothing about an attended task, costs nothing for ended ones, isolates
//! one bad task from the rest, and says what it did. On cancel (shutdown) it ends between two tasks. Retention is paced by it too.

use std::sync::Arc;
use std::time::Duration;

use homing_api::ReconcileError;
use homing_model::{Kind, Status, TaskId};
use homing_store::{Record, store};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::background::Reporter;
use crate::config::{Config, Retention};
use crate::engine::Inner;
use crate::external;
use crate::home_watch;
use crate::recovery::adopt;
use crate::retention;
use crate::scheduler;

/// Errors kept for the status at most.
const ERRORS: usize = 20;
/// What one pass may wait for a task that it adopts.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

/// Runs passes until the engine ends.
pub(crate) async fn run(inner: Arc<Inner>, report: Reporter) {
    let mut config = inner.config.subscribe();
    let mut applied = config.borrow().retention.clone();
    let mut after: u64 = 0;
    loop {
        tokio::select! {
            () = inner.shutdown.cancelled() => return,
            () = due(&mut config, Instant::now(), &applied) => {}
        }
        if !home_watch::look(&inner).await {
            return;
        }
        // Read before the pass: what changes during it calls for another.
        applied = inner.config().retention.clone();
        report.set_period(inner.config().reconcile.interval.0);
        report.run();
        after = pass(&inner, after, &report).await;
    }
}

/// Waits until the interval is over, as it is now and not as it was when the wait began, or retention is
/// not what the last pass applied.
async fn due(config: &mut watch::Receiver<Arc<Config>>, since: Instant, applied: &Retention) {
    loop {
        let current = Arc::clone(&config.borrow_and_update());
        if current.retention != *applied {
            return;
        }
        tokio::select! {
            () = tokio::time::sleep(current.reconcile.interval.0.saturating_sub(since.elapsed())) => return,
            Ok(()) = config.changed() => {}
        }
    }
}

/// One pass over at most `max_tasks` live tasks, from where the last one ended; answers where the next begins.
pub(crate) async fn pass(inner: &Arc<Inner>, after: u64, report: &Reporter) -> u64 {
    let began = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let config = inner.config();
    let mut next = 0;
    // Both are asked for at once: the ledger's threads and this one are woken once.
    let (live, unending) = (inner.store.live(), inner.store.release_unending());
    match live.await {
        Ok((records, damaged)) => {
            inner.reconcile.lock().errors.clear();
            for error in damaged {
                tracing::error!(%error, "a task cannot be read");
                if let store::Error::BadRow { task, .. } = &error
                    && let Ok(id) = task.parse()
                {
                    note_error(inner, &id, "damaged_row", &error.to_string());
                }
            }
            let limit = config.reconcile.max_tasks as usize;
            let turn: Vec<_> = records.into_iter().filter(|record| record.seq > after).take(limit).collect();
            // Fewer than may be looked at means that the last was among them: the next pass begins anew.
            next = if turn.len() < limit { 0 } else { turn.last().map_or(0, |record| record.seq) };
            if turn.iter().any(|record| record.status == Status::Queued) {
                scheduler::claim_waiting(inner).await;
            }
            for record in turn.into_iter().filter(|record| record.status != Status::Queued) {
                if record.kind == Kind::External {
                    mend_external(inner, record).await;
                } else {
                    mend(inner, record.id).await;
                }
            }
            inner.roll.nudge();
        }
        Err(error) => {
            report.error(&error);
            tracing::error!(%error, "the ledger cannot be read");
        }
    }
    match unending.await {
        Ok(0) => {}
        Ok(_) => inner.outgoing.send_modify(|count| *count += 1),
        Err(error) => tracing::error!(%error, "commands that can never end could not be looked for"),
    }
    inner.ends.prune();
    if let Err(error) = retention::pass(inner).await {
        report.error(&error);
        tracing::warn!(%error, "retention could not go on");
    }
    let ended = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let took = (ended.tv_sec - began.tv_sec) * 1000 + (ended.tv_nsec - began.tv_nsec) / 1_000_000;
    let mut info = inner.reconcile.lock();
    info.passes += 1;
    info.last_run_at = Some(inner.now());
    info.last_duration_ms = u64::try_from(took).unwrap_or(0);
    next
}

/// The same for one that somebody else runs.
async fn mend_external(inner: &Arc<Inner>, record: Record) {
    if external::mend(inner, &record).await {
        tracing::info!(task = %record.id, "a live task was not tracked; tracking it");
        inner.reconcile.lock().repaired += 1;
    }
}

/// A task that the ledger calls live and nobody attends is adopted.
async fn mend(inner: &Arc<Inner>, id: TaskId) {
    if inner.live.contains(&id) {
        return;
    }
    // It may have changed or ended since the list was read.
    let record = match inner.store.get(id.clone()).await {
        Ok(Some(record)) if !record.status.is_terminal() => record,
        Ok(_) => return,
        Err(error) => {
            note_error(inner, &id, "store", &error.to_string());
            return;
        }
    };
    tracing::info!(task = %record.id, "a live task was not attended; adopting it");
    if let Some(settled) = adopt::one(inner, record) {
        inner.reconcile.lock().repaired += 1;
        let _ = tokio::time::timeout(PATIENCE, settled).await;
    }
}

/// Keeps an error for the status.
pub(crate) fn note_error(inner: &Inner, task: &TaskId, code: &str, message: &str) {
    let mut info = inner.reconcile.lock();
    if info.errors.len() < ERRORS {
        info.errors.push(ReconcileError {
            task_id: task.clone(),
            code: code.into(),
            message: message.into(),
        });
    }
}
