//! The trait of whole operations.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;

use homing_model::NoticeInfo;
use homing_model::counts::{DeliveryCounts, TaskCounts};
use homing_model::notice::Body;
use homing_model::notify::When;
use homing_model::operator::TargetKind;
use homing_model::queue::StartPolicy;
use homing_model::reservation::{Access, ConfirmedBy, Confirmer};
use homing_model::retention::Policy;
use homing_model::wake::Budget;
use homing_model::watch;
use homing_model::{
    AgentName, Attempt, Channel, DeliveryId, Ending, Event, EventKind, Notice, NoticeId, OnDuplicate,
    Progress, Reference, Route, Status, TaskId, Timestamp,
};

use crate::census::{Census, Work};
use crate::outbox::{
    Available, Claimed, DeliveryFilter, DeliveryPage, Redeliver, Redelivered, Report, Settled, Terms,
    Waiting, Wake,
};
use crate::record::{NewTask, Record, Started, Stop};
use crate::reservation::{Handed, Take, Waiter};
use crate::session::{Bind, Binding, SessionClaim};

/// The future of an operation.
pub type Op<T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send>>;

/// Why an operation did not happen. Whatever the reason, nothing of it is visible.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// No space left.
    #[error("the disk with the database is full")]
    Full,
    /// The disk or the filesystem failed; what was being written is not acknowledged.
    #[error("the database could not be read or written: {0}")]
    Io(String),
    /// The file is damaged.
    #[error("the database is damaged: {0}")]
    Corrupt(String),
    /// Written by a later release.
    #[error("the database has schema {found}, this release knows up to {known}")]
    TooNew {
        /// Its version.
        found: u32,
        /// Ours.
        known: u32,
    },
    /// Not a homing database at all.
    #[error("{0} is a database of another program")]
    Foreign(String),
    /// The filesystem cannot hold it safely.
    #[error("{path}: {why}")]
    Filesystem {
        /// Where.
        path: String,
        /// Why not.
        why: String,
    },
    /// A row that does not make sense; the others are unaffected.
    #[error("the row of task {task} is damaged: {why}")]
    BadRow {
        /// Which, as far as it can be read.
        task: String,
        /// What is wrong.
        why: String,
    },
    /// Somebody deleted the database; it was put back whole, and has to be opened anew.
    #[error(
        "the database was deleted while it was open; it was put back with all that it held and is being opened anew"
    )]
    PutBack,
    /// Somebody put another file in its place; ours was kept beside it.
    #[error("another file lies in the place of the database; what it held is kept in {0}")]
    Displaced(String),
    /// The writer is gone; only after a shutdown.
    #[error("the store is closed")]
    Closed,
}

/// A submit, whole: the task, how duplicates are met, and the idempotency key of the request.
#[derive(Debug, Clone)]
pub struct Submit {
    /// The task.
    pub task: NewTask,
    /// What a live task with the same owner and `spec.key` means.
    pub on_duplicate: OnDuplicate,
    /// Its parent may have at most so many live children, this one included.
    pub children: u32,
    /// The request's own key, if it had one.
    pub idempotency: Option<Idempotency>,
    /// Decides whether the task starts at once.
    pub policy: StartPolicy,
}

/// Claims waiting tasks for the node that will start them.
#[derive(Debug, Clone)]
pub struct ClaimQueued {
    /// Decides which of them start.
    pub policy: StartPolicy,
    /// The node.
    pub node: String,
    /// Its boot.
    pub boot_id: String,
    /// The maximum number of tasks to read.
    pub limit: u32,
}

/// One body per key, for a day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Idempotency {
    /// As the caller sent it; unique per owner.
    pub key: String,
    /// A hash of the body.
    pub body_hash: String,
    /// Until when it stands for that body.
    pub expires_at: Timestamp,
}

/// What a request was answered with before.
#[derive(Debug, Clone, PartialEq)]
pub struct Answered {
    /// The task.
    pub record: Record,
    /// It was there already, and the request joined it; else it was made for the request.
    pub joined: bool,
}

/// What became of a submit.
#[derive(Debug, Clone, PartialEq)]
pub enum Submitted {
    /// Accepted and durable. It is `queued`, or `starting` if it was claimed in the same transaction.
    Created(Record),
    /// A live task has the same key: it is that one.
    Joined(Record),
    /// The same request again: what it was answered with, as that is now.
    Repeated(Answered),
    /// The key was used for another body.
    IdempotencyMismatch,
    /// A live task has the key, and the caller did not want to join it.
    Duplicate(TaskId),
    /// The id was used before; draw another.
    IdTaken,
    /// Its parent has as many live children as it may have.
    TooManyChildren,
    /// The task whose session it was to continue is forgotten.
    SessionGone(TaskId),
    /// Another live task is in the session that it was to continue.
    SessionBusy(TaskId),
    /// It is no earlier request, and an external task without anything to track it by is not accepted.
    NothingToTrack,
}

impl Submitted {
    /// The new task, if there is one.
    #[must_use]
    pub const fn created(&self) -> Option<&Record> {
        if let Self::Created(record) = self { Some(record) } else { None }
    }
}

