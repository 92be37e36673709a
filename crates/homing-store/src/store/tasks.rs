//! Tasks: their states, and finding them.

use homing_model::notice::Body;
use homing_model::notify::When;
use homing_model::watch;
use homing_model::{Attempt, Ending, Progress, Reference, TaskId, Timestamp};

use super::{Applied, Error, Filter, Found, Listed, Op};
use crate::outbox::Report;
use crate::record::{Record, Started, Stop};

/// Tasks: their states, and finding them.
pub trait Tasks: Send + Sync + 'static {
    /// The attempt's command was executed: records pid and time, with `task.started`.
    fn started(&self, attempt: Attempt, started: Started) -> Op<Applied>;

    /// The attempt's tree stands still: state `paused` and `task.paused`. `Rejected` unless it runs, and for what somebody else runs.
    fn paused(&self, attempt: Attempt, now: Timestamp) -> Op<Applied>;

    /// It goes on: state `running` and `task.resumed`. `Rejected` unless it is paused.
    fn resumed(&self, attempt: Attempt, now: Timestamp) -> Op<Applied>;

    /// Somebody asked for the end: state `stopping` and `task.stopping`. A second request is `Rejected` and changes nothing.
    /// A task that waits in the queue, or that somebody else runs, ends by this, with all that [`finish`](super::Tasks::finish) writes; hence the random bits,
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

    /// Every task that has not ended, oldest first. A damaged row is reported beside the rest, never instead of them.
    fn live(&self) -> Op<(Vec<Record>, Vec<Error>)>;

    /// One task, or its tombstone.
    fn get(&self, id: TaskId) -> Op<Option<Record>>;

    /// What a person means: an id, `@last` of the owner, a name that is unique among live tasks, else the newest ended task of that
    /// name, else a unique start of an id (tombstones included). An id that was ever issued is never [`Found::None`] (P12).
    fn find(&self, reference: Reference, owner: String) -> Op<Found>;

    /// The same among the tasks of this owner alone: what others have is as if it were not there.
    fn find_own(&self, reference: Reference, owner: String) -> Op<Found>;

    /// A page of tasks.
    fn list(&self, filter: Filter) -> Op<Listed>;
}
