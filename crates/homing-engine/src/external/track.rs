//! Accepting an external task: checked here, committed as running like any task, put on the roll by the scheduler.
//!
//! Before the commit there is nothing; after it the task exists, and the next engine that opens the home puts it on the roll.

use std::sync::Arc;

use homing_model::Spec;
use homing_store::{NewTask, Record, Tracking};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::foreign::{self, Absent, Foreign};
use crate::admission::accept::{AcceptedTask, Execution, TaskOrigin};
use crate::engine::Inner;
use crate::error::Error;

/// The lease where neither one nor a process is named: so long that nobody who lives misses it, and no task is left for ever.
const LEASE_MS: u64 = 24 * 3_600 * 1_000;

/// Accepts one. Without anything to track it by, only an earlier answer to the same request is given.
pub(crate) fn accept(inner: &Inner, by: &TaskOrigin, spec: Spec) -> Result<AcceptedTask, Error> {
    let lease = Tracking::Lease { ms: spec.lease_ms.unwrap_or(LEASE_MS) };
    let (process, tracking, command) = match spec.pid.map(foreign::open) {
        Some(Ok(process)) => {
            let tracking = Tracking::Process { pid: process.pid, start: process.start };
            let command = format!("process {} ({})", process.pid, process.name);
            (Some(process), Some(tracking), command)
        }
        Some(Err(_)) => (None, None, "external task".to_owned()),
        None => (None, Some(lease), "external task".to_owned()),
    };
    let row = NewTask { tracking, ..by.row(inner, spec, command) };
    Ok(AcceptedTask { row, execution: Execution::External(process) })
}

/// A new task, once it is on the roll. Another caller may have found it in a list and ended it before.
pub(crate) async fn settled(inner: &Inner, record: Record) -> Result<Record, Error> {
    let record = inner.record(&record.id).await?;
    if record.status.is_terminal() {
        inner.roll.leave(&record.id);
    }
    Ok(record)
}

/// Puts a task on the roll and watches its process, if it has one. False if it is there already.
pub(crate) fn begin(inner: &Arc<Inner>, record: Record, foreign: Option<Foreign>, fresh: bool) -> bool {
    let now = Instant::now();
    let Some(foreign) = foreign else { return inner.roll.enter(record, now, fresh, None) };
    let (watch, cancelled) = oneshot::channel();
    let entered = inner.roll.enter(record.clone(), now, fresh, Some(watch));
    if entered {
        tokio::spawn(foreign.watch(Arc::clone(inner), record, cancelled));
    }
    entered
}

/// Why there is nothing to track a task by.
pub(crate) fn absent(pid: Option<u32>) -> Error {
    let pid = pid.unwrap_or_default();
    match foreign::open(pid) {
        Err(Absent::System(error)) => Error::Limit(format!("process {pid} cannot be watched: {error}")),
        Err(why @ (Absent::Gone | Absent::Thread)) => Error::Process { pid, why: why.to_string() },
        Ok(_) => Error::Process { pid, why: Absent::Gone.to_string() },
    }
}
