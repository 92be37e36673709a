//! Forgetting: finished tasks become tombstones, and their folders go. Keeps P12.
//!
//! The ledger first, then the folder: a crash in between leaves a folder that nobody will ask for, never a task whose output vanished; the
//! next start removes it, and what an agent kept of its session before it. A folder that a shim still holds, because children outlived the task, stays until the shim has left.
//! Paced, because deleting thousands of folders at once slows some filesystems for a minute.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use homing_api::GcAnswer;
use homing_model::{Task, TaskId};
use homing_shim::folder;
use homing_store::store::{self, Applied};

use crate::agent::sessions::{self, ReleasedSession};
use crate::engine::{Engine, Inner};
use crate::error::Error;
use crate::home::Home;
use crate::query::view;
use crate::run_blocking;

/// Tasks forgotten in one step.
const STEP: u32 = 64;
/// Steps of one pass at most, and what it pauses between two of them: a pass ends in a few seconds, however much there is to forget.
const STEPS: u32 = 64;
const BREATH: Duration = Duration::from_millis(50);
/// Before a folder that could not be removed is tried again: longer each time, up to the second.
const RETRY: Duration = Duration::from_millis(100);
const RETRY_MOST: Duration = Duration::from_secs(600);
/// A shim that has nobody left leaves as soon as it hears that its end is recorded; how often to look, and how long to pause.
const LOOKS: u32 = 100;
const PAUSE: Duration = Duration::from_millis(10);

/// Goes on until nothing is past its retention, paced and bounded: the next pass goes on. On cancel (shutdown) it ends between two steps.
pub(crate) async fn pass(inner: &Arc<Inner>) -> Result<(), store::Error> {
    for _ in 0..STEPS {
        if !step(inner).await?.1 {
            break;
        }
        tokio::select! {
            () = inner.shutdown.cancelled() => break,
            () = tokio::time::sleep(BREATH) => {}
        }
    }
    Ok(())
}

/// One step of retention, and whether there may be more to do.
async fn step(inner: &Arc<Inner>) -> Result<(GcAnswer, bool), store::Error> {
    let policy = inner.config().retention.policy();
    // Both are asked for at once, as in the pass.
    let retired = inner.store.retire(policy, inner.now(), STEP);
    let trimmed = inner.store.trim(policy, inner.now(), STEP * 16);
    let mut answer = GcAnswer::default();
    let mut left = Vec::new();
    for task in retired.await? {
        answer.forgotten += 1;
        if remove_folder(inner, &task.id).await {
            answer.bytes_freed += task.output_bytes;
        } else {
            left.push(task.id);
        }
    }
    remove_later(inner, left);
    if answer.forgotten > 0 {
        inner.bump();
    }
    let trimmed = trimmed.await?;
    answer.tombstones_removed = trimmed.tombstones;
    let more = trimmed.more || answer.forgotten >= u64::from(STEP);
    Ok((answer, more))
}

/// Removes the folders of those among these tasks that were forgotten. On cancel (shutdown) it ends between two tasks; the next start goes on.
///
/// A folder of a task that the ledger does not know at all stays: whoever had to start with a new ledger finds his output there.
pub(crate) async fn remove_forgotten(inner: Arc<Inner>, tasks: Vec<TaskId>) {
    let mut left = Vec::new();
    for id in tasks {
        let found = tokio::select! {
            () = inner.shutdown.cancelled() => return,
            found = inner.store.get(id.clone()) => found,
        };
        if matches!(found, Ok(Some(record)) if record.forgotten) && !remove_folder(&inner, &id).await {
            left.push(id);
        }
    }
    remove_later(&inner, left);
}

/// Removes a folder; false if it has to be tried again.
async fn remove_folder(inner: &Arc<Inner>, id: &TaskId) -> bool {
    match try_remove(inner, id).await {
        Ok(removed) => removed,
        Err(error) => {
            tracing::warn!(task = %id, %error, "the folder of a forgotten task could not be removed; trying again later");
            false
        }
    }
}

