//! Ending a task, and signals. Keeps P8.

use std::sync::Arc;
use std::time::Duration;

use homing_api::{StopAnswer, StopRequest};
use homing_model::environment::DEFAULT_OWNER;
use homing_model::units::millis;
use homing_model::{Kind, Task, TaskId};
use homing_shim::folder;
use homing_shim::wire::{self, ToShim};
use homing_store::store::Applied;
use homing_store::{Record, Stop};
use homing_sys::peer::PeerProcess;
use homing_sys::process;
use tokio::io::AsyncReadExt;
use tokio::sync::oneshot;

use crate::engine::{Engine, Inner};
use crate::entropy;
use crate::error::Error;
use crate::query::view;
use crate::query::wait;
use crate::recovery::adopt;
use crate::scheduler;
use crate::supervisor;
use crate::supervisor::live::Command;
use crate::supervisor::orphans;
use crate::supervisor::recover;
use crate::supervisor::thaw;

/// Beyond the grace, for the last signal and a look at who is left.
const PATIENCE: Duration = Duration::from_secs(3);
/// A shim sends a signal at once; one that stands still, when it goes on.
const SENT: Duration = Duration::from_secs(10);

impl Engine {
    /// Ends a task's whole tree: politely, then not, then making sure. One that has ended is not changed; children that outlived it are ended.
    ///
    /// # Errors
    /// If there is no such task, or the request cannot be recorded.
    pub async fn stop(&self, id: &TaskId, request: StopRequest) -> Result<StopAnswer, Error> {
        let inner = &self.inner;
        let signal = request.signal.as_deref().map(process::signal_number).transpose();
        let signal = signal.map_err(|error| Error::BadParameter(error.to_string()))?;
        let by = request.by.unwrap_or_else(|| DEFAULT_OWNER.to_owned());
        if by.len() > 200 || by.chars().any(char::is_control) {
            return Err(Error::BadParameter(
                "`by` is longer than 200 bytes or contains control characters".into(),
            ));
        }
        let asked = Stop { by: by.clone(), signal, grace_ms: request.grace_ms };
        let at_most = Some(inner.config().notify.on);
        let record =
            match inner.store.stop_requested(id.clone(), asked, entropy::draw(), at_most, inner.now()).await?
            {
                // It was waiting, or someone else runs it: that was the end.
                Applied::Done(record) if record.status.is_terminal() => {
                    inner.roll.leave(id);
                    scheduler::cancelled(inner, &record);
                    inner.announce(&record);
                    return Ok(StopAnswer { stopping: true, task: view::task(inner, record) });
                }
                Applied::Done(record) => {
                    inner.live.update(&record);
                    inner.bump();
                    record
                }
                Applied::Rejected(record) => record,
                Applied::Unknown => return Err(Error::Unknown(id.to_string())),
            };
        // What the kernel cannot end is named after the grace and a moment; nobody waits longer for it.
        let grace = grace_ms(inner, request.grace_ms, &record);
        let patience = Duration::from_millis(grace).saturating_add(PATIENCE);
        let stop = wire::Stop { grace_ms: Some(grace), signal, by: Some(by) };
        if record.status.is_terminal() && inner.live.commands(id).is_none() {
            let ended = end_leftovers(inner, &record, stop, request.wait);
            let _ = tokio::time::timeout(patience, ended).await;
            return Ok(StopAnswer { stopping: false, task: view::task(inner, record) });
        }
        let stopping = !record.status.is_terminal();
        thaw::thaw(inner, &record);
        if stopping {
            tokio::spawn(thaw::see_through(Arc::clone(inner), record.clone(), patience));
            // A shim that stood still when this daemon started could not be adopted: now it can, and is told of the stop then.
            drop(adopt::one(inner, record.clone()));
        }
        if let Some(commands) = inner.live.commands(id) {
            let _ = commands.send(Command::Stop(stop)).await;
            if request.wait && !stopping {
                // Its children outlived it, and its attendant stays for as long as they do.
                let _ = tokio::time::timeout(patience, commands.closed()).await;
            }
        }
        let record = if request.wait && stopping {
            // Past this only a disk that does not take the end can hold it up: then the task is stopping, and that is the answer.
            match tokio::time::timeout(patience.saturating_add(PATIENCE), wait::ended(inner, id)).await {
                Ok(ended) => ended?,
                Err(_) => inner.record(id).await?,
            }
        } else {
            record
        };
        Ok(StopAnswer { stopping, task: view::task(inner, record) })
    }

    /// Sends a signal to the main process's group. Whoever is told that the shim does not answer may find it sent later.
    ///
    /// # Errors
    /// If the task has ended, or its shim does not answer.
    pub async fn signal(&self, id: &TaskId, number: i32) -> Result<Task, Error> {
        let inner = &self.inner;
        let record = inner.record(id).await?;
        if record.status.is_terminal() {
            return Err(Error::Ended(id.clone()));
        }
        if record.kind == Kind::External {
            return Err(Error::External { task: id.clone(), what: "there is nothing to signal" });
        }
        let asking = async {
            let (answer, sent) = oneshot::channel();
            match inner.live.commands(id) {
                Some(commands) => drop(commands.send(Command::Signal(number, answer)).await),
                None => drop(answer),
            }
            sent.await
        };
        match tokio::time::timeout(SENT, asking).await.map_err(|_| Error::Silent(id.clone()))? {
            Ok(true) => Ok(view::task(inner, inner.record(id).await?)),
            Ok(false) => Err(Error::Ended(id.clone())),
            Err(_) => Err(wait::unheard(inner, id).await),
        }
    }
}

/// Time between the first signal and SIGKILL: as the stop or the task says, else by the configuration as it is now.
pub(crate) fn grace_ms(inner: &Inner, asked: Option<u64>, record: &Record) -> u64 {
    asked.or(record.spec.grace_ms).unwrap_or_else(|| millis(inner.config().stop.grace.0))
}

/// A task that ended may have left children with its shim: a build daemon, a server. This reaches them.
async fn end_leftovers(inner: &Arc<Inner>, record: &Record, stop: wire::Stop, wait: bool) {
    let Ok(attempt) = inner.home.open_attempt(&record.attempt()) else { return };
    let Ok(mut stream) = recover::connect(&attempt).await else {
        // Their shim was killed, and nobody inherited them: the daemon ends them itself.
        if folder::lock(&attempt).is_ok_and(|free| free) {
            let left = orphans::end(inner, record).await;
            if !left.is_empty() {
                tracing::warn!(task = %record.id, ?left, "left-over processes could not be ended");
            }
        }
        return;
    };
    // Its number is looked up before it is seen to live: it is then the shim's, and no other process is signalled.
    if let Ok(peer) = PeerProcess::of(&stream)
        && let Some(shim) = peer.pid().and_then(process::stat)
        && peer.is_alive()
    {
        thaw::thaw_process(&shim);
    }
    if supervisor::send(&mut stream, &ToShim::Stop(stop)).await.is_err() {
        return;
    }
    // Its end was recorded long ago; a shim that did not hear so leaves when the tree is gone.
    if supervisor::send(&mut stream, &ToShim::Recorded).await.is_err() || !wait {
        return;
    }
    let mut buffer = [0; 256];
    while matches!(stream.read(&mut buffer).await, Ok(count) if count > 0) {}
}
