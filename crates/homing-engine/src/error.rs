//! What can go wrong in an operation, and how users are told.

use std::io;

use homing_api::{Code, Problem};
use homing_model::nesting::Rule;
use homing_model::{OsText, Reference, TaskId, slip, validate};
use homing_store::store;

use crate::advice;

/// Why an operation did not happen.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// Nothing by that id, start, or name.
    #[error("there is no task `{0}`")]
    Unknown(String),
    /// `@last` of an owner who has no task.
    #[error("there is no task `@last`: it is the last one of its owner that is kept, and `{0}` has none")]
    NoLast(String),
    /// It was issued, and even its tombstone is gone.
    #[error("task {0} existed, and its record has expired")]
    Expired(TaskId),
    /// No delivery by that id.
    #[error("there is no delivery `{0}`")]
    UnknownDelivery(String),
    /// No notice by that start.
    #[error("there is no notice `{0}`")]
    UnknownNotice(String),
    /// Several notices or deliveries by that start.
    #[error("`{reference}` fits several {what}: {}", few(candidates))]
    AmbiguousId {
        /// What was given.
        reference: String,
        /// What they are.
        what: &'static str,
        /// Some of them.
        candidates: Vec<String>,
    },
    /// Several by that start or name.
    #[error("`{reference}` fits several tasks: {}", few(candidates))]
    Ambiguous {
        /// What was given.
        reference: String,
        /// Some of them.
        candidates: Vec<TaskId>,
    },
    /// One fits, and by too few characters to change it.
    #[error("{0}")]
    Unsure(#[from] homing_model::unsure::Unsure),
    /// The spec makes no sense.
    #[error("{0}")]
    Invalid(#[from] validate::Invalid),
    /// A parameter makes no sense.
    #[error("{0}")]
    BadParameter(String),
    /// Notices cannot go there.
    #[error("{0}")]
    Target(String),
    /// The operator lets nothing go there.
    #[error("{0}")]
    Forbidden(String),
    /// What must never be written down is part of a target.
    #[error(
        "the target contains the value of the secret `{0}`: a target is kept for as long as something is on its way, and that value \
         is never written down"
    )]
    SecretInTarget(String),
    /// Nobody can be woken there.
    #[error("{0}")]
    NobodyToWake(#[from] homing_model::NoRoute),
    /// The task is live.
    #[error("task {0} is still live")]
    Live(TaskId),
    /// Somebody else runs it, and this is not to be had of it.
    #[error("task {task} is run by somebody else: {what}")]
    External {
        /// Which.
        task: TaskId,
        /// What is not to be had.
        what: &'static str,
    },
    /// homing runs it, and sees its end itself.
    #[error("task {0} is run by homing, which sees its end itself")]
    NotExternal(TaskId),
    /// A process that cannot be watched.
    #[error("process {pid} cannot be watched: {why}")]
    Process {
        /// Its id.
        pid: u32,
        /// Why.
        why: String,
    },
    /// A process that is none of the caller's ancestors.
    #[error("process {caller} was not started by {}", named.map_or_else(|| "any agent".to_owned(), |pid| format!("process {pid}")))]
    NoAncestor {
        /// Who says so.
        caller: u32,
        /// Of which process.
        named: Option<u32>,
    },
    /// The task has ended.
    #[error("task {0} has ended")]
    Ended(TaskId),
    /// It has no input, or closed it.
    #[error("task {0} takes no input")]
    NoInput(TaskId),
    /// Its input is full and it does not read.
    #[error("task {0} does not read its input; nothing was written")]
    InputNotRead(TaskId),
    /// It has no terminal.
    #[error("task {0} has no terminal")]
    NoTerminal(TaskId),
    /// Its command is not executed yet.
    #[error("task {0} has not started yet")]
    NotStarted(TaskId),
    /// It is on its way to the end.
    #[error("task {0} is being stopped")]
    Stopping(TaskId),
    /// Its shim is of a release that could not do that.
    #[error("task {0} was started by a release that could not pause it")]
    OldSupervisor(TaskId),
    /// A process that does not stand still whatever is done to it.
    #[error("task {task} goes on: its process {pid} ({name}) cannot be made to stand still")]
    CannotHold {
        /// Which.
        task: TaskId,
        /// The process.
        pid: u32,
        /// Its name.
        name: String,
    },
    /// Its shim does not answer.
    #[error("the supervisor of task {0} does not answer")]
    Silent(TaskId),
    /// Its output was dropped with it.
    #[error("the output of task {0} is no longer kept")]
    OutputGone(TaskId),
    /// The output could not be read.
    #[error("the output of task {task} could not be read: {why}")]
    OutputUnreadable {
        /// Which.
        task: TaskId,
        /// Why.
        why: String,
    },
    /// Same idempotency key, other body.
    #[error("this idempotency key was used for another request")]
    IdempotencyMismatch,
    /// Same `key`, and the caller did not want to join.
    #[error("task {0} is live and has this key")]
    Duplicate(TaskId),
    /// Too deep.
    #[error("a task inside {depth} tasks is deeper than `[nested] depth` allows")]
    TooDeep {
        /// How deep it would be.
        depth: u32,
    },
    /// A parent has as many live children as it may have.
    #[error("task {parent} has {most} live tasks of its own, and may have no more")]
    TooManyChildren {
        /// Whose they are.
        parent: TaskId,
        /// How many it may have.
        most: u32,
    },
    /// The caller runs below a process that has the folder of a task which is not known.
    #[error("the caller was left behind by task {0}, which is not known")]
    Orphan(TaskId),
    /// A caller inside a task asked for what only those outside may have.
    #[error("{what} is not for callers inside a task (rule `{}`; this one is inside task {task})", Code::of_rule(*rule).slug())]
    Nested {
        /// Which rule.
        rule: Rule,
        /// What was asked for.
        what: String,
        /// The task that it is in.
        task: TaskId,
    },
    /// No agent was named, and none stands out.
    #[error("no agent was named, and {}", if there.is_empty() { format!("none of {} is on the PATH", known.join(", ")) } else { format!("there are {}", there.join(", ")) })]
    NoAgent {
        /// Those that could be asked.
        there: Vec<String>,
        /// All that there could be.
        known: Vec<String>,
    },
    /// There is no such agent.
    #[error("there is no agent `{name}`{}; there are {}", slip::meant(name, known.iter().map(String::as_str)), known.join(", "))]
    UnknownAgent {
        /// What was given.
        name: String,
        /// Those that there are.
        known: Vec<String>,
    },
    /// Its program is not where its task would look for it.
    #[error("the agent `{name}` cannot be asked: its program `{program}` is not {}", if program.contains('/') { "there" } else { "in PATH" })]
    AgentMissing {
        /// Which agent.
        name: String,
        /// What it is run by.
        program: String,
        /// Agents that could be asked instead.
        there: Vec<String>,
    },
    /// An agent cannot go on with that.
    #[error("task {task} cannot be continued: {why}")]
    NotContinued {
        /// With what.
        task: TaskId,
        /// Why.
        why: String,
    },
    /// What is kept of a task does not suffice to run it again.
    #[error("task {task} cannot be run again: {why}")]
    NotAgain {
        /// Which.
        task: TaskId,
        /// Why.
        why: String,
    },
    /// Nothing but the outcome is kept of a task that is to run again.
    #[error("task {0} cannot be run again: it is forgotten, and only its outcome is kept, not what it ran")]
    Forgotten(TaskId),
    /// A task that is to run again had secrets, which are not kept.
    #[error("task {task} cannot be run again: values of secrets are not kept, and it needs {}", names.join(", "))]
    SecretsGone {
        /// Which.
        task: TaskId,
        /// Their names.
        names: Vec<String>,
    },
    /// A secret's file could not be read at submit.
    #[error("the secret `{name}` could not be read from {path}: {why}")]
    Secret {
        /// Its name.
        name: String,
        /// The file.
        path: String,
        /// Why.
        why: String,
    },
    /// The task's folder could not be made.
    #[error("the task's folder could not be made: {0}")]
    Folder(String),
    /// No space for a new task.
    #[error("the disk with the home is full")]
    Full,
    /// A limit of the system.
    #[error("a limit of the system was reached: {0}")]
    Limit(String),
    /// The store said no.
    #[error("{0}")]
    Store(#[from] store::Error),
    /// The engine is shutting down.
    #[error("the daemon is shutting down")]
    Closed,
}

impl Error {
    /// Which kind of problem it is to users.
    #[must_use]
    pub const fn code(&self) -> Code {
        match self {
            Self::Unknown(_) | Self::NoLast(_) => Code::UnknownTask,
            Self::Expired(_) => Code::RecordExpired,
            Self::Ambiguous { .. } => Code::AmbiguousTask,
            Self::Unsure(_) => Code::Unsure,
            Self::Invalid(_) | Self::BadParameter(_) | Self::Secret { .. } | Self::Process { .. } => {
                Code::InvalidRequest
            }
            Self::Target(_) | Self::Forbidden(_) | Self::SecretInTarget(_) => Code::BadTarget,
            Self::NobodyToWake(_) => Code::NobodyToWake,
            Self::UnknownDelivery(_) => Code::UnknownDelivery,
            Self::UnknownNotice(_) => Code::UnknownNotice,
            Self::AmbiguousId { .. } => Code::AmbiguousId,
            Self::Live(_) => Code::TaskLive,
            Self::Ended(_) => Code::TaskEnded,
            Self::External { .. } | Self::NotExternal(_) | Self::Stopping(_) => Code::NotApplicable,
            Self::NotStarted(_) => Code::NotStarted,
            Self::OldSupervisor(_) => Code::OldSupervisor,
            Self::CannotHold { .. } => Code::CannotHold,
            Self::Silent(_) => Code::SilentSupervisor,
            Self::NoInput(_) => Code::NoInput,
            Self::InputNotRead(_) => Code::InputNotRead,
            Self::NoTerminal(_) => Code::NoTerminal,
            Self::OutputGone(_) => Code::OutputGone,
            Self::IdempotencyMismatch => Code::IdempotencyMismatch,
            Self::Duplicate(_) => Code::DuplicateKey,
            Self::TooDeep { .. } | Self::TooManyChildren { .. } => Code::NestedLimit,
            Self::Nested { rule, .. } => Code::of_rule(*rule),
            Self::Orphan(_) => Code::OrphanCaller,
            Self::NoAgent { .. } => Code::NoAgent,
            Self::UnknownAgent { .. } => Code::UnknownAgent,
            Self::NotContinued { .. } => Code::NotContinued,
            Self::AgentMissing { .. } => Code::AgentMissing,
            Self::NotAgain { .. } | Self::Forgotten(_) | Self::SecretsGone { .. } => Code::NotAgain,
            Self::NoAncestor { .. } => Code::NoAncestor,
            Self::Full | Self::Store(store::Error::Full) => Code::StorageFull,
            Self::Limit(_) => Code::SystemLimit,
            Self::Store(store::Error::Corrupt(_)) => Code::StorageCorrupt,
            Self::Store(store::Error::TooNew { .. }) => Code::SchemaTooNew,
            Self::Store(store::Error::PutBack | store::Error::Displaced(_)) => Code::LedgerMoved,
            Self::Folder(_) | Self::OutputUnreadable { .. } | Self::Store(_) => Code::StorageFailed,
            Self::Closed => Code::DaemonUnreachable,
        }
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        let mut problem = Self::new(error.code(), error.to_string());
        match &error {
            Error::Unsure(unsure) => return unsure.clone().into(),
            Error::NoLast(_) => {
                problem.advice = "`homing list --all` shows the tasks of all owners with their ids; HOMING_OWNER, or the agent session, says who you are.".to_owned();
            }
            Error::External { .. } => {
                problem.advice =
                    "Ask whoever runs it; `homing show ID` has its answer once it has ended.".to_owned();
            }
            Error::Stopping(_) => {
                problem.advice = "It ends by itself: `homing wait ID` says when.".to_owned();
            }
            Error::NotExternal(_) => {
                problem.advice =
                    "Only what `homing track` gave is completed or renewed; `homing stop ID` ends a command."
                        .to_owned();
            }
            Error::SecretsGone { .. } => {
                problem.advice = "Give each again: `homing rerun ID --secret NAME=VALUE`, or `NAME=@FILE`; what was set by `--env` that way or by `--env NAME=VALUE`. Over HTTP in `secrets` or `env_set`.".to_owned();
            }
            Error::NoAgent { there, .. } if there.is_empty() => {
                problem.advice = "Install one of them, or make any command an agent: `[agents.NAME]` with `argv` in config.toml.".to_owned();
            }
            Error::NoAgent { there, .. } => {
                problem.advice = format!(
                    "Name one: `--agent {}`. `[agents] default = \"NAME\"` in config.toml chooses one for good.",
                    there.join("`, `--agent ")
                );
            }
            Error::Forgotten(_) => {
                problem.advice = "Submit it anew with `homing run`; `homing list --all` shows the tasks of which more is kept.".to_owned();
            }
            Error::AgentMissing { name, there, .. } => {
                let instead = match there.as_slice() {
                    [] => "No other agent is there either: install one".to_owned(),
                    there => format!(
                        "Install it, or name one that is there: `--agent {}`",
                        there.join("`, `--agent ")
                    ),
                };
                problem.advice = format!(
                    "{instead}. `argv` under [agents.{name}] in config.toml may name a program by its whole path."
                );
            }
            Error::Process { .. } => {
                problem.advice = "Name a process that runs now, or track it by a lease.".to_owned();
            }
            Error::Forbidden(_) => {
                problem.advice = "`[notify]` in config.toml says which kinds of targets are open; `homing config` shows it.".to_owned();
            }
            Error::SecretInTarget(_) => {
                problem.advice = "Leave the value out: `--notify-secret` signs a webhook, and an `exec:` command can read a file.".to_owned();
            }
            _ => {}
        }
        if let Error::Ambiguous { reference, candidates } = &error
            && !candidates.iter().all(|id| starts_with(id, reference))
        {
            problem.advice =
                "Several live tasks have this name: give an id; `homing show ID` tells them apart."
                    .to_owned();
        }
        advice::fill_in(&mut problem, &error);
        problem
    }
}

/// The one that fits, or none; several are an error.
pub(crate) fn only<Id: ToString>(
    mut found: Vec<Id>,
    reference: &str,
    what: &'static str,
) -> Result<Option<Id>, Error> {
    if found.len() > 1 {
        let candidates = found.iter().map(ToString::to_string).collect();
        return Err(Error::AmbiguousId { reference: reference.to_owned(), what, candidates });
    }
    Ok(found.pop())
}

impl Error {
    /// What `find` answers where there is nothing by that text, for this owner.
    pub(crate) fn nothing_by(text: &str, owner: &str) -> Self {
        match Reference::parse(text) {
            Reference::Last => Self::NoLast(owner.to_owned()),
            Reference::Id(_) | Reference::PrefixOrName { .. } => Self::Unknown(text.to_owned()),
        }
    }

    /// The file of a secret could not be read.
    pub(crate) fn secret(name: &str, path: &OsText, error: &io::Error) -> Self {
        Self::Secret { name: name.to_owned(), path: path.lossy().into_owned(), why: error.to_string() }
    }
}

/// How many of several are named.
const NAMED: usize = 5;

fn few(candidates: &[impl ToString]) -> String {
    let named: Vec<_> = candidates.iter().take(NAMED).map(ToString::to_string).collect();
    let more = if candidates.len() > NAMED { " and more" } else { "" };
    named.join(", ") + more
}

/// Whether this is the start of the id, with or without its `t-`.
fn starts_with(id: &TaskId, text: &str) -> bool {
    let (id, text) = (id.as_str(), text.to_ascii_lowercase());
    id.starts_with(&text) || id.trim_start_matches("t-").starts_with(&text)
}
