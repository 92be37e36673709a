//! The roll of tracked tasks that have not ended, and when the lease of each runs out.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use homing_model::TaskId;
use homing_store::{Record, Tracking};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;

/// One of them.
#[derive(Debug)]
struct Tracked {
    record: Record,
    /// When it was accepted, if this engine did that.
    since: Option<Instant>,
    /// When its lease runs out; none once it did, and where it has none.
    until: Option<Instant>,
    /// Dropped with the entry, which ends the watch on its process.
    watch: Option<oneshot::Sender<()>>,
    /// Its end is being recorded.
    ending: bool,
}

#[derive(Debug, Default)]
struct State {
    tasks: HashMap<TaskId, Tracked>,
    due: BTreeSet<(Instant, TaskId)>,
}

/// All of them. Entering, renewing and leaving cost the same however many there are.
#[derive(Debug, Default)]
pub(crate) struct Roll {
    state: Mutex<State>,
    /// Rung when the first lease to run out is an earlier one.
    earlier: Notify,
}

/// What became of a word from somebody who runs a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Renewal {
    /// It was heard in time.
    Heard,
    /// The lease had run out, or the process was gone: the end is being recorded.
    TooLate,
    /// It is not on the roll.
    Absent,
}

impl State {
    /// Begins a lease at `now`.
    fn lease(&mut self, id: &TaskId, now: Instant) {
        let Some(tracked) = self.tasks.get_mut(id) else { return };
        let Some(Tracking::Lease { ms }) = tracked.record.tracking else { return };
        if let Some(until) = tracked.until.take() {
            self.due.remove(&(until, id.clone()));
        }
        let until = now + Duration::from_millis(ms);
        tracked.until = Some(until);
        self.due.insert((until, id.clone()));
    }

    fn earliest(&self) -> Option<Instant> {
        self.due.first().map(|(until, _)| *until)
    }
}

impl Roll {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Puts a task on the roll; its lease, if it has one, begins. False if it is there already.
    pub(super) fn enter(
        &self,
        record: Record,
        now: Instant,
        fresh: bool,
        watch: Option<oneshot::Sender<()>>,
    ) -> bool {
        let id = record.id.clone();
        let mut state = self.lock();
        if state.tasks.contains_key(&id) {
            return false;
        }
        let before = state.earliest();
        let since = fresh.then_some(now);
        state.tasks.insert(id.clone(), Tracked { record, since, until: None, watch, ending: false });
        state.lease(&id, now);
        // Only an earlier one has to be told; what is later is found when the timer is set again.
        if state.earliest() != before {
            self.earlier.notify_one();
        }
        true
    }

    /// Whoever runs it was heard: its lease begins anew.
    pub(super) fn renew(&self, id: &TaskId, now: Instant) -> Renewal {
        let mut state = self.lock();
        match state.tasks.get(id) {
            Some(tracked) if tracked.ending => return Renewal::TooLate,
            Some(_) => state.lease(id, now),
            None => return Renewal::Absent,
        }
        Renewal::Heard
    }

    /// A live task said something: its lease begins anew, and the record changed.
    pub(crate) fn heard(&self, record: &Record) {
        self.renew(&record.id, Instant::now());
        self.update(record);
    }

    /// Begins every lease anew: nobody could be heard.
    pub(super) fn begin_anew(&self, now: Instant) {
        let mut state = self.lock();
        let ids: Vec<_> = state.due.iter().map(|(_, id)| id.clone()).collect();
        for id in ids {
            state.lease(&id, now);
        }
    }

    /// Those whose lease had run out by `then`. Their end is to be recorded: no word counts any more.
    pub(super) fn expired(&self, then: Instant) -> Vec<Record> {
        let mut state = self.lock();
        let mut expired = Vec::new();
        while let Some((until, _)) = state.due.first() {
            if *until > then {
                break;
            }
            let Some((_, id)) = state.due.pop_first() else { break };
            if let Some(tracked) = state.tasks.get_mut(&id) {
                (tracked.until, tracked.ending) = (None, true);
                expired.push(tracked.record.clone());
            }
        }
        expired
    }

    /// Its process is gone: the end is to be recorded. None if it is not on the roll any more.
    pub(super) fn ending(&self, id: &TaskId) -> Option<Record> {
        let mut state = self.lock();
        let tracked = state.tasks.get_mut(id)?;
        tracked.ending = true;
        Some(tracked.record.clone())
    }

    /// Takes a task off the roll.
    pub(crate) fn leave(&self, id: &TaskId) {
        let mut state = self.lock();
        if let Some(until) = state.tasks.remove(id).and_then(|tracked| tracked.until) {
            state.due.remove(&(until, id.clone()));
        }
    }

