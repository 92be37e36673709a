//! The one thread that writes, with group commit.
//!
//! Whatever waits when the writer is free becomes one transaction: while one batch is being synced to disk, the next one gathers by
//! itself, so there is no timer and a lone operation never waits for company. Each operation runs under its own savepoint, so one that
//! fails undoes nothing of the others. Answers go out only after the commit; if that fails, everyone in the batch is told so.
//!
//! What must still go through on a full disk (ends, and the forgetting that makes room) is tried
//! again alone, with some of the [reserve](super::reserve), whose last part is for forgetting; the
//! rest is told that the disk is full.
//!
//! After an input/output error nothing that was written since can be trusted to reach the disk (Linux reports a failed fsync once and
//! then forgets the pages). So before the next batch the whole log is copied into the database and synced anew; until that succeeds,
//! every operation is answered with the error.

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, TryRecvError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rusqlite::Connection;
use tokio::sync::oneshot;

use crate::census::{Meters, Work};
use crate::sqlite::disk::emergency_space::{self, Reserve};
use crate::sqlite::disk::file_guard::Place;
use crate::sqlite::disk::open;
use crate::sqlite::disk::reserved_space;
use crate::sqlite::disk::wal::{CopyBack, Log};
use crate::sqlite::disk::wal_preallocator::Room;
use crate::sqlite::notices::event_cache::Recent;
use crate::sqlite::tasks::row;
use crate::store::{Error, Events, Op};

/// So many operations share a commit at most, so that the first of them does not wait for ever.
const BATCH: usize = 256;

/// After so many commits (about a thousand pages) the log is copied back before it slows down readers, once nobody has come for a while:
/// whoever comes during it waits for it.
const TIDY_AFTER: u32 = 128;
const A_WHILE: Duration = Duration::from_millis(300);

/// How long copying back waits for readers, where it has to.
const READERS: Duration = Duration::from_millis(200);

/// What a power cut may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::sqlite) enum Durability {
    /// Nothing: synced before it is answered.
    Full,
    /// It survives a crash of the daemon, not of the machine.
    Relaxed,
}

/// An operation on its way: it runs before the commit and answers after it.
trait Job: Send {
    /// Does the work and keeps the answer back. After an error, its changes are undone.
    fn run(&mut self, conn: &Connection) -> Result<(), Error>;

    /// What becomes of it on a full disk.
    fn need(&self) -> Need;

    /// It is tried again, alone.
    fn insist(&mut self);

    /// Whether it may take some of the reserve.
    fn is_essential(&self) -> bool {
        matches!(self.need(), Need::Essential | Need::MakesRoom)
    }

    /// Whether it is tried again on a full disk.
    fn is_tried_again(&self) -> bool {
        self.need() != Need::None
    }

    /// Answers: with what it kept back, or with why the commit failed.
    fn settle(self: Box<Self>, fate: Result<(), Error>);
}

/// What an operation may take of the reserve. One that may take some can be run again after it was
/// undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Need {
    None,
    /// Nothing at first. On a full disk it is tried again with less to write, as `Essential`.
    Shrinks,
    /// All but what is kept for forgetting.
    Essential,
    /// All of it: it makes room.
    MakesRoom,
}

struct Operation<T, F> {
    work: F,
    need: Need,
    answer: Result<T, Error>,
    reply: oneshot::Sender<Result<T, Error>>,
}

impl<T, F> Job for Operation<T, F>
where
    T: Send,
    F: FnMut(&Connection, Need) -> Result<T, Error> + Send,
{
    fn run(&mut self, conn: &Connection) -> Result<(), Error> {
        self.answer = (self.work)(conn, self.need);
        self.answer.as_ref().map(drop).map_err(Clone::clone)
    }

    fn need(&self) -> Need {
        self.need
    }

    fn insist(&mut self) {
        if self.need == Need::Shrinks {
            self.need = Need::Essential;
        }
    }

    fn settle(self: Box<Self>, fate: Result<(), Error>) {
        // Nobody listening is no error: the caller went away, the work stays done.
        let _ = self.reply.send(fate.and(self.answer));
    }
}

enum Message {
    Run(Durability, Box<dyn Job>),
    Close(oneshot::Sender<Result<(), Error>>),
}

/// Sends work to the writer.
#[derive(Debug, Clone)]
pub(in crate::sqlite) struct Handle {
    // Unbounded: every message has a caller that waits for its answer, so there are never more than callers, and those are bounded where
    // they come in. A bounded channel would have to block an async caller or to refuse an exit that was already recorded. The one of
    // std, because its receiver blocks a plain thread without a runtime.
    messages: Sender<Message>,
    meters: Arc<Meters>,
}

