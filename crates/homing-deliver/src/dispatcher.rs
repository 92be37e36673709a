//! Takes what is due out of the ledger and brings it to its target. Keeps P5.
//!
//! Each channel (see [`Channel`]) has a worker of its own while it has something due, so a dead one delays no other. A delivery is claimed
//! under a lease before the attempt and settled after it: who dies in between leaves a claim that ends by itself, and the attempt is
//! made again with the same id and the same bytes. Nothing here is remembered that the ledger does not hold.
//!
//! What wakes somebody waits before it is claimed: while the session is at work, while nobody has it open, and while somebody waits to take
//! it from the inbox, who tells it themselves. That is looked at again and again, and written down once.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use homing_engine::{Engine, Error, Handler};
use homing_model::operator::{self, TargetKind};
use homing_model::route::Address;
use homing_model::schedule::{Tries, Verdict};
use homing_model::{Channel, Notice, Route, Status, Target, Timestamp, Tried, turn};
use homing_store::outbox::{Claimed, Next, Settled};
use homing_store::store::Filter;
use serde::Deserialize;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;

use crate::client::{Client, DEADLINE};
use crate::endpoint::{Caller, Endpoint};
use crate::wake::{self, Readiness};
use crate::webhook::{Attempt, Message, deliver};
use crate::webhooks::Webhooks;

/// Attempts at one endpoint at once.
const AT_ONCE: u32 = 16;
/// Attempts at all endpoints at once: each needs a descriptor, and endpoints that hang must not use up those of the daemon.
const IN_ALL: usize = 128;
/// While no more places than these are free, each endpoint has one attempt under way: those that hang leave some to the others.
const SPARE: usize = IN_ALL / 2;
/// Notices given to a command at once.
const TOGETHER: u32 = 100;
/// What ends within this time is told in one go, where a command is told.
const GATHER: Duration = Duration::from_millis(25);
/// The same where an agent is woken and other tasks of its session still run: each wake costs a turn.
const SETTLING: Duration = Duration::from_millis(250);
/// An attempt has ended by then, and what came of it is recorded.
const LEASE: Duration = DEADLINE.saturating_mul(4);
/// What waits for a session that is at work is judged anew after so many looks.
const JUDGED: u32 = 10;
/// After the ledger could not be read or written.
const TROUBLE_MS: i64 = 1_000;
const TROUBLE: Duration = Duration::from_millis(TROUBLE_MS as u64);

/// Delivers for one engine.
#[derive(Clone)]
pub struct Dispatcher {
    engine: Engine,
    webhooks: Arc<Webhooks>,
    client: Client,
    places: Arc<Semaphore>,
    /// Rung when an attempt is to be followed by another.
    again: Arc<Notify>,
}

impl std::fmt::Debug for Dispatcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Dispatcher").finish_non_exhaustive()
    }
}

impl Dispatcher {
    /// For this engine, with what its configuration says of webhooks.
    #[must_use]
    pub fn new(engine: Engine, webhooks: Arc<Webhooks>) -> Self {
        let places = Arc::new(Semaphore::new(IN_ALL));
        let client = Client::new(crate::Policy::default());
        Self { engine, webhooks, client, places, again: Arc::default() }
    }

