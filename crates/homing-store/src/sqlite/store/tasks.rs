//! Tasks: their states, and finding them.

use homing_model::notice::Body;
use homing_model::notify::When;
use homing_model::watch;
use homing_model::{Attempt, Ending, Progress, Reference, TaskId, Timestamp};

use super::SqliteStore;
use crate::outbox::Report;
use crate::record::{Record, Started, Stop};
use crate::sqlite::tasks::find;
use crate::sqlite::tasks::life;
use crate::sqlite::tasks::listing;
use crate::sqlite::tasks::pause;
use crate::sqlite::tasks::row;
use crate::sqlite::threads::writer::Durability::{Full, Relaxed};
use crate::store::Tasks;
use crate::store::{Applied, Error, Filter, Found, Listed, Op};

impl Tasks for SqliteStore {
    fn started(&self, attempt: Attempt, started: Started) -> Op<Applied> {
        self.writer.run_essential(Relaxed, move |conn| life::started(conn, &attempt, &started))
    }

    fn paused(&self, attempt: Attempt, now: Timestamp) -> Op<Applied> {
        self.writer.run_essential(Relaxed, move |conn| pause::paused(conn, &attempt, now))
    }

    fn resumed(&self, attempt: Attempt, now: Timestamp) -> Op<Applied> {
        self.writer.run_essential(Relaxed, move |conn| pause::resumed(conn, &attempt, now))
    }

    fn stop_requested(
        &self,
        task: TaskId,
        stop: Stop,
        entropy: u64,
        at_most: Option<When>,
        now: Timestamp,
    ) -> Op<Applied> {
        // A task that waits in the queue ends by this at once, and an end is durable.
        self.writer.run_essential(Full, move |conn| {
            life::stop_requested(conn, &task, stop.clone(), entropy, at_most, now)
        })
    }

    fn finish(&self, attempt: Attempt, ending: Ending, report: Report) -> Op<Applied> {
        self.writer.run_shrinking(Full, move |conn, less| {
            life::finish(conn, &attempt, ending.clone(), report.clone(), less)
        })
    }

    fn watched(
        &self,
        attempt: Attempt,
        state: watch::State,
        body: Option<Body>,
        entropy: u64,
        at_most: Option<When>,
        now: Timestamp,
    ) -> Op<Applied> {
        // Without a notice a power cut may undo it: what was judged is judged again.
        let durability = if body.is_some() { Full } else { Relaxed };
        self.writer
            .run(durability, move |conn| life::watched(conn, &attempt, state, body, entropy, at_most, now))
    }

    fn progress(&self, task: TaskId, progress: Progress) -> Op<Applied> {
        self.writer.run(Relaxed, move |conn| life::progress(conn, &task, progress))
    }

    fn heard(&self, task: TaskId, now: Timestamp) -> Op<Applied> {
        self.writer.run(Relaxed, move |conn| life::heard(conn, &task, now))
    }

    fn live(&self) -> Op<(Vec<Record>, Vec<Error>)> {
        self.reader.run(listing::live)
    }

    fn get(&self, id: TaskId) -> Op<Option<Record>> {
        self.reader.run(move |conn| row::by_id(conn, &id))
    }

    fn find(&self, reference: Reference, owner: String) -> Op<Found> {
        self.reader.run(move |conn| find::find(conn, &reference, &owner))
    }

    fn find_own(&self, reference: Reference, owner: String) -> Op<Found> {
        self.reader.run(move |conn| find::find_own(conn, &reference, &owner))
    }

    fn list(&self, filter: Filter) -> Op<Listed> {
        self.reader.run(move |conn| listing::list(conn, &filter))
    }
}
