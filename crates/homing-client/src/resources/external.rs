//! Tasks that somebody else runs: heard of, completed.

use homing_api::{CompleteAnswer, CompleteRequest, HeartbeatRequest};
use homing_model::Task;

use crate::transport::call::Call;
use crate::transport::client::Client;
use crate::transport::error::Error;
use crate::transport::query::Target;

impl Client {
    /// Says how an external task ended. The first word counts, so it is repeated through a restart of the daemon; a repeated one may find
    /// itself already there.
    ///
    /// # Errors
    /// If this owner has no such task, or homing runs it itself, or nobody answered.
    pub async fn complete(
        &self,
        reference: &str,
        request: &CompleteRequest,
    ) -> Result<CompleteAnswer, Error> {
        self.persist(&Call::post(Target::task(reference, "/complete")).json(request)?).await?.json()
    }

    /// Says that an external task goes on; it says until when its lease holds. Twice is once, so it is repeated through a restart.
    ///
    /// # Errors
    /// If this owner has no such task, or it has ended, or nobody answered.
    pub async fn heartbeat(&self, reference: &str) -> Result<Task, Error> {
        let request = HeartbeatRequest::default();
        self.persist(&Call::post(Target::task(reference, "/heartbeat")).json(&request)?).await?.json()
    }
}