async fn try_remove(inner: &Arc<Inner>, id: &TaskId) -> io::Result<bool> {
    let agent = match inner.store.get(id.clone()).await {
        Ok(record) => record.and_then(|record| record.agent),
        // Whatever its row once said of an agent: the folder goes all the same.
        Err(store::Error::BadRow { .. }) => None,
        Err(error) => return Err(io::Error::other(error)),
    };
    let session = sessions::to_remove(inner, id, agent).await.map_err(io::Error::other)?;
    let (inner, id) = (Arc::clone(inner), id.clone());
    run_blocking(move || remove_unless_held(&inner.home, &id, session.as_ref())).await?
}

/// False if a living shim holds it. What an agent kept goes first: while the folder is there, there is something to do.
fn remove_unless_held(home: &Home, id: &TaskId, session: Option<&ReleasedSession>) -> io::Result<bool> {
    match home.open_task(id) {
        // The lock goes with the descriptor, after the folder.
        Ok(held) if folder::lock(&held)? => {
            if let Some(Err(error)) = session.map(sessions::remove) {
                tracing::warn!(task = %id, %error, "what its agent kept of the session could not be removed");
            }
            home.remove_task(id).map(|()| true)
        }
        Ok(_) => Ok(false),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(error) => Err(error),
    }
}

/// Tries again until these folders are gone. On cancel (shutdown) they are left to the next start; errors were told the first time.
fn remove_later(inner: &Arc<Inner>, mut left: Vec<TaskId>) {
    if left.is_empty() {
        return;
    }
    let inner = Arc::clone(inner);
    tokio::spawn(async move {
        let mut pause = RETRY;
        while !left.is_empty() {
            tokio::select! {
                () = inner.shutdown.cancelled() => return,
                () = tokio::time::sleep(pause) => {}
            }
            pause = (pause * 2).min(RETRY_MOST);
            let mut still = Vec::new();
            for id in left {
                if !try_remove(&inner, &id).await.unwrap_or(false) {
                    still.push(id);
                }
            }
            left = still;
        }
    });
}

/// Whether a shim holds the folder of a task that has ended, and not only for the moment that it takes to leave.
async fn is_held(inner: &Inner, id: &TaskId) -> bool {
    let Ok(folder) = inner.home.open_task(id) else { return false };
    for _ in 0..LOOKS {
        match folder::lock(&folder) {
            Ok(false) => tokio::time::sleep(PAUSE).await,
            Ok(true) | Err(_) => return false,
        }
    }
    true
}

impl Engine {
    /// Forgets everything that is past its retention, now.
    ///
    /// # Errors
    /// If the ledger cannot be written.
    pub async fn gc(&self) -> Result<GcAnswer, Error> {
        let mut total = GcAnswer::default();
        loop {
            let (done, more) = step(&self.inner).await?;
            total.forgotten += done.forgotten;
            total.tombstones_removed += done.tombstones_removed;
            total.bytes_freed += done.bytes_freed;
            if !more {
                return Ok(total);
            }
        }
    }

    /// Forgets one finished task; its tombstone still answers.
    ///
    /// # Errors
    /// While it is live, or children that outlived it are.
    pub async fn forget(&self, id: &TaskId) -> Result<Task, Error> {
        let known = self.inner.record(id).await?;
        if known.status.is_terminal() && !known.forgotten && is_held(&self.inner, id).await {
            return Err(Error::Live(id.clone()));
        }
        let record = match self.inner.store.forget(id.clone(), self.inner.now()).await? {
            Applied::Done(record) => record,
            Applied::Rejected(record) if record.forgotten => record,
            Applied::Rejected(_) => return Err(Error::Live(id.clone())),
            Applied::Unknown => return Err(Error::Unknown(id.to_string())),
        };
        self.inner.ends.announce(&record);
        self.inner.bump();
        // What was forgotten before is being removed already, or will be at the next start.
        if !remove_folder(&self.inner, id).await && !known.forgotten {
            remove_later(&self.inner, vec![id.clone()]);
        }
        Ok(view::task(&self.inner, record))
    }
}
