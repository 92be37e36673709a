//! What an engine has done since it was opened, and how things stand: figures for whoever watches from outside.
//!
//! Counting costs an addition where something happens. Reading asks the ledger, on the thread that reads, and holds up nobody who writes.

use std::array;

use homing_api::ReconcileInfo;
use homing_model::meter::{Counter, Histogram, Reading};
use homing_model::operator::TargetKind;
use homing_model::{Kind, Status, Target, Timestamp};
use homing_store::outbox::{Next, Settled};
use homing_store::{Census, Record, Work};
use homing_sys::home;

use crate::engine::Engine;
use crate::error::Error;

/// The ways a task can end.
pub const ENDS: [Status; 6] =
    [Status::Succeeded, Status::Failed, Status::Stopped, Status::TimedOut, Status::StartFailed, Status::Lost];

/// The kinds of tasks that are submitted.
pub const KINDS: [Kind; 3] = [Kind::Command, Kind::Agent, Kind::External];

/// What notices are brought to: by a request, or by a run of a command or of what wakes.
pub const CARRIERS: [&str; 3] = ["webhook", "exec", "wake"];

/// What may come of an attempt.
pub const RESULTS: [&str; 3] = ["delivered", "busy", "failed"];

/// The exit code by which a command says that it is busy.
const BUSY: i32 = 75;

/// The counters of one engine.
#[derive(Debug)]
pub(crate) struct Meters {
    submitted: [Counter; KINDS.len()],
    joined: Counter,
    ended: [Counter; ENDS.len()],
    attempts: [[Counter; RESULTS.len()]; CARRIERS.len()],
    start_delay: Histogram<14>,
    record_delay: Histogram<14>,
}

impl Default for Meters {
    fn default() -> Self {
        Self {
            submitted: array::from_fn(|_| Counter::default()),
            joined: Counter::default(),
            ended: array::from_fn(|_| Counter::default()),
            attempts: array::from_fn(|_| array::from_fn(|_| Counter::default())),
            start_delay: Histogram::of_times(),
            record_delay: Histogram::of_times(),
        }
    }
}

fn count<T: PartialEq>(counters: &[Counter], names: &[T], name: &T) {
    let place = names.iter().position(|known| known == name);
    if let Some(counter) = place.and_then(|place| counters.get(place)) {
        counter.add();
    }
}

fn micros(from: Timestamp, to: Timestamp) -> u64 {
    to.millis_since(from).saturating_mul(1_000)
}

impl Meters {
    /// A task was accepted.
    pub(crate) fn submitted(&self, kind: Kind) {
        count(&self.submitted, &KINDS, &kind);
    }

    /// A submit turned out to be of a task that was there.
    pub(crate) fn joined(&self) {
        self.joined.add();
    }

    /// The command of a task began.
    pub(crate) fn started(&self, record: &Record) {
        if let (Some(at), true) = (record.started_at, record.kind != Kind::Hook) {
            self.start_delay.observe(micros(record.created_at, at));
        }
    }

    /// An end is durable.
    pub(crate) fn ended(&self, record: &Record, now: Timestamp) {
        if record.kind == Kind::Hook {
            let carrier = if record.spec.shell.is_some() { "exec" } else { "wake" };
            let code = record.outcome.as_ref().and_then(|outcome| outcome.exit_code);
            let result = match code {
                Some(0) => "delivered",
                Some(BUSY) => "busy",
                Some(_) | None => "failed",
            };
            return self.attempted(carrier, result);
        }
        count(&self.ended, &ENDS, &record.status);
        if let Some(at) = record.ended_at {
            self.record_delay.observe(micros(at, now));
        }
    }

    /// A request was made for a delivery, or nothing could be made of it.
    pub(crate) fn settled(&self, target: &Target, settled: &Settled) {
        let result = match &settled.next {
            // No attempt was made.
            Next::Superseded(_) => return,
            Next::Delivered => "delivered",
            Next::At(_) if settled.tried.is_none() => "busy",
            Next::At(_) | Next::Dead(_) => "failed",
        };
        let kind = TargetKind::from(target);
        let carrier = if kind.only_wakes() { TargetKind::Wake } else { kind }.as_str();
        self.attempted(carrier, result);
    }

    fn attempted(&self, carrier: &str, result: &str) {
        let place = CARRIERS.iter().position(|known| *known == carrier);
        if let Some(counters) = place.and_then(|place| self.attempts.get(place)) {
            count(counters, &RESULTS, &result);
        }
    }
}

/// How an engine stands, and what it has done since it was opened.
#[derive(Debug, Clone, Default)]
pub struct Figures {
    /// What is in the ledger.
    pub census: Census,
    /// What the ledger has done.
    pub work: Work,
    /// Accepted tasks, in the order of [`KINDS`].
    pub submitted: Vec<u64>,
    /// Submits that joined a task which was there.
    pub joined: u64,
    /// Ends, in the order of [`ENDS`].
    pub ended: Vec<u64>,
    /// Attempts to deliver, in the order of [`CARRIERS`], each in the order of [`RESULTS`].
    pub attempts: Vec<Vec<u64>>,
    /// From a submit to the start of the command, in microseconds.
    pub start_delay: Reading,
    /// From an end to its durable record, in microseconds.
    pub record_delay: Reading,
    /// Attempts that are attended, those of commands that deliver included.
    pub attended: u64,
    /// The safety net.
    pub reconcile: ReconcileInfo,
    /// Whether new tasks are refused.
    pub degraded: bool,
    /// Whether there is a keeper.
    pub keeper: bool,
    /// When it was opened.
    pub started_at: Timestamp,
    /// The sizes of the ledger and of its log, in bytes.
    pub ledger_bytes: u64,
    /// The same of its log.
    pub ledger_log_bytes: u64,
    /// What is free on the disk of the home, in bytes.
    pub free_bytes: u64,
}

impl Engine {
    /// The figures of this moment.
    ///
    /// # Errors
    /// If the ledger cannot be read.
    pub async fn figures(&self) -> Result<Figures, Error> {
        let inner = &self.inner;
        let meters = &inner.meters;
        let size =
            |name: &str| std::fs::metadata(inner.home.path().join(name)).map_or(0, |found| found.len());
        let disk = rustix::fs::statvfs(inner.home.path());
        let read = |counters: &[Counter]| counters.iter().map(Counter::read).collect();
        Ok(Figures {
            census: inner.store.census().await?,
            work: inner.store.work(),
            submitted: read(&meters.submitted),
            joined: meters.joined.read(),
            ended: read(&meters.ended),
            attempts: meters.attempts.iter().map(|counters| read(counters)).collect(),
            start_delay: meters.start_delay.read(),
            record_delay: meters.record_delay.read(),
            attended: inner.live.records().len() as u64,
            reconcile: inner.reconcile.lock().clone(),
            degraded: inner.degraded.lock().is_some(),
            keeper: inner.keeper.pid().is_some(),
            started_at: inner.started_at,
            ledger_bytes: size(home::DATABASE),
            ledger_log_bytes: size(&format!("{}-wal", home::DATABASE)),
            free_bytes: disk.map_or(0, |disk| disk.f_bavail.saturating_mul(disk.f_frsize)),
        })
    }
}
