//! A shim that somebody has stopped (SIGSTOP) hears nothing. A stop sets it going again; and if it is stopped over and over, ends it. Keeps P8.

use std::sync::Arc;
use std::time::Duration;

use homing_store::Record;
use homing_sys::process::{self, Process};
use rustix::process::Signal;

use crate::admission::ancestry;
use crate::engine::Inner;
use crate::query::wait;

/// A task's shim: by its own word, else as the parent of the main process.
fn shim(inner: &Inner, record: &Record) -> Option<Process> {
    // A pid that the ledger names may be another's by now, unless its environment says that it is not.
    let main = || {
        let pid = record.pid.filter(|_| !record.status.is_terminal())?;
        process::stat(pid).filter(|_| process::has_variable(pid, "HOMING_TASK_ID", record.id.as_str()))
    };
    let said = || {
        let known = inner.live.shim(&record.id)?;
        ancestry::shim(known.pid).filter(|now| now.start == known.start)
    };
    let found = || ancestry::shim(main()?.parent);
    said().or_else(found)
}

/// Sets a task's shim going if it was stopped.
pub(crate) fn thaw(inner: &Inner, record: &Record) {
    if let Some(shim) = shim(inner, record) {
        thaw_process(&shim);
    }
}

/// Sets this process going if it was stopped.
pub(crate) fn thaw_process(process: &Process) {
    if process.frozen {
        tracing::warn!(pid = process.pid, "a shim was stopped by a signal; continuing it");
    }
    // Always: a stop that it has not taken note of yet is taken back by this, and to one that runs it is nothing.
    process::signal(process, Signal::CONT.as_raw());
}

/// Sees a stop through: a shim that stands still after all the time that the stop may take is killed, and its tree is ended as that of
/// any killed shim. On cancel (shutdown) nothing is lost: the stop is recorded, and sent again by the next daemon.
pub(crate) async fn see_through(inner: Arc<Inner>, record: Record, patience: Duration) {
    let mut end = inner.ends.subscribe(&record.id);
    tokio::select! {
        () = inner.shutdown.cancelled() => return,
        _ = wait::next_end(&mut end) => return,
        () = tokio::time::sleep(patience) => {}
    }
    if let Some(shim) = shim(&inner, &record).filter(|shim| shim.frozen) {
        tracing::error!(task = %record.id, pid = shim.pid, "a shim is kept from ending its task; killing it");
        process::signal(&shim, Signal::KILL.as_raw());
    }
}