/// What became of a compare-and-set on one attempt.
#[derive(Debug, Clone, PartialEq)]
pub enum Applied {
    /// It applied; the record as it is now.
    Done(Record),
    /// It did not: the task is in a state, or at an attempt, that does not take it. Unchanged.
    Rejected(Record),
    /// No such task.
    Unknown,
}

/// What a reference stands for.
#[derive(Debug, Clone, PartialEq)]
pub enum Found {
    /// One task.
    One(TaskId),
    /// Several; a few of them.
    Several(Vec<TaskId>),
    /// An id that was issued here, and whose tombstone was dropped in its time.
    Expired(TaskId),
    /// None.
    None,
}

/// Which tasks to list: live ones first, then ended ones, each newest first. Forgotten ones are not listed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filter {
    /// Of this owner.
    pub owner: Option<String>,
    /// In one of these states; any if empty.
    pub statuses: Vec<Status>,
    /// With all these labels.
    pub labels: BTreeMap<String, String>,
    /// Submitted from inside this task, or from inside one that was.
    pub within: Option<TaskId>,
    /// At most so many (1..=1000).
    pub limit: u32,
    /// Where the last page ended.
    pub cursor: Option<String>,
}

/// A page of a list.
#[derive(Debug, Clone, PartialEq)]
pub struct Listed {
    /// The tasks.
    pub records: Vec<Record>,
    /// Where to go on.
    pub next_cursor: Option<String>,
    /// False if the given cursor is none of ours.
    pub cursor_valid: bool,
    /// The newest event when this was read: the list holds all that events up to it tell of.
    pub as_of: u64,
}

/// Which events.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EventFilter {
    /// Of this owner.
    pub owner: Option<String>,
    /// Of these kinds; any if empty.
    pub kinds: Vec<EventKind>,
}

impl EventFilter {
    /// Whether it lets an event through.
    #[must_use]
    pub fn passes(&self, event: &Event) -> bool {
        self.owner.as_ref().is_none_or(|owner| event.owner.as_ref() == Some(owner))
            && (self.kinds.is_empty() || self.kinds.contains(&event.kind))
    }
}

/// A stretch of the log.
#[derive(Debug, Clone, PartialEq)]
pub struct Events {
    /// In order, each with a `seq` above the cursor.
    pub events: Vec<Event>,
    /// Ask for more after this: the last event looked at, whether or not it passed the filter.
    pub cursor: u64,
    /// Events up to this one (inclusive) were trimmed; a cursor below it has missed some. 0 if none were.
    pub trimmed_to: u64,
    /// The newest event, looked at or not, trimmed or not. A cursor above it is none of this log's.
    pub newest: u64,
}

/// A finished task that became a tombstone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retired {
    /// Which; its folder may go.
    pub id: TaskId,
    /// How much of its output was still kept, and goes with the folder.
    pub output_bytes: u64,
}

/// What was dropped for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Trimmed {
    /// Tombstones that went.
    pub tombstones: u64,
    /// Whether as much of something went as was allowed, so that there may be more.
    pub more: bool,
}

