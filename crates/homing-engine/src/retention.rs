//! Forgetting: finished tasks become tombstones, and their folders go. Keeps P12.
//!
//! The ledger first, then the folder: a crash in between leaves a folder that nobody will ask for, never a task whose output vanished.
//! Paced, because deleting thousands of folders at once slows some filesystems for a minute.

use std::sync::Arc;

use homing_model::api::GcAnswer;
use homing_model::{Task, TaskId};
use homing_store::store::{self, Applied};

use crate::engine::{Engine, Inner};
use crate::error::Error;
use crate::view;

/// Tasks forgotten in one step.
const STEP: u32 = 64;

/// One paced step of retention.
pub(crate) async fn step(inner: &Arc<Inner>) -> Result<GcAnswer, store::Error> {
    let policy = inner.config().retention.policy();
    let retired = inner.store.retire(policy, inner.now(), STEP).await?;
    let mut answer = GcAnswer::default();
    for task in retired {
        answer.forgotten += 1;
        answer.bytes_freed += task.output_bytes;
        remove_folder(inner, task.id).await;
    }
    if answer.forgotten > 0 {
        inner.bump();
    }
    answer.tombstones_removed = inner.store.trim(policy, inner.now(), STEP * 16).await?;
    Ok(answer)
}

async fn remove_folder(inner: &Arc<Inner>, id: TaskId) {
    let inner = Arc::clone(inner);
    let removed =
        tokio::task::spawn_blocking(move || inner.home.remove_task(&id).map_err(|error| (id, error))).await;
    if let Ok(Err((id, error))) = removed {
        tracing::warn!(task = %id, %error, "the folder of a forgotten task could not be removed");
    }
}

impl Engine {
    /// Forgets everything that is past its retention, now.
    ///
    /// # Errors
    /// If the ledger cannot be written.
    pub async fn gc(&self) -> Result<GcAnswer, Error> {
        let mut total = GcAnswer::default();
        loop {
            let done = step(&self.inner).await?;
            total.forgotten += done.forgotten;
            total.tombstones_removed += done.tombstones_removed;
            total.bytes_freed += done.bytes_freed;
            if done.forgotten < u64::from(STEP) && done.tombstones_removed == 0 {
                return Ok(total);
            }
        }
    }

    /// Forgets one finished task; its tombstone still answers.
    ///
    /// # Errors
    /// While it is live.
    pub async fn forget(&self, id: &TaskId) -> Result<Task, Error> {
        let record = match self.inner.store.forget(id.clone(), self.inner.now()).await? {
            Applied::Done(record) => record,
            Applied::Rejected(record) if record.forgotten => record,
            Applied::Rejected(_) => return Err(Error::Live(id.clone())),
            Applied::Unknown => return Err(Error::Unknown(id.to_string())),
        };
        self.inner.ends.announce(&record);
        self.inner.bump();
        remove_folder(&self.inner, id.clone()).await;
        Ok(view::task(&self.inner, record))
    }
}
