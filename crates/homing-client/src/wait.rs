//! Waiting for tasks to end, through restarts of the daemon.

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use homing_api::{Code, Problem, WaitAnswer};
use homing_model::TaskId;
use tokio::time::{Instant, timeout_at};

use crate::call::Call;
use crate::client::{Client, Tries};
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

/// What a wait is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// To look.
    Look,
    /// To be told by the answer.
    Tell,
    /// To be told by what is made of the answer.
    Ask,
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

    /// The same for whoever will show the answer and then say so ([`shown`](Self::shown)): until then, for a moment, nobody else tells the owner
    /// of these ends.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    pub async fn wait_asking(
        &self,
        ids: &[TaskId],
        mode: Mode,
        timeout: Option<Duration>,
    ) -> Result<WaitAnswer, Error> {
        self.wait_for(ids, mode, timeout, Purpose::Ask).await
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
        self.wait_for(ids, mode, timeout, if told { Purpose::Tell } else { Purpose::Look }).await
    }

    async fn wait_for(
        &self,
        ids: &[TaskId],
        mode: Mode,
        timeout: Option<Duration>,
        purpose: Purpose,
    ) -> Result<WaitAnswer, Error> {
        let told = purpose == Purpose::Tell;
        if ids.len() > MOST {
            let detail = format!("{} tasks cannot be waited for at once, at most {MOST} can", ids.len());
            return Err(Problem::new(Code::InvalidRequest, detail).into());
        }
        let ids = joined(ids);
        // A time too long to be counted is no limit.
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        // The first question is a call of the owner's, who has heard what it was told before; those after it come by themselves. A daemon of
        // before does not know the word.
        let (mut again, mut known, mut tries) = (false, true, Tries::standing());
        loop {
            // Each time anew: a daemon that comes back while this waits has less time to answer in.
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            // An answer that is not the last one is shown to nobody.
            let last = left.is_some_and(|left| left <= POLL);
            let left = left.unwrap_or(POLL).min(POLL);
            let target = Target::new("/v1/wait")
                .with("ids", &ids)
                .with("mode", mode.as_str())
                .with("timeout_ms", left.as_millis().to_string())
                .maybe("asks", (purpose == Purpose::Ask).then_some(true))
                .maybe("told", told.then_some(true))
                .maybe("partial", (told && last).then_some(true))
                .maybe("again", (told && again && known).then_some(true));
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
            again = true;
            match answered {
                Ok(answer) => {
                    let answer: WaitAnswer = answer.json()?;
                    if answer.done || last {
                        return Ok(answer);
                    }
                }
                Err(error) if error.is_about("again") && known => known = false,
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

    /// Says that the owner, in whose name this client speaks, was shown the ends of these: they count as told from now on. That it says so is no
    /// sign that it has heard anything else.
    ///
    /// # Errors
    /// If they are not for the caller, or nobody answered within seconds; then nothing is marked, and nothing is lost.
    pub async fn shown(&self, ids: &[TaskId]) -> Result<(), Error> {
        let target = Target::new("/v1/wait").with("ids", joined(ids)).with("timeout_ms", "0");
        let target = target.with("told", "true").with("partial", "true");
        let (plain, call) = (Call::get(target.clone()), Call::get(target.with("again", "true")));
        let saying = async {
            match self.persist(&call).await {
                Err(error) if error.is_about("again") => self.persist(&plain).await,
                said => said,
            }
        };
        tokio::time::timeout(LATE, saying).await.map_err(|_| Error::NoAnswer)?.map(drop)
    }

    /// Stays with a task of the owner's, whose end it will be shown ([`shown`](Self::shown)): for as long as this is not dropped, and for a
    /// moment after the end, nobody else tells it that.
    ///
    /// # Errors
    /// If there is no such task, it is not for the caller, or the daemon is gone for good.
    pub async fn stay_with(&self, id: &TaskId) -> Result<(), Error> {
        loop {
            let target = Target::new("/v1/wait")
                .with("ids", id.as_str())
                .with("timeout_ms", POLL.as_millis().to_string())
                .with("asks", "true");
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
    async fn only_the_first_question_of_a_wait_is_a_call_that_confirms() {
        let home = tempfile::tempdir().unwrap();
        let count = AtomicUsize::new(0);
        let fake = Fake::serve(home.path(), move |_| match count.fetch_add(1, Ordering::Relaxed) {
            0 => answer(false),
            2 => Reply::cut(),
            one => answer(one % 2 == 1),
        });
        let client = Client::new(home.path(), "u");
        let ids = [TaskId::from_entropy(1)];
        assert!(client.wait_as(&ids, Mode::All, None, true).await.unwrap().done, "by its second question");
        // On a connection of its own: what breaks while it is idle is repeated at once, as the same call.
        let client = Client::new(home.path(), "u");
        assert!(client.wait_as(&ids, Mode::All, None, true).await.unwrap().done, "by its second attempt");
        client.shown(&ids).await.unwrap();
        let again: Vec<_> =
            fake.requests().iter().map(|request| request.target.contains("again=true")).collect();
        assert_eq!(again, [false, true, false, true, true]);
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
