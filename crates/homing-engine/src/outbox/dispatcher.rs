//! Gives each channel with a due delivery a worker of its own.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::time::Duration;

use homing_model::operator;
use homing_model::schedule::Tries;
use homing_model::wake::Budget;
use homing_model::{Channel, Timestamp, Tried};
use homing_store::outbox::{Claimed, Next, Settled};
use homing_store::store::Error;
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinSet;

use crate::background::Reporter;
use crate::engine::Inner;
use crate::entropy;
use crate::outbox::endpoint::MAX_ATTEMPTS;
use crate::outbox::transport::{AttemptResult, Transport};

/// How long a claim is held for an attempt: four times the default deadline of a webhook.
const LEASE: Duration = Duration::from_secs(60);
/// The pause after the ledger could not be read or written.
pub(super) const STORE_RETRY: Duration = Duration::from_secs(1);
/// Deliveries given up in one transaction.
const GIVE_UP_STEP: u32 = 500;

/// Delivers for one engine.
#[derive(Clone)]
pub(super) struct Dispatcher {
    pub(super) inner: Arc<Inner>,
    pub(super) transport: Arc<dyn Transport>,
    /// Bounds the attempts at all endpoints.
    pub(super) permits: Arc<Semaphore>,
    /// Signalled when an attempt is to be followed by another.
    retry: Arc<Notify>,
}

/// The settings that pending deliveries follow.
#[derive(PartialEq, Eq)]
struct Settings {
    notify: operator::Policy,
    budget: Budget,
}

/// Delivers until the engine ends.
pub(crate) async fn run(inner: Arc<Inner>, transport: Arc<dyn Transport>, report: Reporter) {
    let shutdown = inner.shutdown.clone();
    let permits = Arc::new(Semaphore::new(MAX_ATTEMPTS));
    let dispatcher = Dispatcher { inner, transport, permits, retry: Arc::default() };
    tokio::select! {
        () = shutdown.cancelled() => {}
        () = dispatcher.dispatch(&report) => {}
    }
}

impl Dispatcher {
    /// Starts workers for what is due. Returns when the ledger is closed.
    async fn dispatch(&self, report: &Reporter) {
        let mut outgoing = self.inner.outgoing.subscribe();
        let mut workers = JoinSet::new();
        // Signals a worker that more of its channel is due.
        let mut busy: HashMap<Channel, Arc<Notify>> = HashMap::new();
        let mut applied = None;
        loop {
            // Before the look, so that what is committed after it is seen.
            outgoing.mark_unchanged();
            report.run();
            self.apply_settings(&mut applied).await;
            let (channels, next) = match self.inner.store.due(self.inner.now()).await {
                Ok(due) => due,
                Err(Error::Closed) => return,
                Err(error) => {
                    report.error(&error);
                    tracing::error!(%error, "due deliveries cannot be read; trying again");
                    (Vec::new(), Some(self.inner.now().after(STORE_RETRY)))
                }
            };
            for channel in channels {
                match busy.entry(channel) {
                    Entry::Occupied(worker) => worker.get().notify_one(),
                    Entry::Vacant(free) => {
                        let (channel, more) = (free.key().clone(), Arc::<Notify>::default());
                        workers.spawn(self.clone().serve(channel, Arc::clone(&more)));
                        free.insert(more);
                    }
                }
            }
            tokio::select! {
                // Waiters and followers of the log run first: they only have to be woken.
                Ok(()) = outgoing.changed() => tokio::task::yield_now().await,
                Some(done) = workers.join_next() => match done {
                    Ok(channel) => { busy.remove(&channel); }
                    // Its claims end with their leases; its channel gets another worker.
                    Err(error) => { tracing::error!(%error, "a worker of the outbox panicked"); busy.clear(); }
                },
                // A worker may be busy for longer than this retry has to wait.
                () = self.retry.notified() => {}
                () = self.inner.clock.sleep_until(next.unwrap_or_default()), if next.is_some() => {}
            }
        }
    }

    /// Serves one channel while something of it is due, and returns it.
    async fn serve(self, channel: Channel, more: Arc<Notify>) -> Channel {
        if matches!(channel, Channel::Endpoint { .. }) {
            self.serve_endpoint(&channel, &more).await;
        } else {
            self.hand_over(&channel, &more).await;
        }
        channel
    }

    /// Gives up pending deliveries to targets that the changed settings forbid, and makes those due
    /// that wait for another budget of wakes.
    async fn apply_settings(&self, applied: &mut Option<Settings>) {
        let (config, store) = (self.inner.config(), &self.inner.store);
        let settings = Settings { notify: config.notify.clone(), budget: config.wake.budget() };
        if applied.as_ref() == Some(&settings) {
            return;
        }
        let closed = settings.notify.closed();
        let apply = async {
            while !closed.is_empty()
                && store.give_up(closed.clone(), GIVE_UP_STEP, self.inner.now()).await?
                    == u64::from(GIVE_UP_STEP)
            {}
            store.apply_budget(settings.budget, self.inner.now()).await
        };
        match apply.await {
            Ok(_) => {
                self.inner.bump();
                *applied = Some(settings);
            }
            Err(error) => {
                tracing::error!(%error, "changed settings could not be applied to pending deliveries; trying again");
            }
        }
    }

    /// Claims due deliveries of a channel, and gives up those that the settings forbid.
    pub(super) async fn claim(&self, channel: &Channel, limit: u32) -> Result<Vec<Claimed>, Error> {
        let now = self.inner.now();
        let claims = self.inner.store.claim(channel.clone(), limit, now.after(LEASE), now).await?;
        let kind = channel.kind();
        if self.inner.config().notify.check(kind).is_ok() {
            return Ok(claims);
        }
        for claim in claims {
            let dead = Settled { tried: None, next: Next::Dead(operator::Policy::given_up(kind)) };
            if let Err(error) = self.settle(&claim, dead).await {
                tracing::error!(delivery = %claim.id, %error, "a forbidden delivery could not be given up; it stays pending");
            }
        }
        Ok(Vec::new())
    }

    /// Records an attempt that began at a time.
    pub(super) async fn record(&self, claim: &Claimed, result: AttemptResult, began: Timestamp) {
        let before = Tries { attempts: claim.attempts, busy: claim.busy };
        let tried =
            Tried { at: began, took_ms: result.took_ms, status: result.status, result: result.detail };
        let settled = Settled::after(before, &result.verdict, tried, entropy::draw(), self.inner.now());
        let again = matches!(settled.next, Next::At(_));
        match self.settle(claim, settled).await {
            Ok(true) if again => self.retry.notify_one(),
            Ok(true) => {}
            Ok(false) => tracing::warn!(delivery = %claim.id, "an attempt took longer than its lease"),
            Err(error) => {
                tracing::error!(delivery = %claim.id, %error, "an attempt could not be recorded; it will be made again");
            }
        }
    }

    /// Settles a claim. False if another attempt has been made since.
    async fn settle(&self, claim: &Claimed, settled: Settled) -> Result<bool, Error> {
        self.inner.meters.settled(&claim.target, &settled);
        let now = self.inner.now();
        let ours = self.inner.store.settle(claim.id.clone(), claim.fence, settled, now).await?;
        self.inner.bump();
        Ok(ours)
    }
}
