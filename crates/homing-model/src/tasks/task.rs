//! A task as every surface shows it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::agent::{self, AgentInfo};
use crate::answer::AnswerState;
use crate::id::TaskId;
use crate::notify::{Notify, Target, When};
use crate::outcome::Outcome;
use crate::sanitize;
use crate::signal;
use crate::spec::LONGEST_COMMAND;
use crate::status::Status;
use crate::time::Timestamp;
use crate::words::words;

/// What sort of work a task is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// homing runs it.
    #[default]
    Command,
    /// homing runs an agent, and its answer is the result.
    Agent,
    /// Somebody else runs it, and tells.
    External,
    /// A command that is told of ends (`exec:`). Not a task of anybody's: it is in no list and has no owner.
    Hook,
}

words! {
    Kind is "a kind of task":
    Command = "command",
    Agent = "agent",
    External = "external",
    Hook = "hook",
}

/// Where a task's output is, and how much.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct OutputInfo {
    /// Bytes written in all; the next byte gets this offset.
    pub bytes: u64,
    /// Bytes no longer kept, from the middle.
    pub dropped: u64,
    /// The file with the first bytes.
    pub path: Option<String>,
}

/// Who is told of the end, and when, as far as it may be seen.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct NotifyInfo {
    /// Which ends.
    pub on: When,
    /// Where notices go; what follows the `?` of an address is not shown.
    pub targets: Vec<String>,
}

impl From<&Notify> for NotifyInfo {
    fn from(notify: &Notify) -> Self {
        Self { on: notify.on, targets: notify.targets.iter().map(Target::shown).collect() }
    }
}

/// How far a task says it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Progress {
    /// Of a hundred; null if it cannot tell.
    pub percent: Option<f64>,
    /// What it is at, in a few words.
    pub text: Option<String>,
    /// When it said so.
    pub at: Timestamp,
}

/// Whether a task at a terminal waits for somebody to type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum InputWait {
    /// Nobody in the foreground of its terminal waits for it, as far as can be seen.
    #[default]
    No,
    /// Somebody there waits for several things at once, and the terminal may be one of them.
    Maybe,
    /// Somebody there is blocked reading it.
    Yes,
}

/// One task. The object only ever grows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Task {
    /// Its id.
    pub id: TaskId,
    /// What sort of work.
    pub kind: Kind,
    /// Short name.
    pub name: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// Whose it is.
    pub owner: String,
    /// Free labels.
    pub labels: BTreeMap<String, String>,
    /// The command in one line.
    pub command: String,
    /// Program and arguments; invalid UTF-8 replaced.
    pub argv: Vec<String>,
    /// Working directory.
    pub cwd: Option<String>,
    /// Names of its variables, secrets included; values are never shown.
    pub env_names: Vec<String>,
    /// Which queue.
    pub group: String,
    /// Precedence in the queue.
    pub priority: i64,
    /// Where it is in its life.
    pub status: Status,
    /// Why it waits.
    pub queued_reason: Option<String>,
    /// Which try.
    pub attempt: u32,
    /// The main process, while and after it ran.
    pub pid: Option<u32>,
    /// Since when it printed nothing, once that is as long as `quiet_after_ms`.
    pub quiet_since: Option<Timestamp>,
    /// Whether it seems to wait for input: a process in the foreground of its terminal is blocked reading it.
    pub waiting_for_input: bool,
    /// How far it says it is.
    pub progress: Option<Progress>,
    /// When it was accepted.
    pub created_at: Timestamp,
    /// When its command was executed.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// How long it ran, by the monotonic clock.
    pub duration_ms: Option<u64>,
    /// How it ended; null until then.
    pub outcome: Option<Outcome>,
    /// Its output.
    pub output: OutputInfo,
    /// The agent behind it.
    pub agent: Option<AgentInfo>,
    /// Its answer; once it has ended, words that say why there is none where there is none.
    pub answer: Option<String>,
    /// Whether the answer is one.
    pub answer_state: Option<AnswerState>,
    /// Who is told.
    pub notify: NotifyInfo,
    /// The task it was submitted from.
    pub parent: Option<TaskId>,
    /// How many tasks it is nested in.
    pub depth: u32,
    /// Whether it waits for input, as far as the kernel tells: `maybe` where a program only polls its terminal.
    #[serde(default)]
    pub input_wait: InputWait,
    /// The key that makes a second submit the first one.
    #[serde(default)]
    pub key: Option<String>,
    /// Whether input can be sent.
    #[serde(default)]
    pub accepts_input: bool,
    /// Whether it has a terminal to attach to.
    #[serde(default)]
    pub pty: bool,
    /// Its time limit.
    #[serde(default)]
    pub timeout_ms: Option<u64>,
    /// For an external task: how long it may be silent before it is lost.
    #[serde(default)]
    pub lease_ms: Option<u64>,
    /// While it is live: when that will be, unless it is heard of before.
    #[serde(default)]
    pub lease_until: Option<Timestamp>,
    /// When it was last heard of.
    #[serde(default)]
    pub heard_at: Option<Timestamp>,
    /// What is watched for in its output.
    #[serde(default)]
    pub watch: Vec<String>,
    /// Of these, what matched too often and is no longer watched for.
    #[serde(default)]
    pub watch_off: Vec<String>,
    /// A silence this long is told.
    #[serde(default)]
    pub quiet_after_ms: Option<u64>,
    /// What is new in the output is told this often.
    #[serde(default)]
    pub heartbeat_ms: Option<u64>,
    /// Past retention: only status and outcome are left.
    #[serde(default)]
    pub forgotten: bool,
}

