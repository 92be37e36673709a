//! Deliveries: due, claimed, settled.

use homing_model::operator::TargetKind;
use homing_model::wake::Budget;
use homing_model::{Channel, DeliveryId, Route, Timestamp};

use super::SqliteStore;
use crate::outbox::{Claimed, DeliveryFilter, DeliveryPage, Redeliver, Redelivered, Settled, Terms, Wake};
use crate::record::{NewTask, Record};
use crate::sqlite::notices::claims;
use crate::sqlite::notices::deliveries;
use crate::sqlite::notices::hooks;
use crate::sqlite::notices::wakes;
use crate::sqlite::tasks::find;
use crate::sqlite::threads::writer::Durability::{Full, Relaxed};
use crate::store::Op;
use crate::store::Outbox;

impl Outbox for SqliteStore {
    fn due(&self, now: Timestamp) -> Op<(Vec<Channel>, Option<Timestamp>)> {
        self.reader.run(move |conn| claims::due(conn, now))
    }

    fn claim(&self, channel: Channel, limit: u32, until: Timestamp, now: Timestamp) -> Op<Vec<Claimed>> {
        self.writer.run(Relaxed, move |conn| claims::claim(conn, &channel, limit, until, now))
    }

    fn admit(&self, channel: Channel, terms: Terms, entropy: u64, now: Timestamp) -> Op<bool> {
        self.writer.run(Relaxed, move |conn| wakes::admit(conn, &channel, terms, entropy, now))
    }

    fn apply_budget(&self, budget: Budget, now: Timestamp) -> Op<u64> {
        self.writer.run(Relaxed, move |conn| wakes::apply_budget(conn, budget, now))
    }

    fn route(&self, channel: Channel, now: Timestamp) -> Op<Option<Route>> {
        self.reader.run(move |conn| claims::route(conn, &channel, now))
    }

    fn put_off(&self, channel: Channel, why: String, now: Timestamp) -> Op<()> {
        self.writer.run(Relaxed, move |conn| claims::put_off(conn, &channel, &why, now))
    }

    fn give_up(&self, kinds: Vec<TargetKind>, limit: u32, now: Timestamp) -> Op<u64> {
        self.writer.run(Relaxed, move |conn| deliveries::give_up(conn, &kinds, limit, now))
    }

    fn hand_over(
        &self,
        claims: Vec<(DeliveryId, u64)>,
        hook: NewTask,
        wake: Option<Wake>,
        now: Timestamp,
    ) -> Op<Option<Record>> {
        self.writer.run(Full, move |conn| hooks::hand_over(conn, &claims, hook, wake.as_ref(), now))
    }

    fn release_claims(&self) -> Op<()> {
        self.writer.run_essential(Relaxed, claims::release)
    }

    fn release_unending(&self) -> Op<u64> {
        let found = self.reader.run(claims::unending);
        let writer = self.writer.clone();
        Box::pin(async move {
            if found.await?.is_empty() {
                return Ok(0);
            }
            writer.run(Relaxed, claims::release_unending).await
        })
    }

    fn settle(&self, delivery: DeliveryId, fence: u64, settled: Settled, now: Timestamp) -> Op<bool> {
        // What a power cut undoes is delivered once more, under the same id.
        self.writer.run_essential(Relaxed, move |conn| {
            deliveries::settle(conn, &delivery, fence, settled.clone(), now)
        })
    }

    fn deliveries(&self, filter: DeliveryFilter) -> Op<DeliveryPage> {
        self.reader.run(move |conn| deliveries::list(conn, &filter))
    }

    fn redeliver(&self, which: Redeliver, closed: Vec<TargetKind>, now: Timestamp) -> Op<Redelivered> {
        self.writer.run(Full, move |conn| deliveries::redeliver(conn, &which, &closed, now))
    }

    fn find_deliveries(&self, start: String) -> Op<Vec<DeliveryId>> {
        self.reader.run(move |conn| find::deliveries(conn, &start))
    }
}
