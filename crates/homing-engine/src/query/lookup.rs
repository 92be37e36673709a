//! Looking: one task, many, events, status. None of it changes anything (P6).

use homing_api::{AttemptInfo, DaemonInfo, Page, RecentFailure, StatusAnswer, TaskDetail};
use homing_model::units::millis;
use homing_model::{Kind, Reference, Status, Task, TaskId, unsure};
use homing_store::Record;
use homing_store::outbox::DeliveryFilter;
use homing_store::store::{EventFilter, Events, Filter, Found};
use tokio::sync::watch;

use crate::engine::Engine;
use crate::error::Error;
use crate::query::view;

/// So many notices, and so many deliveries, are shown with a task.
const SHOWN: u32 = 100;

/// Ends that somebody should look at.
const UNLUCKY: [Status; 4] = [Status::Failed, Status::TimedOut, Status::StartFailed, Status::Lost];
/// So many of those are in the status.
const FAILURES: u32 = 5;

/// One of them, for the status.
fn failure(record: Record) -> RecentFailure {
    let outcome = record.outcome.as_ref();
    let reason = outcome.and_then(|outcome| {
        let code = outcome.exit_code.map(|code| format!("exit code {code}"));
        outcome.reason.clone().or(code).or_else(|| outcome.signal.map(|signal| format!("signal {signal}")))
    });
    RecentFailure {
        title: record.spec.name.clone().unwrap_or(record.command),
        task_id: record.id,
        owner: record.owner,
        status: record.status,
        reason,
        ended_at: record.ended_at,
    }
}

impl Engine {
    /// What a person means by this text.
    ///
    /// # Errors
    /// If nothing, or several tasks, fit.
    pub async fn resolve(&self, text: &str, owner: &str) -> Result<TaskId, Error> {
        let reference = Reference::parse(text);
        match self.inner.store.find(reference, owner.to_owned()).await? {
            Found::One(id) => Ok(id),
            Found::Several(candidates) => Err(Error::Ambiguous { reference: text.to_owned(), candidates }),
            Found::Expired(id) => Err(Error::Expired(id)),
            Found::None => Err(Error::nothing_by(text, owner)),
        }
    }

    /// Refuses a text that was enough to find a task and is too little to change it by.
    ///
    /// # Errors
    /// If it is so little.
    pub async fn certain(&self, text: &str, id: &TaskId) -> Result<(), Error> {
        if !unsure::is_little(text) {
            return Ok(());
        }
        let record = self.inner.record(id).await?;
        Ok(unsure::certain(text, id, record.spec.name.as_deref())?)
    }

    /// One task, or its tombstone.
    ///
    /// # Errors
    /// If it was never issued here.
    pub async fn task(&self, id: &TaskId) -> Result<Task, Error> {
        Ok(view::task(&self.inner, self.inner.record(id).await?))
    }

    /// One task, with its attempts, what was told of it, and where that went.
    ///
    /// # Errors
    /// If it was never issued here.
    pub async fn detail(&self, id: &TaskId) -> Result<TaskDetail, Error> {
        let task = self.task(id).await?;
        let notices = self.inner.store.notices(id.clone(), SHOWN, self.inner.now()).await?;
        // Nothing is told of a hook: it is what tells.
        let (task_id, hook) =
            if task.kind == Kind::Hook { (None, Some(id.clone())) } else { (Some(id.clone()), None) };
        let filter = DeliveryFilter { task: task_id, hook, limit: SHOWN, ..DeliveryFilter::default() };
        let mut deliveries = self.inner.store.deliveries(filter).await?.items;
        deliveries.reverse();
        Ok(TaskDetail { attempts: vec![AttemptInfo::from(&task)], notices, deliveries, task })
    }

    /// A page of tasks, live ones first, newest first.
    ///
    /// # Errors
    /// If the cursor is none of ours.
    pub async fn list(&self, filter: Filter) -> Result<Page<Task>, Error> {
        Ok(self.list_as_of(filter).await?.0)
    }

    /// The same, and the newest event when it was read: whoever follows the log from there misses nothing.
    ///
    /// # Errors
    /// If the cursor is none of ours.
    pub async fn list_as_of(&self, filter: Filter) -> Result<(Page<Task>, u64), Error> {
        let listed = self.inner.store.list(filter).await?;
        if !listed.cursor_valid {
            return Err(Error::BadParameter("`cursor` is not one that a list has answered with".into()));
        }
        let shown = |record| view::task(&self.inner, record).summary();
        let items = listed.records.into_iter().map(shown).collect();
        Ok((Page { items, next_cursor: listed.next_cursor }, listed.as_of))
    }

    /// Events after a cursor.
    ///
    /// # Errors
    /// If the ledger cannot be read.
    pub async fn events(&self, after: u64, filter: EventFilter, limit: u32) -> Result<Events, Error> {
        Ok(self.inner.store.events(after, filter, limit).await?)
    }

    /// The newest event's cursor.
    ///
    /// # Errors
    /// If the ledger cannot be read.
    pub async fn last_event(&self) -> Result<u64, Error> {
        Ok(self.inner.store.last_event().await?)
    }

    /// Changes after every commit that appended events.
    #[must_use]
    pub fn newest_event(&self) -> watch::Receiver<u64> {
        self.inner.events.subscribe()
    }

    /// How this engine is doing.
    ///
    /// # Errors
    /// If the ledger cannot be read.
    pub async fn status(&self) -> Result<StatusAnswer, Error> {
        let inner = &self.inner;
        let mut reconcile = inner.reconcile.lock().clone();
        reconcile.interval_ms = millis(inner.config().reconcile.interval.0);
        let degraded = inner.degraded.lock().clone();
        let tasks = inner.store.counts().await?;
        let census = inner.store.census().await?;
        let unlucky = Filter { statuses: UNLUCKY.to_vec(), limit: FAILURES, ..Filter::default() };
        let failures = inner.store.list(unlucky).await?.records.into_iter().map(failure).collect();
        let there = census.tasks.iter().filter(|(_, count)| *count > 0);
        let statuses = there.map(|(status, count)| (status.to_string(), *count)).collect();
        Ok(StatusAnswer {
            daemon: DaemonInfo {
                pid: std::process::id(),
                keeper_pid: inner.keeper.pid(),
                version: env!("CARGO_PKG_VERSION").into(),
                started_at: inner.started_at,
                home: inner.home.path().to_string_lossy().into_owned(),
                degraded,
            },
            tasks,
            statuses,
            failures,
            inbox: census.inbox,
            reconcile,
            background: inner.background.loops(),
            deliveries: inner.store.delivery_counts().await?,
            configuration: None,
            listener: None,
        })
    }

    /// Live tasks as plain data, for any user interface. Answered from memory.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let mut records = self.inner.live.records();
        records.extend(self.inner.roll.records());
        Snapshot { records, engine: self.clone() }
    }
}

/// What was live at one moment.
#[derive(Debug, Clone)]
pub struct Snapshot {
    records: Vec<Record>,
    engine: Engine,
}

impl Snapshot {
    /// Starting, running, paused and stopping tasks, by start time, then id.
    #[must_use]
    pub fn running(&self) -> Vec<Task> {
        let mut records: Vec<_> = self
            .records
            .iter()
            .filter(|record| record.status.is_active() && record.kind != Kind::Hook)
            .cloned()
            .collect();
        records.sort_by(|a, b| {
            (a.started_at.unwrap_or(a.created_at), &a.id).cmp(&(b.started_at.unwrap_or(b.created_at), &b.id))
        });
        records.into_iter().map(|record| view::task(&self.engine.inner, record)).collect()
    }
}
