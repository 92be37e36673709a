//! Accepting tasks, and claiming those that wait.

use homing_model::Timestamp;

use super::{Answered, ClaimQueued, Idempotency, Op, Submit, Submitted};
use crate::record::Record;

/// Accepting tasks, and claiming those that wait.
pub trait Queue: Send + Sync + 'static {
    /// Accepts a task, with its `task.queued` event, and claims it if [`decide`](homing_model::queue::decide) starts it. Two submits with one key at once give one task, and however many
    /// are sent at once, a parent has no more live children than it may have. An external task runs from the start, with `task.started` too.
    fn submit(&self, submit: Submit, now: Timestamp) -> Op<Submitted>;

    /// Claims the waiting tasks that [`decide`](homing_model::queue::decide) starts: state `starting`, on this node. Each task is returned
    /// to one caller only.
    fn claim_queued(&self, claim: ClaimQueued) -> Op<Vec<Record>>;

    /// What the same request of this owner was answered with before, while its key stands.
    fn answered(&self, owner: String, request: Idempotency, now: Timestamp) -> Op<Option<Answered>>;
}
