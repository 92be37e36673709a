//! Inboxes of owners, reservations, and the sessions that read them.

use homing_model::NoticeInfo;
use homing_model::reservation::{Access, ConfirmedBy, Confirmer};
use homing_model::{AgentName, Notice, NoticeId, TaskId, Timestamp};

use super::Op;
use crate::outbox::{Available, Waiting};
use crate::reservation::{Handed, Take, Waiter};
use crate::session::{Bind, Binding, SessionClaim};

/// Inboxes of owners, reservations, and the sessions that read them.
pub trait Inbox: Send + Sync + 'static {
    /// Owners with something in the inbox, at most `limit`, by name, those after `after`.
    fn waiting(&self, after: String, limit: u32) -> Op<Vec<Waiting>>;

    /// What is free in an owner's inbox, oldest first: to look at, or to take. Changes nothing.
    fn peek(&self, owner: String, limit: u32, access: Access, now: Timestamp) -> Op<Available>;

    /// Gives out entries of an owner; answers with those that were there.
    fn take(&self, owner: String, take: Take, now: Timestamp) -> Op<Vec<Notice>>;

    /// Removes entries for good: these, and all of these tasks; answers with those that were there.
    fn acknowledge(&self, owner: String, ids: Vec<NoticeId>, tasks: Vec<TaskId>) -> Op<Vec<NoticeId>>;

    /// Reserves the ends of tasks for a waiter: they stay readable, and no hook, waiter or wake gets them until it is released or expires. A second
    /// time with the same call, it lasts longer. It takes the place of what the task's submit announced.
    fn reserve(&self, waiter: Waiter, now: Timestamp) -> Op<()>;

    /// Releases a waiter, whose answer delivered the ends of these tasks to its owner, if any.
    fn release(&self, waiter: Waiter, delivered: Option<(Vec<TaskId>, Handed)>, now: Timestamp) -> Op<()>;

    /// Whose call confirms something that was delivered, and until when.
    fn unconfirmed(&self, now: Timestamp) -> Op<Vec<(Confirmer, Timestamp)>>;

    /// Acknowledges what was delivered, has not expired, and is confirmed by this.
    fn confirm(&self, confirmer: Confirmer, by: ConfirmedBy, now: Timestamp) -> Op<()>;

    /// Notices whose id begins so, a few of them: of those that wait for the owner, or else of all that are kept.
    fn find_notices(&self, start: String, owner: String) -> Op<Vec<NoticeId>>;

    /// What was told of a task, the newest `limit` of it, oldest first, and whether its owner has it.
    fn notices(&self, task: TaskId, limit: u32, now: Timestamp) -> Op<Vec<NoticeInfo>>;

    /// A session of an agent was seen in a process. Where that is said, its owner's unconfirmed entries are open again.
    fn bind(&self, bind: Bind) -> Op<()>;

    /// A session is in this process no more; false where it is in another by now, and stays there. What that process was told, and nothing
    /// confirmed, is open again.
    fn unbind(&self, binding: Binding, now: Timestamp) -> Op<bool>;

    /// Records the session of the agent inside a task, and returns the one that is recorded then. The claim is refused, and the record stays as
    /// it was, if the task has another session than `replaces`, or if the session belongs to somebody else: it owns tasks that were not
    /// submitted from inside this task, or is recorded for another task that runs or has another owner.
    fn claim_session(&self, claim: SessionClaim) -> Op<Option<String>>;

    /// Where a session is, or was last.
    fn binding(&self, agent: AgentName, session: String) -> Op<Option<Binding>>;

    /// What is bound to these process ids, in their order; which processes those are is the caller's to see.
    fn bindings(&self, pids: Vec<u32>) -> Op<Vec<Binding>>;
}
