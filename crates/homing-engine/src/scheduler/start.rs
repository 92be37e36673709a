//! Handing claimed tasks to supervisors.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use homing_model::Status;
use homing_store::Record;
use homing_store::store::ClaimQueued;
use tokio::sync::oneshot;

use crate::admission::accept::Execution;
use crate::engine::Inner;
use crate::external;
use crate::supervisor::{self, Begin};

/// The maximum number of tasks that one claim reads.
const CLAIM_LIMIT: u32 = 100;

/// A task was committed. Starts it, unless it waits.
pub(crate) fn accepted(inner: &Arc<Inner>, record: Record, execution: Execution, folder: Option<OwnedFd>) {
    match (execution, folder) {
        (Execution::External(process), _) => drop(external::begin(inner, record, process, true)),
        (Execution::Command(_), _) if record.status == Status::Queued => {}
        (Execution::Command(data), Some(folder)) => {
            drop(inner.scheduler.take_secrets(&record.id));
            supervise(inner, record, Begin::Launch(folder, data.values), None);
        }
        (Execution::Command(_), None) => drop(resume(inner, record)),
    }
}

/// Claims the waiting tasks whose turn has come, and starts them.
pub(crate) async fn claim_waiting(inner: &Arc<Inner>) {
    loop {
        let claim = ClaimQueued {
            policy: inner.scheduler.policy(),
            node: inner.node.clone(),
            boot_id: inner.boot_id.clone(),
            limit: CLAIM_LIMIT,
        };
        match inner.store.claim_queued(claim).await {
            Ok(claimed) if claimed.is_empty() => return,
            Ok(claimed) => claimed.into_iter().for_each(|record| drop(resume(inner, record))),
            Err(error) => {
                tracing::warn!(%error, "waiting tasks could not be claimed; the next pass tries again");
                return;
            }
        }
    }
}

/// Has a claimed attempt supervised: the facts in its folder decide whether it is launched, listened to or ended.
/// `None` if it waits, or is supervised already; else the receiver fires when its state is certain.
pub(crate) fn resume(inner: &Arc<Inner>, record: Record) -> Option<oneshot::Receiver<()>> {
    if record.status == Status::Queued {
        return None;
    }
    let (settled, waiting) = oneshot::channel();
    supervise(inner, record, Begin::Recover, Some(settled)).then_some(waiting)
}

/// A waiting task was stopped: no value outlives it.
pub(crate) fn cancelled(inner: &Inner, record: &Record) {
    drop(inner.scheduler.take_secrets(&record.id));
    supervisor::forget_inputs(inner, record);
}

/// Starts the supervisor of a task. False if it has one.
fn supervise(inner: &Arc<Inner>, record: Record, begin: Begin, settled: Option<oneshot::Sender<()>>) -> bool {
    let Some(attendance) = inner.live.enter(record.clone()) else { return false };
    let attending = supervisor::attend(Arc::clone(inner), record, attendance, begin, settled);
    tokio::spawn(async {
        // A launch takes a while: the answer to a submit goes out first.
        tokio::task::yield_now().await;
        attending.await;
    });
    true
}
