//! What is known of a soak when it is over: what was asked and answered, what was seen, what came, and what the tasks themselves say.
//! Plain data, so that the checker is a pure function of it.

use std::collections::{BTreeMap, BTreeSet};

use homing_model::Status;

/// All of it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Story {
    pub(crate) submits: Vec<Submit>,
    /// The ledger's tasks, hooks left out.
    pub(crate) books: Vec<Book>,
    /// What tasks wrote beside homing's books, by number.
    pub(crate) runs: BTreeMap<u64, Vec<Run>>,
    /// States as each observer saw them, in its order.
    pub(crate) sightings: Vec<Vec<Sighting>>,
    /// Ids as each reader of the events saw them, through all its connections.
    pub(crate) streams: Vec<Vec<u64>>,
    /// Ids in the log.
    pub(crate) log: Vec<u64>,
    pub(crate) deliveries: Vec<Delivery>,
    pub(crate) receipts: Vec<Receipt>,
    /// Notices that a command took and answered with success.
    pub(crate) told: BTreeSet<String>,
    pub(crate) inbox: Inbox,
    /// Tasks of which somebody asked the end.
    pub(crate) stopped: BTreeSet<String>,
    pub(crate) killed: Killed,
}

/// One request to run something.
#[derive(Debug, Clone)]
pub(crate) struct Submit {
    pub(crate) number: u64,
    /// The ids that it was answered with: several if the request was repeated.
    pub(crate) answers: Vec<String>,
}

/// A task as the ledger has it at the end.
#[derive(Debug, Clone)]
pub(crate) struct Book {
    pub(crate) id: String,
    pub(crate) number: u64,
    /// Its main process, if the ledger knows.
    pub(crate) pid: Option<u32>,
    pub(crate) status: Status,
    pub(crate) exit_code: Option<u64>,
    pub(crate) signal: Option<u64>,
    pub(crate) reason: Option<String>,
    /// Everything that it printed, as homing gives it back.
    pub(crate) output: Vec<u8>,
    pub(crate) plan: Plan,
}

/// What a task was to do and to tell.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) code: u64,
    /// What it prints if nobody interferes.
    pub(crate) prints: Vec<u8>,
    /// The endpoint that hears of its end.
    pub(crate) webhook: Option<String>,
    /// Whether a command does.
    pub(crate) hook: bool,
}

/// One run by the task's own word. Times are of one clock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Run {
    pub(crate) attempt: u32,
    pub(crate) pid: u32,
    pub(crate) began: u64,
    /// When it was about to end, and with which code.
    pub(crate) ended: Option<(u64, u64)>,
}

/// A state that somebody was told.
#[derive(Debug, Clone)]
pub(crate) struct Sighting {
    pub(crate) task: String,
    pub(crate) status: Status,
}

/// A delivery at the end.
#[derive(Debug, Clone)]
pub(crate) struct Delivery {
    pub(crate) task: String,
    pub(crate) notice: String,
    /// The endpoint, or the command.
    pub(crate) target: String,
    pub(crate) state: String,
    /// In its history.
    pub(crate) attempts: usize,
}

/// A request at a receiver.
#[derive(Debug, Clone)]
pub(crate) struct Receipt {
    pub(crate) endpoint: String,
    pub(crate) notice: String,
    pub(crate) task: String,
    /// Of the body.
    pub(crate) hash: u64,
}

/// What became of inbox entries.
#[derive(Debug, Clone, Default)]
pub(crate) struct Inbox {
    /// Notice and task of each entry that is there at the end.
    pub(crate) left: Vec<(String, String)>,
    /// Tasks whose entry somebody acknowledged, and was told so.
    pub(crate) acknowledged: BTreeSet<String>,
    /// Tasks whose entry somebody may have acknowledged: the answer did not come.
    pub(crate) perhaps: BTreeSet<String>,
}

/// Who was killed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Killed {
    pub(crate) shims: u64,
    /// Main processes whose shim was killed.
    pub(crate) under_shims: BTreeSet<u32>,
    /// Tasks whose shims were killed, by the folders that these held: the main process may have been waited for already.
    pub(crate) of_shims: BTreeSet<String>,
    /// Main processes that were killed themselves.
    pub(crate) tasks: BTreeSet<u32>,
}
