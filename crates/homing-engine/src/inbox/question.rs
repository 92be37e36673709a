//! Questions of an owner: waits for ends whose answer tells them. Keeps P6.
//!
//! Whoever waits is told by the answer, and by nobody else: while the question is open, the ends that it is for are not free to hooks, waiters and
//! wakes. It is a row of the ledger, written before the first look at the task, so no end falls in between; its answer and the mark that
//! the end was told are one transaction. Where the asker goes away it is taken back, and whoever waits for the inbox looks again at once. Where
//! the daemon dies it stays: the client asks the next one, and nobody came before it. Where both die it ends by the clock.

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use homing_model::TaskId;
use homing_model::binding::GRACE_MS;
use homing_store::Question as Row;

use crate::engine::Engine;
use crate::entropy;
use crate::error::Error;

/// A question lasts no longer by itself; one that is still open is renewed at half of it.
const ROUND: Duration = Duration::from_secs(60);

/// An owner waits for ends. Dropped without an answer it is taken back.
#[derive(Debug)]
pub struct Question {
    engine: Engine,
    row: Row,
    open: bool,
}

impl Engine {
    /// An owner begins to wait, for so long at most, for the ends of those of these tasks that are its own: until the question is answered or
    /// dropped nobody else tells it those.
    pub async fn ask(&self, owner: &str, tasks: &[TaskId], patience: Option<Duration>) -> Question {
        let row = Row {
            owner: owner.to_owned(),
            tasks: tasks.to_vec(),
            call: entropy::draw().max(1),
            until: self.inner.now(),
        };
        let mut question = Question { engine: self.clone(), row, open: true };
        question.lasts(patience.unwrap_or(ROUND).min(ROUND)).await;
        question
    }
}

impl Question {
    /// Does `work`, for as long as it takes.
    pub async fn during<T>(&mut self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        loop {
            match tokio::time::timeout(ROUND / 2, work.as_mut()).await {
                Ok(done) => return done,
                Err(_) => self.lasts(ROUND).await,
            }
        }
    }

    /// The answer tells the ends of these: it is marked and the question closed at once. `inside` is the task that the asker runs in, if any.
    ///
    /// # Errors
    /// If the ledger cannot be written; then nobody was told, and the question is taken back.
    pub async fn answered(mut self, told: Vec<TaskId>, inside: Option<&TaskId>) -> Result<(), Error> {
        self.engine.answer(self.row.clone(), told, inside).await?;
        self.open = false;
        self.engine.inner.set_free();
        Ok(())
    }

    /// The asker was answered with nothing that it shows, and asks again at once: the question stands until then, for a moment.
    pub async fn stands(mut self) {
        self.lasts(Duration::ZERO).await;
        self.open = false;
    }

    /// The engine leaves before it can answer: the question stands for as long as it would have, and the next engine is asked.
    pub fn left_standing(mut self) {
        self.open = false;
    }

    /// From now on for so long, and the moment that a new daemon takes.
    async fn lasts(&mut self, time: Duration) {
        let inner = &self.engine.inner;
        let now = inner.now();
        let time = i64::try_from(time.as_millis()).unwrap_or(i64::MAX).saturating_add(GRACE_MS);
        self.row.until = now.plus_millis(time);
        if let Err(error) = inner.store.ask(self.row.clone(), now).await {
            // Who waits is answered all the same, only that somebody else may be first.
            tracing::warn!(owner = self.row.owner, %error, "a question could not be noted");
        }
    }
}

impl Drop for Question {
    fn drop(&mut self) {
        if !self.open {
            return;
        }
        let inner = std::sync::Arc::clone(&self.engine.inner);
        // Sent to the ledger now; what is left to do is to say so.
        let withdrawn = inner.store.withdraw(self.row.clone(), inner.now());
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                if withdrawn.await.is_ok() {
                    inner.set_free();
                }
            });
        }
    }
}
