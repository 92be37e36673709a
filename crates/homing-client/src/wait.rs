//! Waiting for tasks to end, through restarts of the daemon.

use std::time::Duration;

use homing_model::TaskId;
use homing_model::api::WaitAnswer;
use homing_model::{Code, Problem};
use tokio::time::{Instant, timeout_at};

use crate::call::Call;
use crate::client::Client;
use crate::error::Error;
use crate::query::Target;

/// How long one question stands before it is asked again.
const POLL: Duration = Duration::from_secs(60);

/// How much longer than the caller's time an answer may take.
const LATE: Duration = Duration::from_secs(2);

/// What fits into one address.
const MOST: usize = 4_000;

/// How many of the tasks must have ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Every one.
    All,
    /// The first one.
    Any,
}

impl Mode {
    const fn as_str(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Any => "any",
        }
    }
}

impl Client {
    /// Waits until all or any have ended, or the time is up (`done` is false then).
    ///
    /// # Errors
    /// If there is no such task, too many were named, or the daemon is gone for good.
    pub async fn wait(
        &self,
        ids: &[TaskId],
        mode: Mode,
        timeout: Option<Duration>,
    ) -> Result<WaitAnswer, Error> {
        self.wait_as(ids, mode, timeout, false).await
    }

    /// The same. With `told`, the answer counts as telling the owner: its entries in the inbox are held, and gone with the owner's next
    /// call.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    pub async fn wait_as(
        &self,
        ids: &[TaskId],
        mode: Mode,
        timeout: Option<Duration>,
        told: bool,
    ) -> Result<WaitAnswer, Error> {
        if ids.len() > MOST {
            let detail = format!("{} tasks cannot be waited for at once, at most {MOST} can", ids.len());
            return Err(Problem::new(Code::InvalidRequest, detail).into());
        }
        let ids = ids.iter().map(TaskId::as_str).collect::<Vec<_>>().join(",");
        // A time too long to be counted is no limit.
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        loop {
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            // An answer that is not the last one is shown to nobody.
            let last = left.is_some_and(|left| left <= POLL);
            let left = left.unwrap_or(POLL).min(POLL);
            let target = Target::new("/v1/wait")
                .with("ids", &ids)
                .with("mode", mode.as_str())
                .with("timeout_ms", left.as_millis().to_string())
                .maybe("told", told.then_some(true))
                .maybe("partial", (told && last).then_some(true));
            let call = Call::get(target);
            let answer = match deadline {
                Some(deadline) => {
                    timeout_at(deadline + LATE, self.persist(&call)).await.map_err(|_| Error::NoAnswer)??
                }
                None => self.persist(&call).await?,
            };
            let answer: WaitAnswer = answer.json()?;
            if answer.done || last {
                return Ok(answer);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::fake::{Fake, Reply, sample_task};

    fn answer(done: bool) -> Reply {
        let task = sample_task(if done { "succeeded" } else { "running" });
        let body = serde_json::json!({ "done": done, "items": [task], "first": null });
        Reply::json(if done { 200 } else { 202 }, body.to_string())
    }

    #[tokio::test]
    async fn waiting_goes_on_through_a_restart() {
        let home = tempfile::tempdir().unwrap();
        let count = AtomicUsize::new(0);
        let fake = Fake::serve(home.path(), move |_| match count.fetch_add(1, Ordering::Relaxed) {
            0 => answer(false),
            1 | 2 => Reply::cut(),
            _ => answer(true),
        });
        let client = Client::new(home.path(), "u");
        let ids = [TaskId::from_entropy(1), TaskId::from_entropy(2)];
        assert!(client.wait(&ids, Mode::All, None).await.unwrap().done);
        assert!(fake.requests()[0].target.contains("mode=all&timeout_ms=60000"));
    }

    #[tokio::test]
    async fn the_time_of_the_caller_is_kept() {
        let home = tempfile::tempdir().unwrap();
        let _fake = Fake::serve(home.path(), |_| answer(false));
        let client = Client::new(home.path(), "u");
        let ids = [TaskId::from_entropy(1)];
        let wait = client.wait(&ids, Mode::Any, Some(Duration::ZERO));
        assert!(!wait.await.unwrap().done);
    }

    #[tokio::test]
    async fn only_an_answer_that_is_given_back_tells() {
        let home = tempfile::tempdir().unwrap();
        let count = AtomicUsize::new(0);
        let fake = Fake::serve(home.path(), move |_| answer(count.fetch_add(1, Ordering::Relaxed) == 1));
        let client = Client::new(home.path(), "u");
        let ids = [TaskId::from_entropy(1), TaskId::from_entropy(2)];
        assert!(client.wait_as(&ids, Mode::All, None, true).await.unwrap().done);
        let _ = client.wait_as(&ids, Mode::All, Some(Duration::ZERO), true).await.unwrap();
        let partial: Vec<_> =
            fake.requests().iter().map(|request| request.target.contains("partial=true")).collect();
        assert_eq!(partial, [false, false, true]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_daemon_that_hangs_does_not_hang_a_limited_wait() {
        let home = tempfile::tempdir().unwrap();
        let _fake = Fake::serve(home.path(), |_| Reply::silence());
        let client = Client::new(home.path(), "u");
        let ids = [TaskId::from_entropy(1)];
        let wait = client.wait(&ids, Mode::Any, Some(Duration::from_secs(5)));
        assert!(matches!(wait.await, Err(Error::NoAnswer)));
    }
}
