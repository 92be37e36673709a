//! Lists of deliveries, and sending some again.

use homing_api::{NotRedelivered, Page, RedeliverAnswer};
use homing_model::operator::Policy;
use homing_model::{Channel, Delivery, DeliveryId, DeliveryState, TaskId, Timestamp, wake};
use homing_store::outbox::{DeliveryFilter, Redeliver, Redelivered};

use crate::engine::Engine;
use crate::error::{Error, only};

/// Deliveries given at once, where the caller does not say.
const PAGE: u32 = 100;

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

    /// The channels with a due delivery, and when the next one is due.
    ///
    /// # Errors
    /// If the ledger cannot be read.
    pub async fn due(&self) -> Result<(Vec<Channel>, Option<Timestamp>), Error> {
        Ok(self.inner.store.due(self.inner.now()).await?)
    }

    /// The only delivery whose id begins so.
    async fn delivery_like(&self, text: &str, start: String) -> Result<DeliveryId, Error> {
        let found = self.inner.store.find_deliveries(start).await?;
        only(found, text, "deliveries")?.ok_or_else(|| Error::UnknownDelivery(text.to_owned()))
    }

    /// What a text names: a delivery by its id or a unique start of it, a task, or a state.
    async fn redeliverable(&self, text: &str, owner: &str) -> Result<Redeliver, Error> {
        match (text.parse::<DeliveryId>(), text.parse::<DeliveryState>()) {
            (Ok(id), _) => return Ok(Redeliver::Delivery(id)),
            (_, Ok(DeliveryState::Superseded)) => {
                return Err(Error::BadParameter(
                    "what is `superseded` reached its owner by another way; name a delivery by its id to send it all the same"
                        .to_owned(),
                ));
            }
            (_, Ok(state)) => return Ok(Redeliver::State(state)),
            (Err(_), Err(_)) => {}
        }
        // A task may be called like the start of a delivery, of which more can always be written.
        match (self.resolve(text, owner).await, DeliveryId::start(text)) {
            (Err(Error::Unknown(_)), Some(start)) => {
                Ok(Redeliver::Delivery(self.delivery_like(text, start).await?))
            }
            (Err(Error::Unknown(_)), None) if DeliveryId::has_prefix(text) => {
                Err(Error::UnknownDelivery(text.to_owned()))
            }
            (task, _) => {
                let task = task?;
                self.certain(text, &task).await?;
                Ok(Redeliver::Task(task))
            }
        }
    }

    /// Sends again: a delivery by its id or a unique start of it, all of a task, or all in a state.
    ///
    /// # Errors
    /// If there is no such delivery or task, if none of them may go out by now, or if the ledger cannot be written.
    pub async fn redeliver(&self, text: &str, owner: &str) -> Result<RedeliverAnswer, Error> {
        let which = self.redeliverable(text, owner).await?;
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
        self.inner.set_free();
        Ok(RedeliverAnswer { redelivered: due, refused })
    }
}
