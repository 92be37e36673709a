//! Retention, counts, checks, and closing.

use homing_model::counts::{DeliveryCounts, TaskCounts};
use homing_model::retention::Policy;
use homing_model::{TaskId, Timestamp};

use super::{Applied, Op, Retired, Trimmed};
use crate::census::{Census, Work};

/// Retention, counts, checks, and closing.
pub trait Upkeep: Send + Sync + 'static {
    /// Turns one ended task into a tombstone, with `task.forgotten`. `Rejected` while it is live or if it was forgotten before.
    fn forget(&self, id: TaskId, now: Timestamp) -> Op<Applied>;

    /// Turns at most `limit` ended tasks past the policy into tombstones, oldest end first, each with `task.forgotten`.
    fn retire(&self, policy: Policy, now: Timestamp, limit: u32) -> Op<Vec<Retired>>;

    /// When the first task of the agent session that this task reported was accepted. None while a task that is not forgotten
    /// has the session, if a process is or was in it and no task has it recorded as its agent's, and if this task reported none.
    fn released_session(&self, id: TaskId) -> Op<Option<Timestamp>>;

    /// Drops tombstones, idempotency keys and events past their time (for events, that of finished tasks: `policy.age`), at most `limit`
    /// rows of each.
    /// Ids of dropped tombstones are still never issued again.
    fn trim(&self, policy: Policy, now: Timestamp, limit: u32) -> Op<Trimmed>;

    /// How many there are.
    fn counts(&self) -> Op<TaskCounts>;

    /// How many deliveries are pending, and how many were given up.
    fn delivery_counts(&self) -> Op<DeliveryCounts>;

    /// The same in detail, with what waits to be told. Asked by whoever watches, not by whoever works.
    fn census(&self) -> Op<Census>;

    /// What it has done since it was opened.
    fn work(&self) -> Work;

    /// Makes sure that the ledger still is where it was opened, and puts it back if it was deleted: then nothing is written any more, and
    /// it has to be opened anew. Every write makes sure of it too. [`Error::Closed`] if what reads or writes it is gone.
    fn intact(&self) -> Op<()> {
        Box::pin(async { Ok(()) })
    }

    /// Checks the whole database.
    fn check(&self) -> Op<()>;

    /// Writes what is pending and lets go of the files.
    fn close(&self) -> Op<()>;
}
