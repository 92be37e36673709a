//! The ledger's operations: six traits, joined in [`Store`].
//!
//! # Contract
//!
//! - **One transaction.** Each operation takes effect as a whole or not at all. The time and randomness are parameters.
//! - **Order.** Operations of one handle take effect in the order of the calls, in whatever order their futures are polled.
//! - **Dropped futures.** An operation happens once it is called. Dropping its future drops the answer only.
//! - **Durability.** An answer survives a power cut for [`Queue::submit`], [`Queue::claim_queued`], [`Tasks::finish`],
//!   [`Tasks::watched`] with a notice, [`Inbox::acknowledge`], [`Outbox::redeliver`], [`Upkeep::forget`] and [`Upkeep::retire`]
//!   (P9). Every other answer survives a crash of the process.
//! - **Errors.** An error means that nothing happened. A store resolves an ambiguous commit before it answers.

mod events;
mod inbox;
mod outbox;
mod queue;
mod tasks;
mod upkeep;

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;

use homing_model::queue::StartPolicy;
use homing_model::{Event, EventKind, OnDuplicate, Status, TaskId, Timestamp};

use crate::record::{NewTask, Record};

pub use events::EventLog;
pub use inbox::Inbox;
pub use outbox::Outbox;
pub use queue::Queue;
pub use tasks::Tasks;
pub use upkeep::Upkeep;

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

/// The whole ledger. See the [contract](self) for what holds for every operation.
pub trait Store: Tasks + Queue + Inbox + Outbox + EventLog + Upkeep {}

impl<T: Tasks + Queue + Inbox + Outbox + EventLog + Upkeep> Store for T {}
