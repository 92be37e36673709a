//! The trait, operation by operation, sent to the thread that does it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use homing_model::NoticeInfo;
use homing_model::counts::{DeliveryCounts, TaskCounts};
use homing_model::notice::Body;
use homing_model::notify::When;
use homing_model::operator::TargetKind;
use homing_model::reservation::{Access, ConfirmedBy, Confirmer};
use homing_model::retention::Policy;
use homing_model::wake::Budget;
use homing_model::watch;
use homing_model::{
    AgentName, Attempt, Channel, DeliveryId, Ending, EventKind, Notice, NoticeId, Progress, Reference, Route,
    TaskId, Timestamp,
};
use tokio::sync::oneshot;

use crate::census::{Census, Work};
use crate::outbox::{
    Available, Claimed, DeliveryFilter, DeliveryPage, Redeliver, Redelivered, Report, Settled, Terms,
    Waiting, Wake,
};
use crate::record::{NewTask, Record, Started, Stop};
use crate::reservation::{Handed, Take, Waiter};
use crate::session::{Bind, Binding, SessionClaim};
use crate::sqlite::disk::check;
use crate::sqlite::disk::emergency_space::{self, Reserve};
use crate::sqlite::disk::file_guard::Place;
use crate::sqlite::disk::open;
use crate::sqlite::disk::wal::Log;
use crate::sqlite::notices::claims;
use crate::sqlite::notices::deliveries;
use crate::sqlite::notices::event_cache::Recent;
use crate::sqlite::notices::events;
use crate::sqlite::notices::hooks;
use crate::sqlite::notices::inbox;
use crate::sqlite::notices::publish;
use crate::sqlite::notices::reservations;
use crate::sqlite::notices::wakes;
use crate::sqlite::sessions::bindings;
use crate::sqlite::sessions::resumable;
use crate::sqlite::tasks::census;
use crate::sqlite::tasks::find;
use crate::sqlite::tasks::life;
use crate::sqlite::tasks::listing;
use crate::sqlite::tasks::pause;
use crate::sqlite::tasks::retention;
use crate::sqlite::tasks::row;
use crate::sqlite::tasks::submit;
use crate::sqlite::threads::reader;
use crate::sqlite::threads::writer;
use crate::sqlite::threads::writer::Durability::{Full, Relaxed};
use crate::store::{
    Answered, Applied, ClaimQueued, Error, EventFilter, Events, Filter, Found, Idempotency, Listed, Op,
    Retired, Store, Submit, Submitted, Trimmed,
};

/// The ledger in one SQLite file, with a thread that writes and one that reads.
///
/// Dropping it lets both threads end by themselves; [`Store::close`] waits until the files are closed.
#[derive(Debug)]
pub struct SqliteStore {
    path: PathBuf,
    writer: writer::Handle,
    reader: reader::Handle,
    recent: Arc<Recent>,
}

impl SqliteStore {
    /// Opens the database at `path`, or makes one (mode 0600) if there is none. Blocks; call it off the async runtime or before it serves.
    ///
    /// One store per file and process: the caller holds the lock of the home.
    ///
    /// # Errors
    /// If the file is not ours, of a later release, damaged, or on a filesystem that cannot hold it; it is unchanged then.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let mut opened = Self::connect(path);
        // The files beside the database need room too, and on a full disk forgetting is wanted most.
        while matches!(opened, Err(Error::Full | Error::Io(_))) && emergency_space::make_room(path) {
            opened = Self::connect(path);
        }
        opened
    }

    fn connect(path: &Path) -> Result<Self, Error> {
        let mut conn = open::open(path)?;
        let log = Log::follow(&mut conn, open::folder(path))?;
        let (reader, thread) = reader::spawn(path)?;
        let recent = Arc::new(Recent::new());
        let (place, reserve) = (Place::new(path), Reserve::open(path));
        let writer = writer::spawn(conn, log, place, reserve, Arc::clone(&recent), vec![thread])?;
        Ok(Self { path: path.to_owned(), writer, reader, recent })
    }

    /// Commits so far; far fewer than operations under load.
    #[must_use]
    pub fn commits(&self) -> u64 {
        self.writer.commits()
    }

    /// Makes the disk look full: the file cannot grow beyond so many pages.
    #[cfg(test)]
    fn limit_pages(&self, pages: u32) -> Op<u32> {
        self.writer.run(Relaxed, move |conn| {
            Ok(conn.pragma_update_and_check(None, "max_page_count", pages, |row| row.get(0))?)
        })
    }
}

