//! Reservations of inbox entries: for a wait that is open, and for what was delivered and not confirmed. Keeps P5 and P6.
//!
//! The rules are `homing_model::reservation`, the rows are the store's. Here is what holds a row for as
//! long as a request is open:
//!
//! | reader | reserves | ends |
//! |---|---|---|
//! | a wait for tasks ([`ReservedWait`]) | their ends, from before its first look | with its answer or its connection; the answer may deliver them |
//! | the submit that announces such a wait | the end of its task | with that wait, or by the clock |
//! | a client that polls (an MCP task) | the end, from the end on | by the clock |
//! | a taker (`take`) | what it took | with the delivery or the acknowledgement, or by the clock |
//! | a wake | what it was handed | with the end of its hook task |
//! | a wait for an inbox ([`InboxWaiters`](crate::inbox::waiters::InboxWaiters)) | nothing; while it is connected the owner is not woken | with its connection; in memory only |
//!
//! A daemon that dies leaves the rows as they are: the client calls the next one, and until then no
//! other reader gets the entries. Where client and daemon die together, rows end by the clock.

use std::collections::HashMap;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use homing_model::reservation::{ConfirmedBy, Confirmer, GRACE_MS, Recipient};
use homing_model::{TaskId, Timestamp};
use homing_store::{Handed, Waiter};
use parking_lot::Mutex;

use crate::engine::Engine;
use crate::entropy;
use crate::error::Error;

/// A reservation of a wait is written for this long at a time, and renewed at half of it.
const ROUND: Duration = Duration::from_secs(60);

/// How long an owner may take to confirm a delivery, where nothing else is said.
pub(crate) const CONFIRM_MS: u64 = 60_000;

/// Whose next call confirms something, and until when: what the rows say, so that not every call costs a write.
#[derive(Debug)]
pub(crate) struct Unconfirmed(Mutex<HashMap<Confirmer, Timestamp>>);

impl Unconfirmed {
    pub(crate) fn new(open: Vec<(Confirmer, Timestamp)>, now: Timestamp) -> Self {
        let unconfirmed = Self(Mutex::default());
        for (confirmer, until) in open {
            unconfirmed.expect(confirmer, until, now);
        }
        unconfirmed
    }

    fn expect(&self, confirmer: Confirmer, until: Timestamp, now: Timestamp) {
        let mut open = self.0.lock();
        // Recipients that never called again are not remembered for ever.
        open.retain(|_, until| *until > now);
        let known = open.entry(confirmer).or_insert(until);
        *known = until.max(*known);
    }
}

/// The ends of these tasks are reserved for a wait. Dropped without an answer, it is released.
#[derive(Debug)]
pub struct ReservedWait {
    engine: Engine,
    waiter: Waiter,
    open: bool,
}

impl Engine {
    /// Reserves, for a wait of so long at most, the ends of those of these tasks that are the owner's.
    pub async fn reserve(&self, owner: &str, tasks: &[TaskId], patience: Option<Duration>) -> ReservedWait {
        let waiter = Waiter {
            owner: owner.to_owned(),
            tasks: tasks.to_vec(),
            call: entropy::draw().max(1),
            until: self.inner.now(),
        };
        let mut wait = ReservedWait { engine: self.clone(), waiter, open: true };
        wait.extend(patience.unwrap_or(ROUND).min(ROUND)).await;
        wait
    }

    /// A delivery to an owner, to be confirmed within this time.
    pub(crate) async fn handed(
        &self,
        owner: &str,
        confirmed_by: ConfirmedBy,
        inside: Option<TaskId>,
        lease_ms: u64,
    ) -> Result<Handed, Error> {
        let until = self.inner.now().after_millis(lease_ms);
        let to = Recipient { confirmed_by, bound: self.is_bound(owner).await?, inside };
        Ok(Handed { to, until })
    }