/// The ledger. Every method is one transaction; whatever it answers is durable where the promise needs it:
/// [`submit`](Store::submit), [`claim_queued`](Store::claim_queued), [`finish`](Store::finish), [`publish`](Store::publish), [`acknowledge`](Store::acknowledge),
/// [`redeliver`](Store::redeliver), [`forget`](Store::forget), [`retire`](Store::retire) survive a power cut (P9);
/// [`started`](Store::started), [`paused`](Store::paused), [`resumed`](Store::resumed) and [`stop_requested`](Store::stop_requested) survive
/// a crash of the daemon.
pub trait Store: Send + Sync + 'static {
    /// Accepts a task, with its `task.queued` event, and claims it if [`decide`](homing_model::queue::decide) starts it. Two submits with one key at once give one task, and however many
    /// are sent at once, a parent has no more live children than it may have. An external task runs from the start, with `task.started` too.
    fn submit(&self, submit: Submit, now: Timestamp) -> Op<Submitted>;

    /// Claims the waiting tasks that [`decide`](homing_model::queue::decide) starts: state `starting`, on this node. Each task is returned
    /// to one caller only.
    fn claim_queued(&self, claim: ClaimQueued) -> Op<Vec<Record>>;

    /// What the same request of this owner was answered with before, while its key stands.
    fn answered(&self, owner: String, request: Idempotency, now: Timestamp) -> Op<Option<Answered>>;

    /// Says which start of the machine this is. After another one than the last, events that were told may be gone, since not all of them are
    /// synced: the next ones are numbered on from far beyond them, so that no number is told twice.
    fn booted(&self, boot_id: String) -> Op<()>;

    /// The attempt's command was executed: records pid and time, with `task.started`.
    fn started(&self, attempt: Attempt, started: Started) -> Op<Applied>;

    /// The attempt's tree stands still: state `paused` and `task.paused`. `Rejected` unless it runs, and for what somebody else runs.
    fn paused(&self, attempt: Attempt, now: Timestamp) -> Op<Applied>;

    /// It goes on: state `running` and `task.resumed`. `Rejected` unless it is paused.
    fn resumed(&self, attempt: Attempt, now: Timestamp) -> Op<Applied>;

    /// Somebody asked for the end: state `stopping` and `task.stopping`. A second request is `Rejected` and changes nothing.
    /// A task that waits in the queue, or that somebody else runs, ends by this, with all that [`finish`](Store::finish) writes; hence the random bits,
    /// and the most that is told.
    fn stop_requested(
        &self,
        task: TaskId,
        stop: Stop,
        entropy: u64,
        at_most: Option<When>,
        now: Timestamp,
    ) -> Op<Applied>;

    /// Ends the task, if this attempt is the current one and has not ended: state, outcome, the notice `task.completed` in the log, the
    /// owner's inbox entry and one delivery for each other target, as the task's policy says (P1, P5).
    /// An external task and an agent get their answer, or the words that stand for it. The first finisher wins; a later one is `Rejected` with the record of the first.
    fn finish(&self, attempt: Attempt, ending: Ending, report: Report) -> Op<Applied>;

    /// The output of a live attempt was watched up to where `state` says, and `body` is told of it: the notice in the log, and inbox and
    /// deliveries unless its policy, or the most that is told, is `never`; in one transaction, so that whoever goes on from the kept state
    /// tells nothing twice and leaves nothing out. `Rejected` once it has ended, and where `state` does not follow the one that is kept (by
    /// its `turn`, from 1).
    fn watched(
        &self,
        attempt: Attempt,
        state: watch::State,
        body: Option<Body>,
        entropy: u64,
        at_most: Option<When>,
        now: Timestamp,
    ) -> Op<Applied>;

    /// A live task says how far it is: kept, with `task.progress`. `Rejected` once it has ended.
    fn progress(&self, task: TaskId, progress: Progress) -> Op<Applied>;

    /// Whoever runs a live external task was heard: the time is kept. `Rejected` once it has ended, and for any other kind.
    fn heard(&self, task: TaskId, now: Timestamp) -> Op<Applied>;

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
    /// [`admit`](Store::admit) decides by its own.
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

    /// What was told of a task, the newest `limit` of it, oldest first, and whether its owner has it.
    fn notices(&self, task: TaskId, limit: u32, now: Timestamp) -> Op<Vec<NoticeInfo>>;

    /// How many deliveries are pending, and how many were given up.
    fn delivery_counts(&self) -> Op<DeliveryCounts>;

    /// Makes deliveries pending and due, and their schedule begin anew; attempts and history are counted on. Nothing is changed of those to
    /// targets of the kinds in `closed`.
    fn redeliver(&self, which: Redeliver, closed: Vec<TargetKind>, now: Timestamp) -> Op<Redelivered>;

    /// Every task that has not ended, oldest first. A damaged row is reported beside the rest, never instead of them.
    fn live(&self) -> Op<(Vec<Record>, Vec<Error>)>;

    /// One task, or its tombstone.
    fn get(&self, id: TaskId) -> Op<Option<Record>>;

    /// What a person means: an id, `@last` of the owner, a name that is unique among live tasks, else the newest ended task of that
    /// name, else a unique start of an id (tombstones included). An id that was ever issued is never [`Found::None`] (P12).
    fn find(&self, reference: Reference, owner: String) -> Op<Found>;

    /// Notices whose id begins so, a few of them: of those that wait for the owner, or else of all that are kept.
    fn find_notices(&self, start: String, owner: String) -> Op<Vec<NoticeId>>;

    /// Deliveries whose id begins so, a few of them.
    fn find_deliveries(&self, start: String) -> Op<Vec<DeliveryId>>;

    /// The same among the tasks of this owner alone: what others have is as if it were not there.
    fn find_own(&self, reference: Reference, owner: String) -> Op<Found>;

    /// A page of tasks.
    fn list(&self, filter: Filter) -> Op<Listed>;

    /// Makes sure that the ledger still is where it was opened, and puts it back if it was deleted: then nothing is written any more, and
    /// it has to be opened anew. Every write makes sure of it too. [`Error::Closed`] if what reads or writes it is gone.
    fn intact(&self) -> Op<()> {
        Box::pin(async { Ok(()) })
    }

    /// How many there are.
    fn counts(&self) -> Op<TaskCounts>;

    /// The same in detail, with what waits to be told. Asked by whoever watches, not by whoever works.
    fn census(&self) -> Op<Census>;

    /// What it has done since it was opened.
    fn work(&self) -> Work;

    /// Appends an event that concerns no task.
    fn note(&self, kind: EventKind, data: serde_json::Value, now: Timestamp) -> Op<u64>;

    /// Events after a cursor, at most `limit` of them.
    fn events(&self, after: u64, filter: EventFilter, limit: u32) -> Op<Events>;

    /// The newest event's cursor.
    fn last_event(&self) -> Op<u64>;

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

    /// Checks the whole database.
    fn check(&self) -> Op<()>;

    /// Writes what is pending and lets go of the files.
    fn close(&self) -> Op<()>;
}
