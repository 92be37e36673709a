//! Ending a task, and sending it a signal.

use homing_api::{SignalRequest, StopAnswer, StopRequest};
use homing_model::Task;

use crate::transport::call::Call;
use crate::transport::client::Client;
use crate::transport::error::Error;
use crate::transport::query::Target;

impl Client {
    /// Stops a task; with `wait` it answers when the whole tree is gone. Stopping twice is stopping once, so it is
    /// repeated through a restart of the daemon.
    ///
    /// # Errors
    /// If there is no such task, the signal is none, or nobody answered.
    pub async fn stop(&self, reference: &str, request: &StopRequest) -> Result<StopAnswer, Error> {
        self.persist(&Call::post(Target::task(reference, "/stop")).json(request)?).await?.json()
    }

    /// The same with `wait`, for a caller that prints the answer and then says so ([`mark_delivered`](Self::mark_delivered)): the answer itself delivers
    /// nothing, and for a moment no other reader gets the end.
    ///
    /// # Errors
    /// As [`stop`](Self::stop).
    pub async fn stop_reserving(&self, reference: &str, request: &StopRequest) -> Result<StopAnswer, Error> {
        let target = Target::task(reference, "/stop").with("reserve", "true");
        self.persist(&Call::post(target).json(request)?).await?.json()
    }

    /// Sends a signal to a task's main process. Not repeated once it may have been heard.
    ///
    /// # Errors
    /// If the task is not running, the signal is none, or nobody answered.
    pub async fn signal(&self, reference: &str, signal: &str) -> Result<Task, Error> {
        let request = SignalRequest { signal: signal.to_owned() };
        self.send(&Call::post(Target::task(reference, "/signal")).json(&request)?).await?.json()
    }
}
