//! Tasks that have not ended, as this engine knows them.
//!
//! Each has one attendant, which owns the connection to its shim; everybody else reaches it through the entry here. An entry is there from
//! before the launch until the end is recorded (and, for a task whose children outlive it, until they are gone).

use std::collections::{HashMap, HashSet};

use homing_model::agent::Heard;
use homing_model::{Status, TaskId, Timestamp};
use homing_shim::wire;
use homing_store::Record;
use homing_sys::process::Process;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{mpsc, oneshot, watch};

use crate::control::pause::Stilled;
use crate::control::resize::Size;

/// What an attendant is asked to do.
#[derive(Debug)]
pub(crate) enum Command {
    /// End the tree.
    Stop(wire::Stop),
    /// Send a signal; answers whether anybody was there.
    Signal(i32, oneshot::Sender<bool>),
    /// Write input; answers how much was taken and whether the input is closed.
    Input { seq: u64, data: Vec<u8>, eof: bool, taken: oneshot::Sender<(u64, bool)> },
    /// Forget what was not taken of this input; its request is answered with what was.
    CancelInput(u64),
    /// Give the terminal a size; answers with the one that it has then, none if there is no terminal.
    Resize(Size, oneshot::Sender<Option<Size>>),
    /// Let the tree stand still, or go on.
    Still(bool, oneshot::Sender<Stilled>),
    /// Say when the output is longer than this.
    Watch(u64),
}

/// Commands that wait for a shim at most.
const QUEUE: usize = 64;

/// One live task.
#[derive(Debug)]
struct Entry {
    record: Record,
    shim: Option<Process>,
    commands: mpsc::Sender<Command>,
    growth: watch::Sender<u64>,
    /// Whether the tree stands still, by the shim's word.
    stillness: watch::Sender<wire::Stillness>,
    /// What an agent said of itself so far, and when that was heard.
    heard: Option<(Heard, Timestamp)>,
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Live {
    entries: Mutex<HashMap<TaskId, Entry>>,
    /// Tasks that are being submitted: the ledger may know them before we have entered them.
    coming: Mutex<HashSet<TaskId>>,
}

/// A task that is being submitted.
#[must_use]
pub(crate) struct Coming<'a> {
    live: &'a Live,
    id: TaskId,
}

impl Drop for Coming<'_> {
    fn drop(&mut self) {
        self.live.coming.lock().remove(&self.id);
    }
}

/// The attendant's end of an entry.
#[derive(Debug)]
pub(crate) struct Attendance {
    pub(crate) commands: mpsc::Receiver<Command>,
}

