//! Deliveries: looking at them, sending some again, and what the part that delivers needs of the ledger.

use std::time::Duration;

use homing_api::{NotRedelivered, Page, RedeliverAnswer};
use homing_model::operator::Policy;
use homing_model::{Channel, Delivery, DeliveryId, DeliveryState, Route, TaskId, Timestamp, wake};
use homing_store::outbox::{Claimed, DeliveryFilter, Redeliver, Redelivered, Settled, Terms};
use tokio::sync::watch;

use crate::engine::Engine;
use crate::entropy;
use crate::error::{Error, only};

/// Deliveries given at once, where the caller does not say.
const PAGE: u32 = 100;

/// Deliveries given up at once.
const STEP: u32 = 500;

/// Which deliveries.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeliveryQuery {
    /// In this state.
    pub state: Option<DeliveryState>,
    /// Of this task.
    pub task: Option<TaskId>,
    /// Of this owner.
    pub owner: Option<String>,
    /// At most so many.
    pub limit: Option<u32>,
    /// Where the last page ended.
    pub cursor: Option<String>,
}

impl Engine {
    /// A page of deliveries, newest first.
    ///
    /// # Errors
    /// If the cursor is none of ours, or the ledger cannot be read.
    pub async fn deliveries(&self, query: DeliveryQuery) -> Result<Page<Delivery>, Error> {
        let limit = query.limit.unwrap_or(PAGE).clamp(1, 1_000);
        let before = query.cursor.map(|cursor| cursor.parse()).transpose().map_err(|_| {
            Error::BadParameter("`cursor` is not one that a list has answered with".to_owned())
        })?;
        let filter = DeliveryFilter {
            state: query.state,
            task: query.task,
            owner: query.owner,
            hook: None,
            limit,
            before,
        };
        let page = self.inner.store.deliveries(filter).await?;
        Ok(Page { items: page.items, next_cursor: page.next.map(|place| place.to_string()) })
    }

    /// The channels with something due, and when there is more. For what delivers.
    ///
    /// # Errors
    /// If the ledger cannot be read.
    pub async fn due(&self) -> Result<(Vec<Channel>, Option<Timestamp>), Error> {
        Ok(self.inner.store.due(self.inner.now()).await?)
    }

    /// Whether what is due of a channel may be handed over now. Where that wakes somebody, what must not wake any more is ended, and what is
    /// beyond the budget waits in the inbox.
    ///
    /// # Errors
    /// If the ledger cannot be written.
    pub async fn admit(&self, channel: &Channel) -> Result<bool, Error> {
        if !channel.spends_budget() {
            return Ok(true);
        }
        let inner = &self.inner;
        let config = inner.config();
        let terms = Terms { budget: config.wake.budget(), at_most: config.notify.on };
        let open = inner.store.admit(channel.clone(), terms, entropy::draw(), inner.now()).await?;
        inner.bump();
        Ok(open)
    }

    /// The way of what is due of a channel that wakes somebody.
    ///
    /// # Errors
    /// If the ledger cannot be read.
    pub async fn route(&self, channel: &Channel) -> Result<Option<Route>, Error> {
        Ok(self.inner.store.route(channel.clone(), self.inner.now()).await?)
    }

    /// Says why what is due of a channel is not claimed yet.
    ///
    /// # Errors
    /// If the ledger cannot be written.
    pub async fn put_off(&self, channel: &Channel, why: &str) -> Result<(), Error> {
        Ok(self.inner.store.put_off(channel.clone(), why.to_owned(), self.inner.now()).await?)
    }

    /// Applies changed settings to pending deliveries: gives up those to targets that are forbidden by
    /// now, and makes those due that wait because another budget of wakes is spent.
    ///
    /// # Errors
    /// If the ledger cannot be written.
    pub async fn apply_settings(&self) -> Result<(), Error> {
        let config = self.inner.config();
        let closed = config.notify.closed();
        while !closed.is_empty()
            && self.inner.store.give_up(closed.clone(), STEP, self.inner.now()).await? == u64::from(STEP)
        {
        }
        self.inner.store.apply_budget(config.wake.budget(), self.inner.now()).await?;
        self.inner.bump();
        Ok(())
    }

