//! What went out, and sending it again.

use homing_model::api::{Page, RedeliverAnswer};
use homing_model::{Delivery, DeliveryState};

use crate::call::Call;
use crate::client::Client;
use crate::error::Error;
use crate::query::Target;

impl Client {
    /// A page of deliveries, newest first.
    ///
    /// # Errors
    /// If it was refused, or nobody answered.
    pub async fn deliveries(
        &self,
        state: Option<DeliveryState>,
        task: Option<&str>,
        cursor: Option<&str>,
    ) -> Result<Page<Delivery>, Error> {
        let target = Target::new("/v1/deliveries")
            .maybe("state", state)
            .maybe("task", task)
            .maybe("limit", cursor.map(|_| 1_000))
            .maybe("cursor", cursor);
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
