//! Retention, counts, checks, and closing.

use std::thread;

use homing_model::counts::{DeliveryCounts, TaskCounts};
use homing_model::retention::Policy;
use homing_model::{TaskId, Timestamp};
use tokio::sync::oneshot;

use super::SqliteStore;
use crate::census::{Census, Work};
use crate::sqlite::disk::check;
use crate::sqlite::disk::open;
use crate::sqlite::notices::deliveries;
use crate::sqlite::sessions::resumable;
use crate::sqlite::tasks::census;
use crate::sqlite::tasks::listing;
use crate::sqlite::tasks::retention;
use crate::sqlite::threads::reader;
use crate::sqlite::threads::writer::Durability::{Full, Relaxed};
use crate::store::Upkeep;
use crate::store::{Applied, Error, Op, Retired, Trimmed};

impl Upkeep for SqliteStore {
    fn forget(&self, id: TaskId, now: Timestamp) -> Op<Applied> {
        self.writer.run_forgetting(Full, move |conn| retention::forget(conn, &id, now))
    }

    fn retire(&self, policy: Policy, now: Timestamp, limit: u32) -> Op<Vec<Retired>> {
        self.writer.run_forgetting(Full, move |conn| retention::retire(conn, &policy, now, limit))
    }

    fn released_session(&self, id: TaskId) -> Op<Option<Timestamp>> {
        self.reader.run(move |conn| resumable::released_session(conn, &id))
    }

    fn trim(&self, policy: Policy, now: Timestamp, limit: u32) -> Op<Trimmed> {
        // What a power cut brings back is trimmed again.
        self.writer.run_forgetting(Relaxed, move |conn| retention::trim(conn, &policy, now, limit))
    }

    fn counts(&self) -> Op<TaskCounts> {
        self.reader.run(listing::counts)
    }

    fn delivery_counts(&self) -> Op<DeliveryCounts> {
        self.reader.run(deliveries::counts)
    }

    fn census(&self) -> Op<Census> {
        self.reader.run(census::take)
    }

    fn work(&self) -> Work {
        self.writer.work()
    }

    fn intact(&self) -> Op<()> {
        let (writes, reads) = (self.writer.run(Relaxed, |_| Ok(())), self.reader.run(|_| Ok(())));
        Box::pin(async move { writes.await.and(reads.await) })
    }

    fn check(&self) -> Op<()> {
        // On a thread and a connection of its own: it reads everything, and the reader is to stay quick.
        let open = self.reader.run(|_| Ok(()));
        let path = self.path.clone();
        Box::pin(async move {
            open.await?;
            let (reply, answer) = oneshot::channel();
            thread::Builder::new()
                .name("homing-check".into())
                .spawn(move || {
                    let verdict =
                        open::open_reader(&path).and_then(|conn| reader::snapshot(&conn, check::check));
                    let _ = reply.send(verdict);
                })
                .map_err(|error| Error::Io(format!("the check's thread could not be started: {error}")))?;
            answer.await.unwrap_or(Err(Error::Closed))
        })
    }

    fn close(&self) -> Op<()> {
        self.reader.close();
        self.writer.close()
    }
}