    /// Claims what is due of one channel, for as long as an attempt may take.
    ///
    /// # Errors
    /// If the ledger cannot be written.
    pub async fn claim(&self, channel: &Channel, limit: u32, lease: Duration) -> Result<Vec<Claimed>, Error> {
        let now = self.inner.now();
        let until = now.plus_millis(i64::try_from(lease.as_millis()).unwrap_or(i64::MAX));
        Ok(self.inner.store.claim(channel.clone(), limit, until, now).await?)
    }

    /// Records what came of an attempt. False if the claim was no longer the caller's: somebody else has made another attempt.
    ///
    /// # Errors
    /// If the ledger cannot be written; the claim then ends by itself, and the attempt is made again under the same id.
    pub async fn settle(&self, claimed: &Claimed, settled: Settled) -> Result<bool, Error> {
        self.inner.meters.settled(&claimed.target, &settled);
        let ours =
            self.inner.store.settle(claimed.id.clone(), claimed.fence, settled, self.inner.now()).await?;
        self.inner.bump();
        Ok(ours)
    }

    /// Changes whenever something was put on its way.
    #[must_use]
    pub fn outgoing(&self) -> watch::Receiver<u64> {
        self.inner.outgoing.subscribe()
    }

    /// What time it is for this engine.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.inner.now()
    }

    /// Waits until it is this time for this engine, or a while: look again.
    pub async fn sleep_until(&self, at: Timestamp) {
        self.inner.clock.sleep_until(at).await;
    }

    /// Random bits.
    #[must_use]
    pub fn entropy(&self) -> u64 {
        entropy::draw()
    }

    /// The only delivery whose id begins so.
    async fn delivery_like(&self, text: &str, start: String) -> Result<DeliveryId, Error> {
        let found = self.inner.store.find_deliveries(start).await?;
        only(found, text, "deliveries")?.ok_or_else(|| Error::UnknownDelivery(text.to_owned()))
    }

    /// Sends again: a delivery by its id or a unique start of it, all of a task, or all in a state.
    ///
    /// # Errors
    /// If there is no such delivery or task, if none of them may go out by now, or if the ledger cannot be written.
    pub async fn redeliver(&self, text: &str, owner: &str) -> Result<RedeliverAnswer, Error> {
        let which = match (text.parse::<DeliveryId>(), text.parse::<DeliveryState>()) {
            (Ok(id), _) => Redeliver::Delivery(id),
            (_, Ok(DeliveryState::Superseded)) => {
                return Err(Error::BadParameter(
                    "what is `superseded` reached its owner by another way; name a delivery by its id to send it all the same"
                        .to_owned(),
                ));
            }
            (_, Ok(state)) => Redeliver::State(state),
            // A task may be called like the start of a delivery; who means that can always write more of it.
            (Err(_), Err(_)) => match (self.resolve(text, owner).await, DeliveryId::start(text)) {
                (Err(Error::Unknown(_)), Some(start)) => {
                    Redeliver::Delivery(self.delivery_like(text, start).await?)
                }
                (Err(Error::Unknown(_)), None) if DeliveryId::has_prefix(text) => {
                    return Err(Error::UnknownDelivery(text.to_owned()));
                }
                (task, _) => {
                    let task = task?;
                    self.certain(text, &task).await?;
                    Redeliver::Task(task)
                }
            },
        };
        let named = matches!(which, Redeliver::Delivery(_));
        let closed = self.inner.config().notify.closed();
        let answer = self.inner.store.redeliver(which, closed, self.inner.now()).await?;
        let Redelivered { due, closed, superseded } = answer;
        let closed = closed.into_iter().map(|(id, kind)| NotRedelivered { id, reason: Policy::closes(kind) });
        let mut refused: Vec<_> = closed.collect();
        if due.is_empty() {
            if let Some(NotRedelivered { id, reason }) = refused.first() {
                let others = refused.len() - 1;
                return Err(Error::Forbidden(if others == 0 {
                    format!("{id} is not sent again, and stays as it is: {reason}")
                } else {
                    format!("{id} and {others} more are not sent again, and stay as they are: {reason}")
                }));
            }
            if named {
                return Err(Error::UnknownDelivery(text.to_owned()));
            }
        }
        refused.extend(superseded.into_iter().map(|id| {
            let reason = format!("{}; `homing redeliver {id}` sends it all the same", wake::TOLD);
            NotRedelivered { id, reason }
        }));
        self.inner.bump();
        self.inner.outgoing.send_modify(|count| *count += 1);
        Ok(RedeliverAnswer { redelivered: due, refused })
    }
}
