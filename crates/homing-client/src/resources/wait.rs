//! Waiting for tasks to end, through restarts of the daemon.

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use homing_api::{Code, Problem, WaitAnswer};
use homing_model::TaskId;
use tokio::time::{Instant, timeout_at};

use crate::transport::call::Call;
use crate::transport::client::{Client, Tries};
use crate::transport::error::Error;
use crate::transport::query::Target;

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

/// What happens to the ends that a wait is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Nothing: the caller looks.
    Look,
    /// They are held for the caller, and for a moment after the answer. It prints them, and then says so ([`Client::mark_delivered`]).
    Reserve,
    /// They are held for the caller and delivered by the answer: the owner's next call confirms them.
    Deliver,
}

fn joined(ids: &[TaskId]) -> String {
    ids.iter().map(TaskId::as_str).collect::<Vec<_>>().join(",")
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
        self.wait_for(ids, mode, timeout, Purpose::Look).await
    }

    /// The same, for more than a look.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    pub async fn wait_for(
        &self,
        ids: &[TaskId],
        mode: Mode,
        timeout: Option<Duration>,
        purpose: Purpose,
    ) -> Result<WaitAnswer, Error> {
        if ids.len() > MOST {
            let detail = format!("{} tasks cannot be waited for at once, at most {MOST} can", ids.len());
            return Err(Problem::new(Code::InvalidRequest, detail).into());
        }
        let delivers = purpose == Purpose::Deliver;
        let ids = joined(ids);
        // A time too long to be counted is no limit.
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        // The first request is the owner's call, which confirms what was delivered before; those after it repeat it.
        let (mut repeats, mut tries) = (false, Tries::standing());
        loop {
            // Each time anew: a daemon that comes back while this waits has less time to answer in.
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            let last = left.is_some_and(|left| left <= POLL);
            let left = left.unwrap_or(POLL).min(POLL);
            let target = Target::new("/v1/wait")
                .with("ids", &ids)
                .with("mode", mode.as_str())
                .with("timeout_ms", left.as_millis().to_string())
                .maybe("reserve", (purpose == Purpose::Reserve || (delivers && repeats)).then_some(true))
                .maybe("confirm", delivers.then_some("call"));
            let call = Call::get(target);
            let asking = async {
                let answered = self.send_again(&call, &mut tries).await;
                match &answered {
                    Err(error) if self.worth_another(error, tries.failures) => {
                        self.breathe(tries.failures).await;
                    }
                    _ => {}
                }
                answered
            };
            let answered = match deadline {
                Some(deadline) => self.in_time(deadline, asking).await,
                None => asking.await,
            };
            repeats = true;
            match answered {
                Ok(answer) => {
                    let answer: WaitAnswer = answer.json()?;
                    if answer.done {
                        return Ok(answer);
                    }
                    if last {
                        // Not done, it delivered nothing; what has ended so far is given back all the same.
                        let ended = answer.items.iter().filter(|task| delivers && task.status.is_terminal());
                        let ended: Vec<_> = ended.map(|task| task.id.clone()).collect();
                        if !ended.is_empty() {
                            let _ = self.mark_delivered(&ended).await;
                        }
                        return Ok(answer);
                    }
                }
                Err(error) if self.worth_another(&error, tries.failures) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// An answer that comes a little late is still one; but where there is nobody who could give it (the daemon was stopped, say) the time is up.
    async fn in_time<T>(
        &self,
        deadline: Instant,
        asking: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        let mut asking = pin!(asking);
        if let Ok(answer) = timeout_at(deadline, asking.as_mut()).await {
            return answer;
        }
        if self.is_left_alone() {
            return Err(Error::NoAnswer);
        }
        timeout_at(deadline + LATE, asking).await.map_err(|_| Error::NoAnswer)?
    }

    /// Says that the owner, in whose name this client speaks, was handed the ends of these, all of which have ended: its next call confirms them.
    /// This one confirms nothing that was delivered before.
    ///
    /// # Errors
    /// If they are not for the caller, or nobody answered within seconds; then nothing is marked, and nothing is lost.
    pub async fn mark_delivered(&self, ids: &[TaskId]) -> Result<(), Error> {
        let target = Target::new("/v1/wait").with("ids", joined(ids)).with("timeout_ms", "0");
        let call = Call::get(target.with("reserve", "true").with("confirm", "call"));
        tokio::time::timeout(LATE, self.persist(&call)).await.map_err(|_| Error::NoAnswer)?.map(drop)
    }

    /// Holds the end of a task of the owner's, which will be printed and then marked ([`mark_delivered`](Self::mark_delivered)), for as long as
    /// this is not dropped, and for a moment after the end.
    ///
    /// # Errors
    /// If there is no such task, it is not for the caller, or the daemon is gone for good.
    pub async fn hold_end(&self, id: &TaskId) -> Result<(), Error> {
        loop {
            let target = Target::new("/v1/wait")
                .with("ids", id.as_str())
                .with("timeout_ms", POLL.as_millis().to_string())
                .with("reserve", "true");
            let answer: WaitAnswer = self.persist(&Call::get(target)).await?.json()?;
            if answer.done {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::fake::{Fake, Reply, Request, sample_task};

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
    async fn what_has_ended_is_delivered_though_the_wait_is_not_done() {
        let home = tempfile::tempdir().unwrap();
        let fake = Fake::serve(home.path(), |_| {
            let items = [sample_task("succeeded"), sample_task("running")];
            let body = serde_json::json!({ "done": false, "items": items, "first": null });
            Reply::json(202, body.to_string())
        });
        let client = Client::new(home.path(), "u");
        let ids = [TaskId::from_entropy(1), TaskId::from_entropy(2)];
        let waiting = client.wait_for(&ids, Mode::All, Some(Duration::ZERO), Purpose::Deliver);
        assert!(!waiting.await.unwrap().done);
        let asked: Vec<_> = fake.requests().iter().map(|request| request.target.clone()).collect();
        assert!(asked.len() == 2 && asked[1].contains("timeout_ms=0&reserve=true&confirm=call"), "{asked:?}");
    }

    #[tokio::test]
    async fn a_daemon_that_comes_back_is_given_the_time_that_is_left() {
        let home = tempfile::tempdir().unwrap();
        let count = AtomicUsize::new(0);
        let fake = Fake::serve(home.path(), move |_| match count.fetch_add(1, Ordering::Relaxed) {
            0 => Reply::cut(),
            _ => answer(false),
        });
        let client = Client::new(home.path(), "u");
        let ids = [TaskId::from_entropy(1)];
        let timeout = Duration::from_secs(5);
        assert!(!client.wait(&ids, Mode::All, Some(timeout)).await.unwrap().done, "the time is up: no error");
        let asked = |request: &Request| -> u64 {
            let (_, rest) = request.target.split_once("timeout_ms=").unwrap();
            rest.split('&').next().unwrap().parse().unwrap()
        };
        let times: Vec<_> = fake.requests().iter().map(asked).collect();
        assert!(times.len() == 2 && times[1] < times[0], "{times:?}");
    }

    #[tokio::test]
    async fn only_the_first_request_of_a_wait_confirms() {
        let home = tempfile::tempdir().unwrap();
        let count = AtomicUsize::new(0);
        let fake = Fake::serve(home.path(), move |_| match count.fetch_add(1, Ordering::Relaxed) {
            0 => answer(false),
            2 => Reply::cut(),
            one => answer(one % 2 == 1),
        });
        let client = Client::new(home.path(), "u");
        let ids = [TaskId::from_entropy(1)];
        assert!(
            client.wait_for(&ids, Mode::All, None, Purpose::Deliver).await.unwrap().done,
            "by its second request"
        );
        // On a connection of its own: what breaks while it is idle is repeated at once, as the same call.
        let client = Client::new(home.path(), "u");
        assert!(
            client.wait_for(&ids, Mode::All, None, Purpose::Deliver).await.unwrap().done,
            "by its second attempt"
        );
        client.mark_delivered(&ids).await.unwrap();
        let repeated: Vec<_> =
            fake.requests().iter().map(|request| request.target.contains("reserve=true")).collect();
        assert_eq!(repeated, [false, true, false, true, true]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_daemon_that_was_stopped_does_not_lengthen_a_limited_wait() {
        let home = tempfile::tempdir().unwrap();
        let revive: crate::Revive = Arc::new(|_| Box::pin(std::future::pending()));
        let client = Client::with_revive(home.path().join("absent"), "u", revive);
        let (ids, began) = ([TaskId::from_entropy(1)], Instant::now());
        let wait = client.wait(&ids, Mode::Any, Some(Duration::from_secs(5)));
        assert!(matches!(wait.await, Err(Error::NoAnswer)));
        assert_eq!(began.elapsed(), Duration::from_secs(5));
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