/// How much of each text or list of a task goes into a page of tasks, in bytes.
const SUMMARY_BYTES: usize = 4_096;
/// The same for an answer that has no room for more.
const OUTLINE_BYTES: usize = 100;

fn cut_some(text: &mut Option<String>, most: usize) {
    if let Some(text) = text {
        agent::cut(text, most);
    }
}

/// Cuts a list of texts to about so many bytes; `…` takes the place of what is left out.
fn cut_all(texts: &mut Vec<String>, most: usize) {
    let mut left = most;
    for place in 0..texts.len() {
        let Some(text) = texts.get_mut(place) else { return };
        if agent::cut(text, left) {
            texts.truncate(place + 1);
            texts.shrink_to_fit();
            return;
        }
        left = left.saturating_sub(text.len() + 1);
    }
}

impl Task {
    /// The task as a page of tasks shows it: what may be long is cut, and ends in `…` then. The task by its id has all of it.
    #[must_use]
    pub fn summary(mut self) -> Self {
        self.cut(SUMMARY_BYTES);
        self
    }

    /// The same without a long answer, as a wait for several tasks shows it.
    #[must_use]
    pub fn brief_summary(mut self) -> Self {
        cut_some(&mut self.answer, SUMMARY_BYTES);
        self.summary()
    }

    /// What happened to the task, and the beginnings of its texts. Labels are left out.
    #[must_use]
    pub fn outline(mut self) -> Self {
        self.cut(OUTLINE_BYTES);
        for text in [&mut self.answer, &mut self.description, &mut self.cwd] {
            cut_some(text, OUTLINE_BYTES);
        }
        for texts in [&mut self.notify.targets, &mut self.watch, &mut self.watch_off] {
            cut_all(texts, OUTLINE_BYTES);
        }
        self.labels.clear();
        self
    }

    fn cut(&mut self, most: usize) {
        agent::cut(&mut self.command, most.min(LONGEST_COMMAND));
        cut_all(&mut self.argv, most);
        cut_all(&mut self.env_names, most);
        if let Some(agent) = &mut self.agent {
            cut_some(&mut agent.prompt, most);
        }
    }

    /// How it ended, or where it is, without any text of others: `failed, exit 1`, `stopped`.
    #[must_use]
    pub fn brief(&self) -> String {
        let mut text = self.status.to_string();
        let Some(outcome) = &self.outcome else { return text };
        match (outcome.exit_code, outcome.signal) {
            (Some(0), _) if self.status == Status::Succeeded => {}
            (Some(code), _) => text.push_str(&format!(", exit {code}")),
            (None, Some(number)) => text.push_str(&format!(", {}", signal::name(number))),
            (None, None) => {}
        }
        text
    }

    /// The same, with who stopped it and why: `stopped, by me`, `lost: machine rebooted`.
    #[must_use]
    pub fn sentence(&self) -> String {
        let mut text = self.brief();
        let Some(outcome) = &self.outcome else { return text };
        if let Some(by) = &outcome.stopped_by {
            text.push_str(&format!(", by {}", sanitize::line(by)));
        }
        if let Some(reason) = &outcome.reason {
            text.push_str(&format!(": {}", sanitize::line(reason)));
        }
        text
    }
}
