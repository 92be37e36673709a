//! What is known of a soak when it is over: what was asked and answered, what was seen, what came, and what the tasks themselves say.
//! Plain data, so that the checker is a pure function of it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::SystemTime;

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
    /// Every notice that the log has, by its id.
    pub(crate) notices: BTreeMap<String, Notice>,
    /// What sessions of agents heard, in whatever way.
    pub(crate) tellings: Vec<Telling>,
    /// When each life of a session called homing, and was answered: life, beginning and end.
    pub(crate) calls: Vec<Call>,
    /// When somebody asked for a wake with a notice to be sent again, by the notice.
    pub(crate) again: BTreeMap<String, Vec<Asked>>,
    /// What was done to external tasks, by number.
    pub(crate) externals: BTreeMap<u64, External>,
    /// Tasks of which somebody asked the end.
    pub(crate) stopped: BTreeSet<String>,
    pub(crate) killed: Killed,
    /// What was still under way when there had been time enough.
    pub(crate) unsettled: Option<String>,
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
    pub(crate) owner: String,
    /// What it answered, and how that counts.
    pub(crate) answer: Option<String>,
    pub(crate) answer_state: Option<String>,
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
    /// The session that is woken.
    pub(crate) wake: Option<String>,
    /// Whose it is.
    pub(crate) owner: String,
    /// How many of its lines are watched for, if any are.
    pub(crate) hits: Option<u64>,
    /// What it answers if it ends well, if it is an agent's.
    pub(crate) answer: Option<String>,
    /// Somebody else runs it.
    pub(crate) external: bool,
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
    /// What each of them came to.
    pub(crate) results: Vec<String>,
    /// Why it waits or was given up.
    pub(crate) reason: String,
}

/// A request at a receiver.
#[derive(Debug, Clone)]
pub(crate) struct Receipt {
    pub(crate) endpoint: String,
    pub(crate) notice: String,
    pub(crate) task: String,
    /// What it is about: `task.completed`.
    pub(crate) about: String,
    /// Of the body.
    pub(crate) hash: u64,
}

/// What became of inbox entries.
#[derive(Debug, Clone, Default)]
pub(crate) struct Inbox {
    /// Notices that are there at the end.
    pub(crate) left: BTreeSet<String>,
    /// Those that somebody acknowledged, and was told so.
    pub(crate) acknowledged: BTreeSet<String>,
    /// Those that somebody may have acknowledged, or been handed: the answer did not come.
    pub(crate) perhaps: BTreeSet<String>,
    /// Notices that an owner was given which are another's.
    pub(crate) astray: Vec<String>,
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
    /// Every shim that was killed, or had a child killed, and its children.
    pub(crate) touched: BTreeSet<u32>,
    /// When no daemon answered, because it was killed.
    pub(crate) away: Vec<Away>,
}

impl Killed {
    /// Whether a daemon was away at any moment of these.
    pub(crate) fn was_away(&self, from: u64, to: u64) -> bool {
        self.away.iter().any(|away| away.from <= to && away.until.is_none_or(|until| until >= from))
    }
}

/// A daemon was killed. Times are those of [`now`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Away {
    /// Just before the signal.
    pub(crate) from: u64,
    /// When the next one was seen to answer; none if nobody did.
    pub(crate) until: Option<u64>,
}

/// A request to send something again that was answered, or whose daemon was killed while it was asked: it may have been done all the same.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked {
    /// When it was asked for.
    pub(crate) at: u64,
}

/// A notice, as the log has it.
#[derive(Debug, Clone)]
pub(crate) struct Notice {
    pub(crate) task: String,
    pub(crate) owner: String,
    /// `task.completed`.
    pub(crate) about: String,
    /// Its place in the log.
    pub(crate) seq: u64,
    /// Lines that matched and were not told by themselves.
    pub(crate) held_back: u64,
    /// What a heartbeat has of the output, or the line that matched.
    pub(crate) text: String,
}

/// A notice that came to a session.
#[derive(Debug, Clone)]
pub(crate) struct Telling {
    pub(crate) notice: String,
    /// Who heard it.
    pub(crate) owner: String,
    /// The process of the agent that heard it; none where it was woken by a program that ran for that.
    pub(crate) life: Option<u64>,
    /// When it was said.
    pub(crate) at: u64,
    /// When whoever said it had it in hand.
    pub(crate) came: Came,
    /// When the ledger has it that this was told.
    pub(crate) mark: Mark,
    /// Processes on whose way it came.
    pub(crate) by: Vec<u32>,
}

/// When the ledger has it that something was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    /// Before it was said: the answer of a tool call.
    Before,
    /// After it was said, and by this moment: a hook, a waiter, which heard that it is so.
    By(u64),
    /// Perhaps never: whoever said it had ended by itself at this moment, and had not heard that it is so.
    Unheard(u64),
    /// Perhaps never: whoever said it was killed first.
    Killed,
    /// Once the shim of the program that woke the session has told how that ended.
    Shim,
}

/// How something came to whoever said it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Came {
    /// A hook took it from the inbox: when it asked, and when it had it.
    Taken {
        /// The lease began after this,
        asked: u64,
        /// and before this.
        given: u64,
    },
    /// A tool call that began then was answered with it.
    Answered {
        /// When the call was made.
        began: u64,
        /// Whether the call made the task itself, so that nobody can have had its end before.
        own: bool,
    },
    /// A wake was given it.
    HandedOver,
    /// Not known: whoever said it kept no diary.
    Unknown,
}

/// A call of homing in the name of a session.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call {
    pub(crate) life: u64,
    pub(crate) began: u64,
    pub(crate) ended: u64,
    /// It was the hook of the end of a turn, which proves that a model read what hooks printed before.
    pub(crate) ends_turn: bool,
}

/// What was done to an external task.
#[derive(Debug, Clone, Default)]
pub(crate) struct External {
    /// Who tried to complete it, with which answer, and what they were told: whether it was theirs that counted. None if no answer came.
    pub(crate) completions: Vec<(String, Option<bool>)>,
    /// It may be lost: nobody let himself be heard for as long as its lease, or its process ended.
    pub(crate) may_be_lost: bool,
    /// It was completed in the name of somebody whose it is not.
    pub(crate) by_stranger: bool,
}

/// Nanoseconds of the clock that tasks and their shells read.
pub(crate) fn now() -> u64 {
    nanos(SystemTime::now())
}

/// The same of a moment.
pub(crate) fn nanos(moment: SystemTime) -> u64 {
    let since = moment.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
