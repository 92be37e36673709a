//! Letting a task stand still, and go on.

use homing_api::PauseAnswer;

use crate::transport::call::Call;
use crate::transport::client::Client;
use crate::transport::error::Error;
use crate::transport::query::Target;

impl Client {
    /// Pauses a task; answers once its whole tree stands still. Pausing twice is pausing once, so it is repeated through a restart of the
    /// daemon.
    ///
    /// # Errors
    /// If there is no such task, it cannot be paused now, or nobody answered.
    pub async fn pause(&self, reference: &str) -> Result<PauseAnswer, Error> {
        self.persist(&Call::post(Target::task(reference, "/pause"))).await?.json()
    }

    /// Lets a paused task go on. Repeated like a pause.
    ///
    /// # Errors
    /// If there is no such task, it is being stopped, or nobody answered.
    pub async fn resume(&self, reference: &str) -> Result<PauseAnswer, Error> {
        self.persist(&Call::post(Target::task(reference, "/resume"))).await?.json()
    }
}
