//! Whose task it is: to everybody else it is not there. Keeps P11.

use homing_model::{Kind, TaskId};
use homing_store::Record;

use crate::engine::Engine;
use crate::error::Error;

impl Engine {
    /// Which external task of this owner a text names.
    ///
    /// # Errors
    /// If this owner has no such task, or homing runs it itself.
    pub async fn external_task(&self, reference: &str, owner: &str) -> Result<TaskId, Error> {
        Ok(self.own_external(reference, owner).await?.id)
    }

    /// The external task of this owner that a text names. Another's is told as one that never was, in the same words.
    pub(super) async fn own_external(&self, reference: &str, owner: &str) -> Result<Record, Error> {
        let record = self.inner.own(reference, owner).await?;
        match record.kind {
            Kind::External => Ok(record),
            Kind::Command | Kind::Agent | Kind::Hook => Err(Error::NotExternal(record.id)),
        }
    }
}