impl Store for SqliteStore {
    fn submit(&self, task: Submit, now: Timestamp) -> Op<Submitted> {
        self.writer.run(Full, move |conn| submit::submit(conn, task, now))
    }

    fn claim_queued(&self, claim: ClaimQueued) -> Op<Vec<Record>> {
        // Full: a command that was started before a power cut must not be started again after it.
        self.writer.run(Full, move |conn| submit::claim_queued(conn, &claim))
    }

    fn answered(&self, owner: String, request: Idempotency, now: Timestamp) -> Op<Option<Answered>> {
        self.reader.run(move |conn| submit::answered(conn, &owner, &request, now))
    }

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

    fn waiting(&self, after: String, limit: u32) -> Op<Vec<Waiting>> {
        self.reader.run(move |conn| inbox::waiting(conn, &after, limit))
    }

    fn peek(&self, owner: String, limit: u32, access: Access, now: Timestamp) -> Op<Available> {
        self.reader.run(move |conn| inbox::peek(conn, &owner, limit, access, now))
    }

    fn take(&self, owner: String, take: Take, now: Timestamp) -> Op<Vec<Notice>> {
        // What a power cut undoes is available again, as after any taker's death.
        self.writer.run(Relaxed, move |conn| inbox::take(conn, &owner, &take, now))
    }

    fn acknowledge(&self, owner: String, ids: Vec<NoticeId>, tasks: Vec<TaskId>) -> Op<Vec<NoticeId>> {
        self.writer.run_essential(Full, move |conn| inbox::acknowledge(conn, &owner, &ids, &tasks))
    }

    fn reserve(&self, waiter: Waiter, now: Timestamp) -> Op<()> {
        // What a power cut undoes, it undoes with the call.
        self.writer.run(Relaxed, move |conn| reservations::reserve(conn, &waiter, now))
    }

    fn release(&self, waiter: Waiter, delivered: Option<(Vec<TaskId>, Handed)>, now: Timestamp) -> Op<()> {
        self.writer.run(Relaxed, move |conn| reservations::release(conn, &waiter, delivered.as_ref(), now))
    }

    fn unconfirmed(&self, now: Timestamp) -> Op<Vec<(Confirmer, Timestamp)>> {
        self.reader.run(move |conn| reservations::unconfirmed(conn, now))
    }

    fn confirm(&self, confirmer: Confirmer, by: ConfirmedBy, now: Timestamp) -> Op<()> {
        self.writer.run_essential(Relaxed, move |conn| reservations::confirm(conn, &confirmer, by, now))
    }

    fn bind(&self, bind: Bind) -> Op<()> {
        // What a power cut undoes, the end of the process undoes as well.
        self.writer.run(Relaxed, move |conn| bindings::bind(conn, &bind))
    }

    fn unbind(&self, binding: Binding, now: Timestamp) -> Op<bool> {
        self.writer.run(Relaxed, move |conn| bindings::unbind(conn, &binding, now))
    }

    fn claim_session(&self, claim: SessionClaim) -> Op<Option<String>> {
        self.writer.run(Relaxed, move |conn| bindings::claim(conn, &claim))
    }

    fn binding(&self, agent: AgentName, session: String) -> Op<Option<Binding>> {
        self.reader.run(move |conn| bindings::of_session(conn, &agent, &session))
    }

    fn bindings(&self, pids: Vec<u32>) -> Op<Vec<Binding>> {
        self.reader.run(move |conn| bindings::of_processes(conn, &pids))
    }

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

    fn notices(&self, task: TaskId, limit: u32, now: Timestamp) -> Op<Vec<NoticeInfo>> {
        self.reader.run(move |conn| publish::of_task(conn, &task, limit, now))
    }

    fn delivery_counts(&self) -> Op<DeliveryCounts> {
        self.reader.run(deliveries::counts)
    }