impl Handle {
    /// Runs `work` in a transaction. Answers after the commit; dropping the future does not take the work back.
    pub(in crate::sqlite) fn run<T, F>(&self, durability: Durability, work: F) -> Op<T>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, Error> + Send + 'static,
    {
        let mut work = Some(work);
        // Run once: whoever asked is told that the disk is full, and asks again.
        self.send(durability, Need::None, move |conn, _| {
            work.take().map_or(Err(Error::Full), |work| work(conn))
        })
    }

    /// The same, for what must go through on a full disk too. It may be run again after it was undone.
    pub(in crate::sqlite) fn run_essential<T, F>(&self, durability: Durability, mut work: F) -> Op<T>
    where
        T: Send + 'static,
        F: FnMut(&Connection) -> Result<T, Error> + Send + 'static,
    {
        self.send(durability, Need::Essential, move |conn, _| work(conn))
    }

    /// The same, for what may be larger than the reserve: `work` is told whether it has to write less,
    /// which it has to once the disk was found full.
    pub(in crate::sqlite) fn run_shrinking<T, F>(&self, durability: Durability, mut work: F) -> Op<T>
    where
        T: Send + 'static,
        F: FnMut(&Connection, bool) -> Result<T, Error> + Send + 'static,
    {
        self.send(durability, Need::Shrinks, move |conn, need| work(conn, need != Need::Shrinks))
    }

    /// The same, for what makes room.
    pub(in crate::sqlite) fn run_forgetting<T, F>(&self, durability: Durability, mut work: F) -> Op<T>
    where
        T: Send + 'static,
        F: FnMut(&Connection) -> Result<T, Error> + Send + 'static,
    {
        self.send(durability, Need::MakesRoom, move |conn, _| work(conn))
    }

    fn send<T, F>(&self, durability: Durability, need: Need, work: F) -> Op<T>
    where
        T: Send + 'static,
        F: FnMut(&Connection, Need) -> Result<T, Error> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let job = Operation { work, need, answer: Err(Error::Closed), reply };
        // A failed send drops the reply, which the answer then shows.
        let _ = self.messages.send(Message::Run(durability, Box::new(job)));
        Box::pin(async move { answer.await.unwrap_or(Err(Error::Closed)) })
    }

    /// Lets the writer finish what came before, and waits until the files are closed. A second time changes nothing.
    pub(in crate::sqlite) fn close(&self) -> Op<()> {
        let (reply, answer) = oneshot::channel();
        let _ = self.messages.send(Message::Close(reply));
        Box::pin(async move { answer.await.unwrap_or(Ok(())) })
    }

    /// Commits so far.
    pub(in crate::sqlite) fn commits(&self) -> u64 {
        self.meters.commits.read()
    }

    /// What was done so far.
    pub(in crate::sqlite) fn work(&self) -> Work {
        self.meters.read()
    }
}

/// Starts the writer. It ends when its handle is gone or closes it; it closes its connection after those of `readers`, since only the
/// last one to leave may remove the log, and a reader may not.
pub(in crate::sqlite) fn spawn(
    conn: Connection,
    log: Log,
    place: Place,
    reserve: Reserve,
    recent: Arc<Recent>,
    readers: Vec<JoinHandle<()>>,
) -> Result<Handle, Error> {
    reserved_space::begin(&conn)?;
    let (messages, inbox) = mpsc::channel();
    let meters = Arc::new(Meters::default());
    let writer = Writer {
        conn,
        room: Room::new(place.log(), log.bytes()),
        log,
        growth: 0,
        place,
        reserve,
        recent,
        meters: Arc::clone(&meters),
        durability: Durability::Full,
        suspect: false,
        untidy: 0,
    };
    thread::Builder::new()
        .name("homing-write".into())
        .spawn(move || writer.serve(inbox, readers))
        .map_err(|error| Error::Io(format!("the writer's thread could not be started: {error}")))?;
    Ok(Handle { messages, meters })
}

struct Writer {
    conn: Connection,
    log: Log,
    /// Bytes that the database's file grows by when the log is copied back.
    growth: u64,
    place: Place,
    reserve: Reserve,
    room: Room,
    recent: Arc<Recent>,
    meters: Arc<Meters>,
    /// What `PRAGMA synchronous` says now.
    durability: Durability,
    /// An input/output error happened and was not made good.
    suspect: bool,
    /// Commits since the log was last copied back.
    untidy: u32,
}

