//! What went out, and sending it again.

use homing_api::{Page, RedeliverAnswer};
use homing_model::{Delivery, DeliveryState};

use crate::transport::call::Call;
use crate::transport::client::Client;
use crate::transport::error::Error;
use crate::transport::query::Target;

/// Which deliveries.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeliveryQuery {
    /// In this state.
    pub state: Option<DeliveryState>,
    /// Of this task.
    pub task: Option<String>,
    /// Of this owner.
    pub owner: Option<String>,
    /// At most so many, and no more than 1,000; 100 if absent.
    pub limit: Option<u32>,
    /// Where the last page ended.
    pub cursor: Option<String>,
}

impl Client {
    /// A page of deliveries, newest first.
    ///
    /// # Errors
    /// If it was refused, or nobody answered.
    pub async fn deliveries(&self, query: &DeliveryQuery) -> Result<Page<Delivery>, Error> {
        let target = Target::new("/v1/deliveries")
            .maybe("state", query.state)
            .maybe("task", query.task.as_deref())
            .maybe("owner", query.owner.as_deref())
            .maybe("limit", query.limit)
            .maybe("cursor", query.cursor.as_deref());
        self.persist(&Call::get(target)).await?.json()
    }

    /// Sends again: one delivery by its id, all of a task, or all in a state.
    ///
    /// # Errors
    /// If there is no such delivery or task, or nobody answered.
    pub async fn redeliver(&self, which: &str) -> Result<RedeliverAnswer, Error> {
        self.send(&Call::post(Target::delivery(which, "/redeliver"))).await?.json()
    }
}