impl Live {
    fn lock(&self) -> MutexGuard<'_, HashMap<TaskId, Entry>> {
        self.entries.lock()
    }

    /// Enters a task; none if it is there already.
    pub(crate) fn enter(&self, record: Record) -> Option<Attendance> {
        let mut entries = self.lock();
        if entries.contains_key(&record.id) {
            return None;
        }
        let (commands, receiver) = mpsc::channel(QUEUE);
        let (growth, _) = watch::channel(0);
        let (stillness, _) = watch::channel(wire::Stillness::default());
        let id = record.id.clone();
        entries.insert(id, Entry { record, shim: None, commands, growth, stillness, heard: None });
        Some(Attendance { commands: receiver })
    }

    /// A task is about to be committed: until this is dropped, nobody else may adopt it.
    pub(crate) fn expect(&self, id: &TaskId) -> Coming<'_> {
        self.coming.lock().insert(id.clone());
        Coming { live: self, id: id.clone() }
    }

    /// Takes a task out.
    pub(crate) fn leave(&self, id: &TaskId) {
        self.lock().remove(id);
    }

    /// The record changed.
    pub(crate) fn update(&self, record: &Record) {
        // News of a start may come late, by another thread; an end is final, and so is the way to it.
        let late = |entry: &Entry| match entry.record.status {
            Status::Stopping => !record.status.is_terminal() && record.status != Status::Stopping,
            status => status.is_terminal() && !record.status.is_terminal(),
        };
        if let Some(entry) = self.lock().get_mut(&record.id).filter(|entry| !late(entry)) {
            entry.record = record.clone();
        }
    }

    /// The shim said who it is.
    pub(crate) fn set_shim(&self, id: &TaskId, shim: Option<Process>) {
        if let Some(entry) = self.lock().get_mut(id) {
            entry.shim = shim;
        }
    }

    /// Which process the shim is, as it was when it said so.
    pub(crate) fn shim(&self, id: &TaskId) -> Option<Process> {
        self.lock().get(id).and_then(|entry| entry.shim.clone())
    }

    /// Output grew.
    pub(crate) fn grown(&self, id: &TaskId, total: u64) {
        if let Some(entry) = self.lock().get(id) {
            entry.growth.send_replace(total);
        }
    }

    /// The shim said whether the tree stands still.
    pub(crate) fn set_stillness(&self, id: &TaskId, stillness: wire::Stillness) {
        if let Some(entry) = self.lock().get(id) {
            entry.stillness.send_if_modified(|before| std::mem::replace(before, stillness) != stillness);
        }
    }

    /// Whether a task's tree stands still, and news of that.
    pub(crate) fn stillness(&self, id: &TaskId) -> Option<watch::Receiver<wire::Stillness>> {
        self.lock().get(id).map(|entry| entry.stillness.subscribe())
    }

    /// An agent has said this of itself so far. What it said before was said when it was.
    pub(crate) fn set_heard(&self, id: &TaskId, heard: Heard, now: Timestamp) {
        if let Some(entry) = self.lock().get_mut(id)
            && entry.heard.as_ref().is_none_or(|(before, _)| *before != heard)
        {
            entry.heard = Some((heard, now));
        }
    }

    /// What an agent said of itself so far, and when.
    pub(crate) fn heard(&self, id: &TaskId) -> Option<(Heard, Timestamp)> {
        self.lock().get(id).and_then(|entry| entry.heard.clone())
    }

    /// The shim is another's acquaintance now, or again: whoever waited for news asks anew.
    pub(crate) fn ask_anew(&self, id: &TaskId) {
        if let Some(entry) = self.lock().get(id) {
            entry.growth.send_modify(|_| {});
        }
    }

    /// A copy of one record.
    pub(crate) fn record(&self, id: &TaskId) -> Option<Record> {
        self.lock().get(id).map(|entry| entry.record.clone())
    }

    /// How to reach a task's attendant.
    pub(crate) fn commands(&self, id: &TaskId) -> Option<mpsc::Sender<Command>> {
        self.lock().get(id).map(|entry| entry.commands.clone())
    }

    /// News of a task's output.
    pub(crate) fn growth(&self, id: &TaskId) -> Option<watch::Receiver<u64>> {
        self.lock().get(id).map(|entry| entry.growth.subscribe())
    }

    /// Whether a task is attended, or is about to be.
    pub(crate) fn contains(&self, id: &TaskId) -> bool {
        self.coming.lock().contains(id) || self.lock().contains_key(id)
    }

    /// The task whose shim this process is: a pid alone may be another's by now.
    pub(crate) fn by_shim(&self, process: &Process) -> Option<Record> {
        let is_it = |shim: &Process| (shim.pid, shim.start) == (process.pid, process.start);
        let entries = self.lock();
        let found = entries.values().find(|entry| entry.shim.as_ref().is_some_and(is_it));
        found.map(|entry| entry.record.clone())
    }

    /// Copies of all records.
    pub(crate) fn records(&self) -> Vec<Record> {
        self.lock().values().map(|entry| entry.record.clone()).collect()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use homing_model::Spec;
    use homing_sys::process;

    use super::*;

    pub(crate) fn record(status: Status) -> Record {
        Record {
            kind: homing_model::Kind::Command,
            progress: None,
            tracking: None,
            heard_at: None,
            answer: None,
            agent: None,
            watch: None,
            seq: 1,
            id: TaskId::from_entropy(1),
            spec: Spec::default(),
            owner: "ann".into(),
            command: "true".into(),
            env_names: Vec::new(),
            volatile_secrets: Vec::new(),
            masks: homing_model::Masks::default(),
            parent: None,
            depth: 0,
            network: false,
            nested_session: None,
            status,
            attempt: 1,
            node: "here".into(),
            boot_id: "this".into(),
            pid: None,
            created_at: Timestamp::from_millis(0),
            started_at: None,
            ended_at: None,
            duration_ms: None,
            outcome: None,
            stop: None,
            output_bytes: 0,
            output_dropped: 0,
            forgotten: false,
        }
    }

    #[test]
    fn p1_news_of_a_start_that_comes_late_does_not_undo_the_end() {
        let live = Live::default();
        let _attendance = live.enter(record(Status::Starting)).unwrap();
        for status in [Status::Running, Status::Failed] {
            live.update(&record(status));
            assert_eq!(live.records(), [record(status)]);
        }
        live.update(&record(Status::Running));
        assert_eq!(live.records(), [record(Status::Failed)]);
    }

    #[test]
    fn p1_news_that_a_task_goes_on_does_not_undo_its_stop() {
        let live = Live::default();
        let _attendance = live.enter(record(Status::Starting)).unwrap();
        for status in [Status::Running, Status::Paused, Status::Running, Status::Stopping] {
            live.update(&record(status));
            assert_eq!(live.records(), [record(status)]);
        }
        live.update(&record(Status::Running));
        live.update(&record(Status::Paused));
        assert_eq!(live.records(), [record(Status::Stopping)]);
    }

    #[test]
    fn p8_a_process_that_only_has_the_pid_of_a_shim_is_none() {
        let live = Live::default();
        let _attendance = live.enter(record(Status::Running)).unwrap();
        let shim = process::stat(std::process::id()).unwrap();
        live.set_shim(&TaskId::from_entropy(1), Some(shim.clone()));
        assert!(live.by_shim(&Process { frozen: true, ..shim.clone() }).is_some());
        assert!(live.by_shim(&Process { start: shim.start + 1, ..shim }).is_none());
    }
}
