//! Ending a task, and sending it a signal.

use homing_api::{SignalRequest, StopAnswer, StopRequest};
use homing_model::Task;

use crate::call::Call;
use crate::client::Client;
use crate::error::Error;
use crate::query::Target;

impl Client {
    /// Stops a task; with `wait` it answers when the whole tree is gone. Stopping twice is stopping once, so it is
    /// repeated through a restart of the daemon.
    ///
    /// # Errors
    /// If there is no such task, the signal is none, or nobody answered.
    pub async fn stop(&self, reference: &str, request: &StopRequest) -> Result<StopAnswer, Error> {
        self.persist(&Call::post(Target::task(reference, "/stop")).json(request)?).await?.json()
    }

    /// The same with `wait`, for whoever will show the answer and then say so ([`shown`](Self::shown)): the answer itself tells the owner nothing, and for
    /// a moment nobody else does.
    ///
    /// # Errors
    /// As [`stop`](Self::stop).
    pub async fn stop_asking(&self, reference: &str, request: &StopRequest) -> Result<StopAnswer, Error> {
        let target = Target::task(reference, "/stop").with("asks", "true");
        match self.persist(&Call::post(target).json(request)?).await {
            Ok(answer) => answer.json(),
            // What has to end is ended by an older daemon too, which counts its answer as told.
            Err(error) if error.is_about("asks") => self.stop(reference, request).await,
            Err(error) => Err(error),
        }
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

#[cfg(test)]
mod tests {
    use homing_api::{Code, Problem};

    use super::*;
    use crate::fake::{Fake, Reply, sample_task};

    #[tokio::test]
    async fn a_daemon_that_does_not_know_of_asking_ends_it_all_the_same() {
        let home = tempfile::tempdir().unwrap();
        let fake = Fake::serve(home.path(), |request| {
            if request.target.contains("asks=") {
                return Reply::problem(&Problem::new(
                    Code::InvalidRequest,
                    "`asks` is not a parameter here: there are none",
                ));
            }
            let answer = serde_json::json!({ "stopping": true, "task": sample_task("stopped") });
            Reply::json(200, answer.to_string())
        });
        let client = Client::new(home.path(), "u");
        assert!(client.stop_asking("t", &StopRequest::default()).await.unwrap().stopping);
        assert_eq!(fake.requests().len(), 2);
    }
}