    /// The record changed.
    pub(super) fn update(&self, record: &Record) {
        if let Some(tracked) = self.lock().tasks.get_mut(&record.id) {
            tracked.record = record.clone();
        }
    }

    /// When the first lease runs out.
    pub(super) fn earliest(&self) -> Option<Instant> {
        self.lock().earliest()
    }

    /// Returns when the first lease to run out is an earlier one than before.
    pub(super) async fn earlier(&self) {
        self.earlier.notified().await;
    }

    /// Has the timer set again: the safety net for one that was lost.
    pub(crate) fn nudge(&self) {
        self.earlier.notify_one();
    }

    /// What is left of a task's lease.
    pub(crate) fn left(&self, id: &TaskId, now: Instant) -> Option<Duration> {
        let until = self.lock().tasks.get(id)?.until?;
        Some(until.saturating_duration_since(now))
    }

    /// How long ago this engine accepted it, if it did.
    pub(super) fn age(&self, id: &TaskId, now: Instant) -> Option<Duration> {
        Some(now.saturating_duration_since(self.lock().tasks.get(id)?.since?))
    }

    /// Whether a task is on the roll, and whoever watches its process is there.
    pub(super) fn attends(&self, id: &TaskId) -> bool {
        let unwatched = |watch: &oneshot::Sender<()>| watch.is_closed();
        match self.lock().tasks.get(id) {
            Some(tracked) => tracked.ending || !tracked.watch.as_ref().is_some_and(unwatched),
            None => false,
        }
    }

    /// Copies of all records.
    pub(crate) fn records(&self) -> Vec<Record> {
        self.lock().tasks.values().map(|tracked| tracked.record.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::supervisor::live::tests::record;

    fn leased(n: u64, ms: u64) -> Record {
        Record {
            id: TaskId::from_entropy(n),
            kind: homing_model::Kind::External,
            tracking: Some(Tracking::Lease { ms }),
            ..record(homing_model::Status::Running)
        }
    }

    fn ids(records: &[Record]) -> Vec<TaskId> {
        records.iter().map(|record| record.id.clone()).collect()
    }

    #[test]
    fn a_lease_that_is_renewed_holds_and_one_that_is_not_runs_out_once() {
        let (roll, begin) = (Roll::default(), Instant::now());
        let after = |ms| begin + Duration::from_millis(ms);
        for n in 1..=3 {
            assert!(roll.enter(leased(n, 100 * n), begin, true, None));
        }
        assert!(!roll.enter(leased(1, 1), begin, true, None), "it is there already");
        assert_eq!(roll.earliest(), Some(after(100)));
        let first = TaskId::from_entropy(1);
        assert_eq!(roll.renew(&first, after(90)), Renewal::Heard);
        assert!(roll.expired(after(189)).is_empty());
        assert_eq!(ids(&roll.expired(after(200))), [first.clone(), TaskId::from_entropy(2)]);
        assert!(roll.expired(after(200)).is_empty(), "once is enough");
        assert_eq!(roll.renew(&first, after(201)), Renewal::TooLate);
        roll.leave(&first);
        assert_eq!(roll.renew(&first, after(201)), Renewal::Absent);
        assert_eq!(roll.left(&TaskId::from_entropy(3), after(250)), Some(Duration::from_millis(50)));
    }

    #[test]
    fn what_could_not_be_heard_begins_anew() {
        let (roll, begin) = (Roll::default(), Instant::now());
        let after = |ms| begin + Duration::from_millis(ms);
        roll.enter(leased(1, 100), begin, false, None);
        roll.enter(leased(2, 500), begin, false, None);
        roll.begin_anew(after(10_000));
        assert!(roll.expired(after(10_099)).is_empty());
        assert_eq!(ids(&roll.expired(after(10_100))), [TaskId::from_entropy(1)]);
    }

    #[test]
    fn thousands_cost_little() {
        let (roll, begin) = (Roll::default(), Instant::now());
        for n in 0..20_000 {
            roll.enter(leased(n, 1_000 + n), begin, true, None);
        }
        for n in 0..20_000 {
            assert_eq!(roll.renew(&TaskId::from_entropy(n), begin), Renewal::Heard);
        }
        assert_eq!(roll.lock().due.len(), 20_000);
        for n in 0..20_000 {
            roll.leave(&TaskId::from_entropy(n));
        }
        assert_eq!((roll.earliest(), roll.records().len()), (None, 0));
    }
}