    /// A delivery was committed: the recipient's next call confirms it.
    pub(crate) fn expect_confirmation(&self, owner: &str, handed: &Handed) {
        if handed.to.confirmed_by == ConfirmedBy::Call {
            let (unconfirmed, now) = (&self.inner.unconfirmed, self.inner.now());
            unconfirmed.expect(Confirmer::Owner(owner.to_owned()), handed.until, now);
            if let Some(task) = &handed.to.inside {
                unconfirmed.expect(Confirmer::Inside(task.clone()), handed.until, now);
            }
        }
    }

    /// The recipient calls again: what was delivered to it is acknowledged. Where the ledger cannot be written, that is left to its next call:
    /// it is no reason to refuse this one.
    pub async fn confirm(&self, confirmer: Confirmer) {
        if !self.inner.unconfirmed.0.lock().contains_key(&confirmer) {
            return;
        }
        if let Err(error) = self.confirm_by(confirmer, ConfirmedBy::Call).await {
            tracing::warn!(%error, "an acknowledgement could not be recorded; the next call tries again");
        }
    }

    /// The same by a call, or by the end of a turn. A hook does not report the end of a turn that says of itself that it had no answer of its
    /// model.
    ///
    /// # Errors
    /// If the ledger cannot be written.
    pub(crate) async fn confirm_by(&self, confirmer: Confirmer, by: ConfirmedBy) -> Result<(), Error> {
        let expected = self.inner.unconfirmed.0.lock().remove(&confirmer);
        let confirmed = self.inner.store.confirm(confirmer.clone(), by, self.inner.now()).await;
        if let (Err(_), Some(until)) = (&confirmed, expected) {
            self.inner.unconfirmed.expect(confirmer, until, self.inner.now());
        }
        Ok(confirmed?)
    }
}

impl ReservedWait {
    /// Does `work`, for as long as it takes, and keeps the reservation meanwhile.
    pub async fn during<T>(&mut self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        loop {
            match tokio::time::timeout(ROUND / 2, work.as_mut()).await {
                Ok(done) => return done,
                Err(_) => self.extend(ROUND).await,
            }
        }
    }

    /// Releases it with an answer that delivers the ends of these tasks, to a caller that may run inside a task.
    ///
    /// # Errors
    /// If the ledger cannot be written; then nothing was delivered, and it is released.
    pub async fn deliver(
        mut self,
        tasks: Vec<TaskId>,
        confirmed_by: ConfirmedBy,
        inside: Option<&TaskId>,
    ) -> Result<(), Error> {
        let (engine, waiter) = (self.engine.clone(), self.waiter.clone());
        let owner = waiter.owner.clone();
        let handed = engine.handed(&owner, confirmed_by, inside.cloned(), CONFIRM_MS).await?;
        let delivers = !tasks.is_empty();
        engine.inner.store.release(waiter, Some((tasks, handed.clone())), engine.inner.now()).await?;
        if delivers {
            engine.expect_confirmation(&owner, &handed);
        }
        self.open = false;
        engine.inner.set_free();
        Ok(())
    }

    /// Keeps it for a moment after the answer: the caller will call again, or deliver what it was answered.
    pub async fn linger(mut self) {
        self.extend(Duration::ZERO).await;
        self.open = false;
    }

    /// Keeps it for as long as it was written for: the engine leaves, and the next one is asked.
    pub fn leave_to_next_engine(mut self) {
        self.open = false;
    }

    /// From now on for so long, and the moment that a new daemon takes.
    async fn extend(&mut self, time: Duration) {
        let inner = &self.engine.inner;
        let now = inner.now();
        self.waiter.until = now.after(time).plus_millis(GRACE_MS);
        if let Err(error) = inner.store.reserve(self.waiter.clone(), now).await {
            // The wait is answered all the same; only another reader may be first.
            tracing::warn!(owner = self.waiter.owner, %error, "a reservation could not be written");
        }
    }
}

impl Drop for ReservedWait {
    fn drop(&mut self) {
        if !self.open {
            return;
        }
        let inner = Arc::clone(&self.engine.inner);
        // Sent to the ledger now; what is left to do is to wake the other readers.
        let released = inner.store.release(self.waiter.clone(), None, inner.now());
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                if released.await.is_ok() {
                    inner.set_free();
                }
            });
        }
    }
}
