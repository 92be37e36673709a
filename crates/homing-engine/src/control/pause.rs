//! Letting a task stand still, and go on. Keeps P1, P2 and P3.
//!
//! The order goes to the shim, which holds the tree; what it says is recorded before whoever asked is answered. Nothing is written of an order
//! as such: one that nobody survived has either reached the shim, which tells the next daemon, or never was. So asking again is always right,
//! and clients do, through a restart of the daemon.

use std::sync::Arc;
use std::time::Duration;

use homing_api::PauseAnswer;
use homing_model::{Kind, Status, TaskId};
use homing_shim::wire;
use homing_store::Record;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout, timeout_at};

use crate::engine::{Engine, Inner};
use crate::error::Error;
use crate::query::view;
use crate::query::wait;
use crate::supervisor::live::Command;

/// A command that was just accepted starts within moments.
const STARTING: Duration = Duration::from_secs(2);
/// A shim answers within this, or stands still itself.
const PATIENCE: Duration = Duration::from_secs(10);
/// Conversations with a shim that may break off before it answers.
const TRIES: u32 = 3;

/// What an attendant answers to whoever wants the tree to stand still, or to go on.
#[derive(Debug)]
pub(crate) enum Stilled {
    /// The shim's own word, which is recorded.
    Said(wire::PauseAnswer),
    /// The shim is of a release that could not do it.
    Unable,
}

impl Engine {
    /// Lets the whole tree of a task stand still, until it is resumed or stopped. Answers once it does. One that stands still already, or has
    /// ended, is not changed.
    ///
    /// # Errors
    /// If there is no such task, it has not started or is being stopped, or its tree cannot be held.
    pub async fn pause(&self, id: &TaskId) -> Result<PauseAnswer, Error> {
        still(&self.inner, id, true).await
    }

    /// Lets a paused task go on. One that runs, or has ended, is not changed.
    ///
    /// # Errors
    /// If there is no such task, it has not started or is being stopped.
    pub async fn resume(&self, id: &TaskId) -> Result<PauseAnswer, Error> {
        still(&self.inner, id, false).await
    }
}

async fn still(inner: &Arc<Inner>, id: &TaskId, paused: bool) -> Result<PauseAnswer, Error> {
    for _ in 0..TRIES {
        let record = begun(inner, id).await?;
        match record.status {
            status if status.is_terminal() => return Ok(answer(inner, record, false)),
            _ if record.kind == Kind::External => {
                let what = if paused { "there is nothing to pause" } else { "there is nothing to resume" };
                return Err(Error::External { task: id.clone(), what });
            }
            Status::Queued | Status::Starting => return Err(Error::NotStarted(id.clone())),
            Status::Stopping => return Err(Error::Stopping(id.clone())),
            _ => {}
        }
        let stilled = match inner.live.commands(id) {
            Some(commands) => {
                let (asked, said) = oneshot::channel();
                let asking = async {
                    let _ = commands.send(Command::Still(paused, asked)).await;
                    said.await.ok()
                };
                timeout(PATIENCE, asking).await.map_err(|_| Error::Silent(id.clone()))?
            }
            None => None,
        };
        let changed = match stilled {
            // The conversation broke off: whether the task has ended, or another one begins, is seen then.
            None => {
                let _ = timeout(STARTING, wait::ended(inner, id)).await;
                continue;
            }
            Some(Stilled::Unable) => return Err(Error::OldSupervisor(id.clone())),
            Some(Stilled::Said(said)) => match said {
                wire::PauseAnswer::Done => true,
                wire::PauseAnswer::Already | wire::PauseAnswer::Overtaken => false,
                wire::PauseAnswer::NotStarted => return Err(Error::NotStarted(id.clone())),
                wire::PauseAnswer::Stopping => return Err(Error::Stopping(id.clone())),
                wire::PauseAnswer::Beyond(pid, name) => {
                    return Err(Error::CannotHold { task: id.clone(), pid, name });
                }
                wire::PauseAnswer::Ended => {
                    // How, is about to be recorded.
                    let ended = timeout(PATIENCE, wait::ended(inner, id)).await;
                    return Ok(answer(inner, ended.map_err(|_| Error::Silent(id.clone()))??, false));
                }
            },
        };
        return Ok(answer(inner, inner.record(id).await?, changed));
    }
    Err(Error::Silent(id.clone()))
}

fn answer(inner: &Inner, record: Record, changed: bool) -> PauseAnswer {
    PauseAnswer { changed, task: view::task(inner, record) }
}

/// The task, once its command was executed; or as it is, if that takes longer than a start does.
async fn begun(inner: &Arc<Inner>, id: &TaskId) -> Result<Record, Error> {
    let give_up = Instant::now() + STARTING;
    let mut news = inner.events.subscribe();
    loop {
        let record = inner.record(id).await?;
        let waits = record.status == Status::Starting;
        if !waits || timeout_at(give_up, news.changed()).await.is_err() {
            return Ok(record);
        }
    }
}
