//! Deliveries: due, claimed, settled.

use homing_model::operator::TargetKind;
use homing_model::wake::Budget;
use homing_model::{Channel, DeliveryId, Route, Timestamp};

use super::Op;
use crate::outbox::{Claimed, DeliveryFilter, DeliveryPage, Redeliver, Redelivered, Settled, Terms, Wake};
use crate::record::{NewTask, Record};

/// Deliveries: due, claimed, settled.
pub trait Outbox: Send + Sync + 'static {
    /// The channels (one endpoint, one command) with a delivery that is due, and when the next one is that is not due yet, of whichever channel.
    /// A command that has something handed over is told the rest after its end.
    fn due(&self, now: Timestamp) -> Op<(Vec<Channel>, Option<Timestamp>)>;

    /// Claims due deliveries of one channel until `until`, oldest first.
    fn claim(&self, channel: Channel, limit: u32, until: Timestamp, now: Timestamp) -> Op<Vec<Claimed>>;

    /// Before what is due of a channel that wakes somebody is claimed: ends what must not wake any more (its owner has it, or it is too old;
    /// a command is run all the same), and while the owner's budget is spent holds the rest until there is room, each with an entry in the inbox, and `wake.paused` once an
    /// hour. False if there is nothing to claim now.
    ///
    /// What somebody has taken from the inbox waits for their acknowledgement, or the end of their lease.
    fn admit(&self, channel: Channel, terms: Terms, entropy: u64, now: Timestamp) -> Op<bool>;

    /// Makes deliveries due that wait because another budget is spent, and answers how many: the next
    /// [`admit`](super::Outbox::admit) decides by its own.
    fn apply_budget(&self, budget: Budget, now: Timestamp) -> Op<u64>;

    /// The way of what is due of a channel that wakes somebody: that of the newest.
    fn route(&self, channel: Channel, now: Timestamp) -> Op<Option<Route>>;

    /// Says why what is due of a channel is not claimed yet; the claim that follows takes it back.
    fn put_off(&self, channel: Channel, why: String, now: Timestamp) -> Op<()>;

    /// Gives up what is pending, and not under way, to targets of these kinds, at most `limit`; answers how many.
    fn give_up(&self, kinds: Vec<TargetKind>, limit: u32, now: Timestamp) -> Op<u64>;

    /// Gives claimed deliveries to a command (`exec:`), which is accepted and claimed for starting in the same transaction: its end settles
    /// them, by exit code (0 delivered, 75 busy, anything else a failed attempt), whoever is there to see it. A wake is counted, unless it
    /// ends busy. `None`, and nothing is changed, if a claim was no longer the caller's, or the id was used before; `None`, and the claims are
    /// released, if the budget of a wake is spent or somebody has one of the entries. While it has them nobody else gets the entries; a wake
    /// that is delivered acknowledges them.
    fn hand_over(
        &self,
        claims: Vec<(DeliveryId, u64)>,
        hook: NewTask,
        wake: Option<Wake>,
        now: Timestamp,
    ) -> Op<Option<Record>>;

    /// Whoever claimed deliveries before is known to be gone: they are due again. The fence refuses what it may still say.
    fn release_claims(&self) -> Op<()>;

    /// Commands whose row is damaged or gone never end: what they were given is due again. Answers how many there were; writes nothing where
    /// there is none.
    fn release_unending(&self) -> Op<u64>;

    /// What came of an attempt, with an event of the delivery at the end. False if the claim was no longer ours.
    fn settle(&self, delivery: DeliveryId, fence: u64, settled: Settled, now: Timestamp) -> Op<bool>;

    /// Deliveries, newest first, and where the next page begins. One that cannot be read is left out, and hides no other.
    fn deliveries(&self, filter: DeliveryFilter) -> Op<DeliveryPage>;

    /// Makes deliveries pending and due, and their schedule begin anew; attempts and history are counted on. Nothing is changed of those to
    /// targets of the kinds in `closed`.
    fn redeliver(&self, which: Redeliver, closed: Vec<TargetKind>, now: Timestamp) -> Op<Redelivered>;

    /// Deliveries whose id begins so, a few of them.
    fn find_deliveries(&self, start: String) -> Op<Vec<DeliveryId>>;
}