    /// Delivers until the engine ends, or this is dropped.
    pub async fn run(self) {
        let mut outgoing = self.engine.outgoing();
        let mut workers = JoinSet::new();
        // A worker is told that more of its channel is due.
        let mut busy: HashMap<Channel, Arc<Notify>> = HashMap::new();
        let mut applied = None;
        loop {
            // Marked as seen before the look: whatever is put on its way after it wakes us again.
            outgoing.mark_unchanged();
            let config = self.engine.config();
            let settings = (config.notify.clone(), config.wake.budget());
            if applied.as_ref() != Some(&settings) {
                match self.engine.apply_settings().await {
                    Ok(()) => applied = Some(settings),
                    Err(error) => {
                        tracing::error!(%error, "changed settings could not be applied to pending deliveries; trying again");
                    }
                }
            }
            let (channels, next) = match self.engine.due().await {
                Ok(due) => due,
                Err(Error::Closed) => return,
                Err(error) => {
                    tracing::error!(%error, "what is to be delivered cannot be read; trying again");
                    (Vec::new(), Some(self.engine.now().plus_millis(TROUBLE_MS)))
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
                // Who waits or follows is told first: they only have to be woken.
                changed = outgoing.changed() => match changed {
                    Ok(()) => tokio::task::yield_now().await,
                    Err(_) => return,
                },
                Some(done) = workers.join_next() => match done {
                    Ok(channel) => { busy.remove(&channel); }
                    // A worker that panicked leaves its claims to their leases; its channel is free again.
                    Err(error) => { tracing::error!(%error, "a delivery went wrong"); busy.clear(); }
                },
                // Its channel may be busy for longer than this has to wait.
                () = self.again.notified() => {}
                () = async { self.engine.sleep_until(next.unwrap_or_default()).await }, if next.is_some() => {}
            }
        }
    }

    /// Serves one channel while something of it is due.
    async fn serve(self, channel: Channel, more: Arc<Notify>) -> Channel {
        if !matches!(channel, Channel::Endpoint { .. }) {
            self.hand_over(&channel, &more).await;
            return channel;
        }
        let mut attempts = JoinSet::new();
        let mut troubled = false;
        loop {
            let free = AT_ONCE.saturating_sub(u32::try_from(attempts.len()).unwrap_or(AT_ONCE));
            let crowded = !attempts.is_empty() && self.places.available_permits() <= SPARE;
            if free > 0 && !troubled && !crowded {
                // The place comes before the claim: a lease covers an attempt, and no wait for its turn.
                let mut places = self.places(free).await;
                let wanted = u32::try_from(places.len()).unwrap_or(free);
                match self.engine.claim(&channel, wanted, LEASE).await {
                    Ok(claimed) => {
                        for (claim, place) in self.permitted(claimed).await.into_iter().zip(places.drain(..))
                        {
                            let attempt = self.clone().attempt(claim);
                            attempts.spawn(async move {
                                attempt.await;
                                drop(place);
                            });
                        }
                    }
                    // What is under way goes on; no more is begun until the ledger can be written.
                    Err(error) => {
                        tracing::error!(?channel, %error, "deliveries could not be claimed");
                        troubled = true;
                    }
                }
            }
            if attempts.is_empty() {
                if troubled {
                    tokio::time::sleep(TROUBLE).await;
                }
                return channel;
            }
            // A place is free again, or more is due: that need not wait for what is slow.
            tokio::select! {
                _ = attempts.join_next() => {}
                () = more.notified() => {}
            }
        }
    }

    /// A place for an attempt, in turn with the other endpoints, and as many more as are to be had at once.
    async fn places(&self, most: u32) -> Vec<OwnedSemaphorePermit> {
        // It is never closed.
        let mut places: Vec<_> = Arc::clone(&self.places).acquire_owned().await.into_iter().collect();
        while places.len() < most as usize
            && self.places.available_permits() > SPARE
            && let Ok(place) = Arc::clone(&self.places).try_acquire_owned()
        {
            places.push(place);
        }
        places
    }

    /// Gives all that is due to a command, at once. Its end, recorded under a shim, settles them.
    async fn hand_over(&self, channel: &Channel, more: &Notify) {
        // What ends in the same moment is told in one go.
        tokio::time::sleep(if self.settles(channel).await { SETTLING } else { GATHER }).await;
        let claims = match self.until_ready(channel, more).await {
            Ok(true) => self.engine.claim(channel, together(channel), LEASE).await,
            Ok(false) => return,
            Err(error) => Err(error),
        };
        let claims = match claims {
            Ok(claims) => claims,
            Err(error) => {
                tracing::error!(?channel, %error, "deliveries could not be claimed");
                return tokio::time::sleep(TROUBLE).await;
            }
        };
        let claims = self.permitted(claims).await;
        let to = match (channel, self.webhooks.waker()) {
            (Channel::Command { line, .. }, _) => Handler::Line(line),
            (Channel::Wake { .. } | Channel::Desktop { .. }, Some(waker)) => Handler::Waker(waker),
            _ => {
                for claim in claims {
                    self.clone().attempt(claim).await;
                }
                return;
            }
        };
        if let Err(error) = self.engine.hand_over(channel, to, &claims).await {
            tracing::error!(?channel, %error, "notices could not be handed to their command; it will be tried again");
            for claim in claims {
                let at = self.engine.now();
                let settled = settled(&claim, failed(error.to_string()), at, at, self.engine.entropy());
                let _ = self.engine.settle(&claim, settled).await;
            }
        }
    }

    /// Whether a channel wakes a session of which other tasks still run.
    async fn settles(&self, channel: &Channel) -> bool {
        let Channel::Wake { owner, .. } = channel else { return false };
        let statuses = Status::ALL.into_iter().filter(|status| !status.is_terminal()).collect();
        let live = Filter { owner: Some(owner.clone()), statuses, limit: 1, ..Filter::default() };
        self.engine.list(live).await.is_ok_and(|page| !page.items.is_empty())
    }

    /// Waits until what is due of a channel may be claimed. False if nothing is left of it, or not now.
    async fn until_ready(&self, channel: &Channel, more: &Notify) -> Result<bool, Error> {
        if !self.engine.admit(channel).await? {
            return Ok(false);
        }
        let (Channel::Wake { owner, .. } | Channel::Desktop { owner }) = channel else { return Ok(true) };
        let surroundings = self.webhooks.surroundings();
        let (mut looks, mut judged, mut said) = (0, true, None);
        let mut config = self.engine.configured();
        loop {
            config.mark_unchanged();
            let Some(route) = self.engine.route(channel).await? else { return Ok(judged) };
            let settings = self.engine.config().wake;
            let runs = matches!(&route, Route::Session(session) if settings.runs(session.headless));
            let readiness = match self.engine.is_awaited(owner) {
                true => Readiness::Busy(AWAITED.to_owned()),
                false if matches!(route, Route::Pane(_)) && !settings.tmux => {
                    Readiness::Closed(homing_model::wake::NO_TMUX.to_owned())
                }
                false => wake::readiness(&route, runs, surroundings).await,
            };
            match &readiness {
                Readiness::Ready if judged => return Ok(true),
                Readiness::Ready => {}
                Readiness::Busy(why) | Readiness::Closed(why) => {
                    if said.as_ref() != Some(why) {
                        self.engine.put_off(channel, why).await?;
                        said = Some(why.clone());
                    }
                    tokio::select! {
                        () = tokio::time::sleep(readiness.pause(looks)) => looks += 1,
                        // What kept it may be allowed by now.
                        Ok(()) = config.changed() => looks = 0,
                        // Something new is due, perhaps with news of the way.
                        () = more.notified() => {
                            tokio::time::sleep(GATHER).await;
                            said = None;
                        }
                    }
                    judged = false;
                    // A session that is closed is looked at so seldom that each look can ask: what its hooks told it meanwhile is not to be
                    // shown as waiting for it.
                    if looks % JUDGED != 0 && matches!(readiness, Readiness::Busy(_)) {
                        continue;
                    }
                }
            }
            // Its owner may know it by now, and it grows old.
            if !self.engine.admit(channel).await? {
                return Ok(false);
            }
            judged = true;
        }
    }

    /// Gives up what the configuration forbids by now; the rest is left.
    async fn permitted(&self, claims: Vec<Claimed>) -> Vec<Claimed> {
        let policy = self.engine.config().notify.clone();
        let mut left = Vec::with_capacity(claims.len());
        for claim in claims {
            let kind = TargetKind::from(&claim.target);
            if policy.check(kind).is_ok() {
                left.push(claim);
                continue;
            }
            let dead = Settled { tried: None, next: Next::Dead(operator::Policy::given_up(kind)) };
            if let Err(error) = self.engine.settle(&claim, dead).await {
                tracing::error!(delivery = %claim.id, %error, "what is forbidden could not be given up; it stays here");
            }
        }
        left
    }

    /// Makes one attempt and records what came of it.
    async fn attempt(self, claim: Claimed) {
        let at = self.engine.now();
        let attempt = match &claim.target {
            Target::Webhook(url) => self.post(url, &claim, at).await,
            other @ (Target::Inbox | Target::Exec(_) | Target::Wake(_) | Target::Desktop) => {
                failed(format!("nothing here delivers to `{}`", other.shown()))
            }
        };
        let settled = settled(&claim, attempt, at, self.engine.now(), self.engine.entropy());
        let again = matches!(settled.next, Next::At(_));
        match self.engine.settle(&claim, settled).await {
            Ok(true) if again => self.again.notify_one(),
            Ok(true) => {}
            Ok(false) => tracing::warn!(delivery = %claim.id, "an attempt took longer than its lease"),
            Err(error) => {
                tracing::error!(delivery = %claim.id, %error, "what came of an attempt could not be recorded; it will be made again");
            }
        }
    }

    async fn post(&self, url: &str, claim: &Claimed, now: Timestamp) -> Attempt {
        let policy = self.webhooks.policy();
        let endpoint = match Endpoint::parse(url, Caller::of(!claim.network), &policy) {
            Ok(endpoint) => endpoint,
            Err(refusal) => return failed(refusal.to_string()),
        };
        let (keys, message) = match (self.webhooks.keys(claim.secret.as_ref()), message(claim)) {
            (Ok(keys), Ok(message)) => (keys, message),
            (Err(why), _) | (_, Err(why)) => return failed(why),
        };
        let client = self.client.clone().with_policy(policy).with_deadline(self.webhooks.deadline());
        deliver(&client, &endpoint, &keys, &message, now).await
    }
}

/// Why a wake waits: somebody tells the session by themselves.
const AWAITED: &str = "a process of its own waits for the session's inbox, and tells it";

/// How much of a channel is handed over at once. Into a pane each notice goes by itself: the line that is typed names one, and only the
/// notice's own way says which server has that pane and which program was in it.
fn together(channel: &Channel) -> u32 {
    match channel {
        Channel::Wake { address: Some(whom), .. } if matches!(whom.parse(), Ok(Address::Tmux(_))) => 1,
        Channel::Wake { .. } | Channel::Desktop { .. } => turn::MOST as u32,
        Channel::Command { .. } | Channel::Endpoint { .. } => TOGETHER,
    }
}

/// The body: made of the notice as the ledger keeps it, so that every attempt sends the same bytes. `text` is the notice in words, fit for a
/// model; a notice of a later release that cannot be put into words goes without.
fn message(claim: &Claimed) -> Result<Message, String> {
    #[derive(Deserialize)]
    struct Head {
        r#type: String,
        at: Timestamp,
    }
    let head: Head =
        serde_json::from_str(&claim.notice).map_err(|error| format!("its notice is damaged: {error}"))?;
    let (kind, at) = (serde_json::json!(head.r#type), serde_json::json!(head.at));
    let text = serde_json::from_str::<Notice>(&claim.notice)
        .map(|notice| format!(",\"text\":{}", serde_json::json!(turn::compose(&[notice], 0).text)));
    let text = text.unwrap_or_default();
    let body = format!("{{\"type\":{kind},\"timestamp\":{at},\"data\":{}{text}}}", claim.notice);
    Message::kept(claim.notice_id.as_str(), Bytes::from(body)).map_err(|error| error.to_string())
}

fn failed(why: String) -> Attempt {
    Attempt {
        verdict: Verdict::Failed { why: why.clone(), retry_after: None },
        status: None,
        detail: why,
        took_ms: 0,
    }
}

/// What the ledger is told of an attempt.
fn settled(claim: &Claimed, attempt: Attempt, at: Timestamp, now: Timestamp, entropy: u64) -> Settled {
    let before = Tries { attempts: claim.attempts, busy: claim.busy };
    let tried = Tried { at, took_ms: attempt.took_ms, status: attempt.status, result: attempt.detail };
    Settled::after(before, &attempt.verdict, tried, entropy, now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn into_a_pane_goes_one_at_a_time() {
        let of = |target: &str| together(&Channel::new(&target.parse().unwrap(), "ann", None).unwrap());
        assert_eq!((of("wake:tmux:%3"), of("wake:claude:s1"), of("desktop")), (1, 50, 50));
        assert_eq!(of("exec:wake:tmux:%3"), TOGETHER);
    }
}
