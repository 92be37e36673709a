//! What the store keeps of a task.

use homing_model::watch;
use homing_model::{Answer, Kind, Masks, Outcome, Progress, Spec, Status, SubAgent, TaskId, Timestamp};

/// By what the end of somebody else's work is seen, if nobody tells of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tracking {
    /// Nothing was heard of it for so long.
    Lease {
        /// How long.
        ms: u64,
    },
    /// A process ended: this one, not another that gets its number.
    Process {
        /// Its id.
        pid: u32,
        /// When it was started, in the kernel's ticks since the boot that the task was accepted in.
        start: u64,
    },
}

impl Tracking {
    /// The lease, if that is it.
    #[must_use]
    pub const fn lease_ms(self) -> Option<u64> {
        match self {
            Self::Lease { ms } => Some(ms),
            Self::Process { .. } => None,
        }
    }
}

/// A task about to be accepted.
#[derive(Debug, Clone)]
pub struct NewTask {
    /// A fresh id; the store refuses one that was ever used.
    pub id: TaskId,
    /// What sort of work.
    pub kind: Kind,
    /// For an external task: how its end is seen.
    pub tracking: Option<Tracking>,
    /// For an agent task: which, and how it is understood.
    pub agent: Option<SubAgent>,
    /// What to run, without environment values and with markers for secret values: what it holds may be written to disk.
    pub spec: Spec,
    /// Whose it is.
    pub owner: String,
    /// The command in one line.
    pub command: String,
    /// Names of all its variables.
    pub env_names: Vec<String>,
    /// Names of secrets that only the submitting daemon's memory holds.
    pub volatile_secrets: Vec<String>,
    /// Recognise its secrets in what is told of it.
    pub masks: Masks,
    /// The task it was submitted from.
    pub parent: Option<TaskId>,
    /// How many tasks it is nested in.
    pub depth: u32,
    /// Whether whoever submitted it came over the network, not by the socket.
    pub network: bool,
    /// Which machine.
    pub node: String,
    /// Which boot of it.
    pub boot_id: String,
}

/// News that an attempt's command was executed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Started {
    /// Its main process.
    pub pid: u32,
    /// When.
    pub at: Timestamp,
}

/// What somebody asked for who asked for an end.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Stop {
    /// Who.
    pub by: String,
    /// The polite signal, if it is not the usual one.
    pub signal: Option<i32>,
    /// How long before the last signal, if it is not the task's own.
    pub grace_ms: Option<u64>,
}

impl From<&str> for Stop {
    fn from(by: &str) -> Self {
        Self { by: by.to_owned(), ..Self::default() }
    }
}

/// A task as it is kept. For a forgotten one, `spec` is reduced to what a tombstone holds.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// The order of acceptance.
    pub seq: u64,
    /// Its id.
    pub id: TaskId,
    /// What sort of work.
    pub kind: Kind,
    /// What to run.
    pub spec: Spec,
    /// Whose it is.
    pub owner: String,
    /// The command in one line.
    pub command: String,
    /// Names of all its variables.
    pub env_names: Vec<String>,
    /// Names of secrets that only the submitting daemon's memory held.
    pub volatile_secrets: Vec<String>,
    /// Recognise its secrets in what is told of it.
    pub masks: Masks,
    /// The task it was submitted from.
    pub parent: Option<TaskId>,
    /// How many tasks it is nested in.
    pub depth: u32,
    /// Whether whoever submitted it came over the network, not by the socket.
    pub network: bool,
    /// The session, as an owner, of the agent that runs inside this task; see [`Inbox::claim_session`](crate::store::Inbox::claim_session).
    pub nested_session: Option<String>,
    /// Where it is in its life.
    pub status: Status,
    /// Which try.
    pub attempt: u32,
    /// The machine it runs on.
    pub node: String,
    /// The boot in which the attempt was claimed.
    pub boot_id: String,
    /// Its main process, once known.
    pub pid: Option<u32>,
    /// When it was accepted.
    pub created_at: Timestamp,
    /// When its command was executed.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// How long it ran.
    pub duration_ms: Option<u64>,
    /// How it ended.
    pub outcome: Option<Outcome>,
    /// How its end was asked for, if it was.
    pub stop: Option<Stop>,
    /// Bytes of output at the end.
    pub output_bytes: u64,
    /// Of those, bytes no longer kept.
    pub output_dropped: u64,
    /// How far it says it is.
    pub progress: Option<Progress>,
    /// For an external task: how its end is seen.
    pub tracking: Option<Tracking>,
    /// When an external task was last heard of.
    pub heard_at: Option<Timestamp>,
    /// What it has for an answer, once it has ended.
    pub answer: Option<Answer>,
    /// For an agent task: which, how it is understood, and what it said of itself by the end.
    pub agent: Option<SubAgent>,
    /// How far the output of this attempt was watched and told.
    pub watch: Option<watch::State>,
    /// Past retention: a tombstone.
    pub forgotten: bool,
}

impl Record {
    /// The attempt that is, or was, the current one.
    #[must_use]
    pub fn attempt(&self) -> homing_model::Attempt {
        homing_model::Attempt { task: self.id.clone(), number: self.attempt }
    }
}
