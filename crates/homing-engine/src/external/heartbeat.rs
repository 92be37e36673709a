//! A word from somebody who runs an external task: it goes on.

use homing_model::{Status, Task};
use homing_store::store::Applied;
use tokio::time::Instant;

use super::roll::Renewal;
use crate::engine::Engine;
use crate::error::Error;
use crate::query::view;

impl Engine {
    /// Renews the lease of an external task of this owner; the task says until when it holds.
    ///
    /// # Errors
    /// If this owner has no such task, or it has ended, or homing runs it itself.
    pub async fn heartbeat(&self, reference: &str, owner: &str) -> Result<Task, Error> {
        let inner = &self.inner;
        let record = self.own_external(reference, owner).await?;
        let ended = || Error::Ended(record.id.clone());
        let over = record.status != Status::Running;
        if over || inner.roll.renew(&record.id, Instant::now()) == Renewal::TooLate {
            return Err(ended());
        }
        match inner.store.heard(record.id.clone(), inner.now()).await {
            Ok(Applied::Done(record)) => {
                inner.roll.update(&record);
                Ok(view::task(inner, record))
            }
            Ok(Applied::Rejected(_) | Applied::Unknown) => Err(ended()),
            // It was heard, which is what counts; only when cannot be written down.
            Err(error) => {
                tracing::warn!(task = %record.id, %error, "a heartbeat could not be noted");
                Ok(view::task(inner, record))
            }
        }
    }
}