impl Writer {
    fn serve(mut self, inbox: Receiver<Message>, readers: Vec<JoinHandle<()>>) {
        let mut farewell = None;
        let mut next = self.wait(&inbox);
        while let Some(first) = next {
            let batch = Batch::gather(first, &inbox);
            self.settle(batch.jobs, batch.durability);
            self.bound_log();
            if batch.close.is_some() {
                farewell = batch.close;
                break;
            }
            next = self.wait(&inbox);
        }
        // From here on, whoever asks is told that the store is closed.
        drop(inbox);
        for reader in readers {
            // A reader that panicked has let go of its connection too.
            let _ = reader.join();
        }
        let closed = self.conn.close().map_err(|(_, error)| Error::from(error));
        // The next daemon needs some of what the log took.
        self.reserve.refill_in_part();
        if let Some(reply) = farewell {
            let _ = reply.send(closed);
        }
    }

    /// The next message. What is better done while nobody waits is done first.
    fn wait(&mut self, inbox: &Receiver<Message>) -> Option<Message> {
        match inbox.try_recv() {
            Ok(message) => return Some(message),
            Err(TryRecvError::Disconnected) => return None,
            Err(TryRecvError::Empty) => {}
        }
        if self.place.is_held() && !self.suspect {
            self.room.grow();
        }
        if self.untidy >= TIDY_AFTER && !self.suspect {
            match inbox.recv_timeout(A_WHILE) {
                Ok(message) => return Some(message),
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) => {
                    self.copy_back(CopyBack::Passive, emergency_space::FOR_FORGETTING);
                }
            }
        }
        inbox.recv().ok()
    }

    fn settle(&mut self, mut jobs: Vec<Box<dyn Job>>, durability: Durability) {
        if jobs.is_empty() {
            return;
        }
        let fate = self.attempt(&mut jobs, durability);
        if fate != Err(Error::Full) {
            for job in jobs {
                job.settle(fate.clone());
            }
            return;
        }
        let (essential, rest): (Vec<_>, Vec<_>) = jobs.into_iter().partition(|job| job.is_tried_again());
        for job in rest {
            job.settle(fate.clone());
        }
        for job in essential {
            self.settle_alone(job, durability);
        }
    }

    /// Alone, so that one for which there is no room takes none from the others.
    fn settle_alone(&mut self, mut job: Box<dyn Job>, durability: Durability) {
        // A log that starts over is written where it is: that needs no room on the disk.
        job.insist();
        let kept = if job.need() == Need::MakesRoom { 0 } else { emergency_space::FOR_FORGETTING };
        self.copy_back(CopyBack::Restart, kept);
        let mut fate = self.attempt(std::slice::from_mut(&mut job), durability);
        while fate == Err(Error::Full) && self.reserve.give_up_a_piece(kept) {
            tracing::warn!("the disk is full; some of the reserve was given up for what must be written");
            fate = self.attempt(std::slice::from_mut(&mut job), durability);
        }
        job.settle(fate);
    }

    /// One transaction; after an error nothing of it is left.
    fn attempt(&mut self, jobs: &mut [Box<dyn Job>], durability: Durability) -> Result<(), Error> {
        let began = monotonic();
        let fate = self.commit(jobs, durability);
        match &fate {
            Ok(()) => {
                self.meters.batch.observe(jobs.len() as u64);
                self.meters.time.observe(monotonic().saturating_sub(began));
                self.reserve.refill();
            }
            Err(error) => {
                self.meters.failures.add();
                if !self.conn.is_autocommit()
                    && let Err(error) = self.conn.execute_batch("ROLLBACK")
                {
                    tracing::error!(%error, "a failed transaction could not be rolled back");
                }
                self.suspect |= matches!(error, Error::Io(_));
            }
        }
        fate
    }

    fn commit(&mut self, jobs: &mut [Box<dyn Job>], durability: Durability) -> Result<(), Error> {
        if self.suspect {
            self.place.hold(&self.conn)?;
            self.make_good()?;
        }
        if self.growth >= emergency_space::STEP
            && self.place.is_held()
            && !self.reserve.cover(self.growth, reserved_space::bytes(&self.conn)?)
        {
            self.copy_back(CopyBack::Restart, emergency_space::FOR_FORGETTING);
        }
        let length = self.place.hold(&self.conn)?;
        self.set(durability)?;
        self.execute("BEGIN IMMEDIATE")?;
        let before = self.size()?;
        for job in &mut *jobs {
            self.execute("SAVEPOINT operation")?;
            if let Err(error) = job.run(&self.conn) {
                // SQLite has rolled back everything, as it may on a full disk; or there is a way to let this one through.
                if self.conn.is_autocommit() || (error == Error::Full && job.is_tried_again()) {
                    return Err(error);
                }
                self.execute("ROLLBACK TO operation")?;
            }
            self.execute("RELEASE operation")?;
        }
        let after = self.size()?;
        let growth = after.saturating_sub(length);
        let covered = after <= before || self.reserve.cover(growth, reserved_space::bytes(&self.conn)?);
        // What could not be copied back later is refused now, but for what must be written.
        if !covered && jobs.iter().any(|job| !job.is_essential()) {
            return Err(Error::Full);
        }
        let news = self.news()?;
        self.execute("COMMIT")?;
        self.growth = growth;
        self.recent.show(news);
        self.meters.commits.add();
        self.untidy = self.untidy.saturating_add(1);
        Ok(())
    }

    /// What followers will be told. That it cannot be read is their loss alone: they read the file, and are told why there.
    fn news(&self) -> Result<Option<Events>, Error> {
        match self.recent.gather(&self.conn) {
            Err(error) if self.conn.is_autocommit() => Err(error),
            Err(error) => {
                tracing::warn!(%error, "the newest events could not be read back");
                Ok(None)
            }
            news => news,
        }
    }

    /// The size of the database with what is in the log, in bytes.
    fn size(&self) -> Result<u64, Error> {
        let mut query = self
            .conn
            .prepare_cached("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size")?;
        Ok(row::unsigned(query.query_row([], |row| row.get(0))?))
    }

    fn execute(&self, sql: &str) -> Result<(), Error> {
        self.conn.prepare_cached(sql)?.execute([])?;
        Ok(())
    }

    /// A synced commit covers relaxed ones before it: they are in the same log.
    fn set(&mut self, durability: Durability) -> Result<(), Error> {
        if self.durability != durability {
            let level = match durability {
                Durability::Full => "FULL",
                Durability::Relaxed => "NORMAL",
            };
            self.conn.pragma_update(None, "synchronous", level)?;
            self.durability = durability;
        }
        Ok(())
    }

    fn make_good(&mut self) -> Result<(), Error> {
        self.set(Durability::Full)?;
        let busy: bool = self.conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
        if busy {
            return Err(Error::Io("readers keep the log from being written anew after an error".into()));
        }
        self.suspect = false;
        self.room.look_again();
        Ok(())
    }

    fn bound_log(&mut self) {
        if let Some(how) = self.log.due()
            && self.place.is_held()
            && !self.suspect
        {
            self.copy_back(how, emergency_space::FOR_FORGETTING);
        }
    }

    /// Copies the log into the database, on a full disk with the reserve beyond what is kept, which covers it. Returns whether all of it was copied: then the
    /// log is written from its start again.
    fn copy_back(&mut self, how: CopyBack, kept: u64) -> bool {
        self.untidy = 0;
        let copied = loop {
            match self.checkpoint(how) {
                Err(Error::Full) if self.reserve.give_up_a_piece(kept) => {}
                Err(error) => {
                    // Nothing is lost: what was committed is in the log.
                    tracing::warn!(%error, "the log of the database could not be copied back");
                    self.suspect |= matches!(error, Error::Io(_));
                    break false;
                }
                Ok(copied) => break copied,
            }
        };
        if copied {
            self.growth = 0;
            self.reserve.uncover();
        }
        copied
    }

    /// Whether nothing is left to be copied.
    fn checkpoint(&self, how: CopyBack) -> Result<bool, Error> {
        let whole = |row: &rusqlite::Row<'_>| {
            Ok(!row.get::<_, bool>(0)? && row.get::<_, i64>(1)? == row.get::<_, i64>(2)?)
        };
        match how {
            CopyBack::Passive => Ok(self.conn.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], whole)?),
            CopyBack::Restart => {
                self.conn.busy_timeout(READERS)?;
                let copied = self.conn.query_row("PRAGMA wal_checkpoint(RESTART)", [], whole);
                self.conn.busy_timeout(open::BUSY)?;
                Ok(copied?)
            }
        }
    }
}

/// Microseconds of a clock that nobody sets.
fn monotonic() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    u64::try_from(time.tv_sec * 1_000_000 + time.tv_nsec / 1_000).unwrap_or_default()
}

struct Batch {
    jobs: Vec<Box<dyn Job>>,
    durability: Durability,
    close: Option<oneshot::Sender<Result<(), Error>>>,
}

impl Batch {
    /// The first message and all that wait behind it.
    fn gather(first: Message, inbox: &Receiver<Message>) -> Self {
        let mut batch = Self { jobs: Vec::new(), durability: Durability::Relaxed, close: None };
        let mut next = Some(first);
        while let Some(message) = next {
            match message {
                Message::Run(durability, job) => {
                    if durability == Durability::Full {
                        batch.durability = Durability::Full;
                    }
                    batch.jobs.push(job);
                }
                Message::Close(reply) => {
                    batch.close = Some(reply);
                    break;
                }
            }
            next = if batch.jobs.len() < BATCH { inbox.try_recv().ok() } else { None };
        }
        batch
    }
}
