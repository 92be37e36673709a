//! Looking at deliveries, and sending some again.

use homing_model::api::{Page, RedeliverAnswer};
use homing_model::{Delivery, DeliveryId, DeliveryState, TaskId};
use homing_store::outbox::{DeliveryFilter, Redeliver};

use crate::engine::Engine;
use crate::error::Error;

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
            limit: limit + 1,
            before,
        };
        let mut rows = self.inner.store.deliveries(filter).await?;
        let more = rows.len() > limit as usize;
        rows.truncate(limit as usize);
        let next_cursor = rows.last().filter(|_| more).map(|(place, _)| place.to_string());
        Ok(Page { items: rows.into_iter().map(|(_, delivery)| delivery).collect(), next_cursor })
    }

    /// Sends again: a delivery by its id, all of a task, or all in a state.
    ///
    /// # Errors
    /// If there is no such delivery or task, or the ledger cannot be written.
    pub async fn redeliver(&self, text: &str, owner: &str) -> Result<RedeliverAnswer, Error> {
        let which = match (text.parse::<DeliveryId>(), text.parse::<DeliveryState>()) {
            (Ok(id), _) => Redeliver::Delivery(id),
            (_, Ok(state)) => Redeliver::State(state),
            (Err(_), Err(_)) => Redeliver::Task(self.resolve(text, owner).await?),
        };
        let named = matches!(which, Redeliver::Delivery(_));
        let redelivered = self.inner.store.redeliver(which, self.inner.now()).await?;
        if named && redelivered.is_empty() {
            return Err(Error::UnknownDelivery(text.to_owned()));
        }
        self.inner.bump();
        Ok(RedeliverAnswer { redelivered })
    }
}