    fn redeliver(&self, which: Redeliver, closed: Vec<TargetKind>, now: Timestamp) -> Op<Redelivered> {
        self.writer.run(Full, move |conn| deliveries::redeliver(conn, &which, &closed, now))
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

    fn find_notices(&self, start: String, owner: String) -> Op<Vec<NoticeId>> {
        self.reader.run(move |conn| find::notices(conn, &start, &owner))
    }

    fn find_deliveries(&self, start: String) -> Op<Vec<DeliveryId>> {
        self.reader.run(move |conn| find::deliveries(conn, &start))
    }

    fn list(&self, filter: Filter) -> Op<Listed> {
        self.reader.run(move |conn| listing::list(conn, &filter))
    }

    fn intact(&self) -> Op<()> {
        let (writes, reads) = (self.writer.run(Relaxed, |_| Ok(())), self.reader.run(|_| Ok(())));
        Box::pin(async move { writes.await.and(reads.await) })
    }

    fn counts(&self) -> Op<TaskCounts> {
        self.reader.run(listing::counts)
    }

    fn census(&self) -> Op<Census> {
        self.reader.run(census::take)
    }

    fn work(&self) -> Work {
        self.writer.work()
    }

    fn booted(&self, boot_id: String) -> Op<()> {
        self.writer.run_essential(Full, move |conn| events::booted(conn, &boot_id))
    }

    fn note(&self, kind: EventKind, data: serde_json::Value, now: Timestamp) -> Op<u64> {
        self.writer.run(Relaxed, move |conn| events::insert(conn, kind, now, None, &data).map(row::unsigned))
    }

    fn events(&self, after: u64, filter: EventFilter, limit: u32) -> Op<Events> {
        if let Some(found) = self.recent.after(after, &filter, limit) {
            return Box::pin(std::future::ready(Ok(found)));
        }
        self.reader.run(move |conn| events::after(conn, after, &filter, limit))
    }

    fn last_event(&self) -> Op<u64> {
        self.reader.run(|conn| events::last(conn).map(row::unsigned))
    }

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

#[cfg(test)]
mod tests {
    use homing_model::{Ending, OsText, Spec};

    use super::*;

    fn submit(n: u64) -> Submit {
        let spec = Spec { argv: vec![OsText::from("x".repeat(2000).as_str())], ..Spec::default() };
        let task = NewTask {
            kind: homing_model::Kind::Command,
            tracking: None,
            agent: None,
            id: TaskId::from_entropy(n),
            spec,
            owner: "ann".into(),
            command: "x".into(),
            env_names: Vec::new(),
            volatile_secrets: Vec::new(),
            masks: homing_model::Masks::default(),
            parent: None,
            depth: 0,
            network: false,
            node: "here".into(),
            boot_id: "this".into(),
        };
        Submit {
            task,
            on_duplicate: homing_model::OnDuplicate::Join,
            children: u32::MAX,
            idempotency: None,
            policy: homing_model::queue::StartPolicy::default(),
        }
    }

    #[tokio::test]
    async fn a_store_without_its_reader_is_not_intact() {
        let folder = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(&folder.path().join("homing.db")).unwrap();
        assert_eq!(store.intact().await, Ok(()));
        let _ = store.reader.run(|_| -> Result<(), Error> { panic!("by mistake") }).await;
        assert_eq!(store.intact().await, Err(Error::Closed));
    }

    #[tokio::test]
    async fn a_full_disk_refuses_what_does_not_fit_and_keeps_the_rest() {
        let folder = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(&folder.path().join("homing.db")).unwrap();
        let now = Timestamp::from_millis(0);
        store.submit(submit(0), now).await.unwrap();
        store.limit_pages(40).await.unwrap();
        let mut accepted = 1;
        let refusal = loop {
            match store.submit(submit(accepted), now).await {
                Ok(_) => accepted += 1,
                Err(error) => break error,
            }
            assert!(accepted < 100, "forty pages hold no hundred such tasks");
        };
        assert_eq!(refusal, Error::Full);
        // Whoever shares the batch with one that does not fit is told the same, or is done; never half.
        let crowd: Vec<_> = (500..520).map(|n| store.submit(submit(n), now)).collect();
        for (n, answer) in (500..).zip(crowd) {
            let done = answer.await.is_ok();
            assert_eq!(store.get(TaskId::from_entropy(n)).await.unwrap().is_some(), done);
        }
        let (live, damaged) = store.live().await.unwrap();
        assert!(live.len() as u64 >= accepted && damaged.is_empty());

        store.limit_pages(4000).await.unwrap();
        assert!(matches!(store.submit(submit(accepted), now).await, Ok(Submitted::Created(_))));
        let attempt = Attempt { task: TaskId::from_entropy(0), number: 1 };
        let ended =
            store.finish(attempt, Ending::lost("no reason", Vec::new(), now), Report::default()).await;
        assert!(matches!(ended, Ok(Applied::Done(_))));
        assert_eq!(store.check().await, Ok(()));
    }
}
