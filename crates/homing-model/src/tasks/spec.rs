//! What a caller asks for: the body of a submit, with its checks.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};

use crate::agent;
use crate::notify::Notify;
use crate::reservation::Reserve;
use crate::session::{Pane, Session};
use crate::task::Kind;
use crate::terminal_size::TerminalSize;
use crate::text::OsText;
use crate::watch;

/// How much of a command line goes into lists, events and notices, in bytes.
pub const LONGEST_COMMAND: usize = 4_096;

/// Children that outlive the main process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnExit {
    /// They are named in the outcome and left alone; their output is still kept.
    #[default]
    Leave,
    /// They are ended with it.
    Kill,
}

/// A second submit with the same key and owner while the first is live.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnDuplicate {
    /// It is the first one.
    #[default]
    Join,
    /// It is an error.
    Refuse,
}

/// Where the command's input comes from.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Stdin {
    /// `/dev/null`.
    #[default]
    None,
    /// What `input` sends, until it sends the end.
    Pipe,
    /// This file.
    File(OsText),
}

/// A value that is never written to the home.
#[derive(Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Secret {
    /// Held in memory until the task has started.
    Value(OsText),
    /// Read from this file at every start.
    File(OsText),
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Value(_) => f.write_str("Value(…)"),
            Self::File(path) => write!(f, "File({path:?})"),
        }
    }
}

/// By hand, since what is read wrongly here must not be repeated in the refusal.
impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OneField;
        impl<'de> Visitor<'de> for OneField {
            type Value = Secret;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a secret: {\"value\": …} or {\"file\": …}")
            }

            fn visit_str<E: de::Error>(self, _: &str) -> Result<Secret, E> {
                Err(E::custom("a secret is {\"value\": …} or {\"file\": …}, and no plain text"))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Secret, A::Error> {
                let malformed =
                    || de::Error::custom("a secret is {\"value\": …} or {\"file\": …}, with a text each");
                let read = match map.next_key::<String>()?.as_deref() {
                    Some("value") => map.next_value().map(Secret::Value),
                    Some("file") => map.next_value().map(Secret::File),
                    Some(_) | None => return Err(malformed()),
                };
                let secret = read.map_err(|_| malformed())?;
                match map.next_key::<de::IgnoredAny>()? {
                    None => Ok(secret),
                    Some(_) => Err(malformed()),
                }
            }
        }
        deserializer.deserialize_any(OneField)
    }
}

/// One resource limit of the caller, by its number in the kernel's table; absent means unlimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rlimit {
    /// `RLIMIT_*` by number.
    pub resource: u32,
    /// The soft limit.
    #[serde(default)]
    pub soft: Option<u64>,
    /// The hard limit.
    #[serde(default)]
    pub hard: Option<u64>,
}

/// A task to be. Of a command, exactly one of `argv` and `shell` is given; of an agent `prompt`; of an external task none of them, and at most
/// one of `lease_ms` and `pid`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Spec {
    /// What sort of work: `command`, `agent` for a sub-agent, or `external` for one that somebody else runs.
    #[serde(skip_serializing_if = "is_default")]
    pub kind: Kind,
    /// Of an agent task: which agent, by name; the one that this homing would choose if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Of an agent task: what it is asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// Of an agent task: an earlier one of the same owner, whose session goes on.
    #[serde(rename = "continue", skip_serializing_if = "Option::is_none")]
    pub continues: Option<String>,
    /// Of an external task: it is lost when nothing was heard of it for so long; 24 hours if neither this nor `pid` is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease_ms: Option<u64>,
    /// Of an external task: it ends when this process does, if nobody completed it before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// Program and arguments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub argv: Vec<OsText>,
    /// A line for `bash`, else `sh`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shell: Option<OsText>,
    /// A short name; may stand for the id while it is unique among live tasks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What it is for, in a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Who asked, and whom the result goes to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// Free labels to filter by.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Working directory; the user's home folder if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<OsText>,
    /// The whole environment; a small default one if absent, never the daemon's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub env: Option<BTreeMap<String, OsText>>,
    /// Variables that are set for this task, over those of `env`. They are kept with it for `rerun`, unless a value is a secret: kept is `null` then.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env_set: BTreeMap<String, Option<OsText>>,
    /// Environment values that are never written down.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub secrets: BTreeMap<String, Secret>,
    /// Input.
    #[serde(skip_serializing_if = "is_default")]
    pub stdin: Stdin,
    /// One terminal instead of two pipes.
    #[serde(skip_serializing_if = "is_default")]
    pub pty: bool,
    /// How large that terminal is at first; 80 columns and 24 rows if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pty_size: Option<TerminalSize>,
    /// Ends the task this long after its start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Between the polite signal and the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grace_ms: Option<u64>,
    /// Children that outlive the main process.
    #[serde(skip_serializing_if = "is_default")]
    pub on_exit: OnExit,
    /// How much output is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output_bytes: Option<u64>,
    /// File mode mask.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub umask: Option<u32>,
    /// Resource limits.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rlimits: Vec<Rlimit>,
    /// Niceness.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nice: Option<i32>,
    /// Unique per owner while live: the second submit is the first one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// What a second submit with the key gets.
    #[serde(skip_serializing_if = "is_default")]
    pub on_duplicate: OnDuplicate,
    /// Who is told of the end; the owner's inbox, always, if a submit says nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notify: Option<Notify>,
    /// Whether what it runs may name targets for tasks of its own.
    #[serde(skip_serializing_if = "is_default")]
    pub allow_nested_notify: bool,
    /// Whether it is an agent's session: what it runs may use that session's inbox, and have it woken.
    #[serde(skip_serializing_if = "is_default")]
    pub agent_session: bool,
    /// Regular expressions: a line of output that matches one is told. A single one may be given as a string.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "watch::one_or_many")]
    pub watch: Vec<String>,
    /// A silence this long is told; the task goes on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quiet_after_ms: Option<u64>,
    /// What is new in the output is told this often.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heartbeat_ms: Option<u64>,
    /// The end is reserved for the caller, which waits or polls for it: no hook, waiter or wake gets it in between.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reserve: Option<Reserve>,
    /// The agent's session that asks: `wake` goes there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<Session>,
    /// The pane of tmux that `wake:tmux:…` names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pane: Option<Pane>,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl Spec {
    /// Whether something of it is told while it runs.
    #[must_use]
    pub fn is_watched(&self) -> bool {
        !self.watch.is_empty() || self.quiet_after_ms.is_some() || self.heartbeat_ms.is_some()
    }

    /// The command in one line, for people; one longer than [`LONGEST_COMMAND`] is cut there and ends in `…`.
    #[must_use]
    pub fn command_line(&self) -> String {
        if self.kind == Kind::Agent {
            let agent = self.agent.as_deref().unwrap_or("an agent");
            return agent::command_line(agent, self.prompt.as_deref().unwrap_or_default());
        }
        let mut line = match &self.shell {
            Some(line) => line.lossy().into_owned(),
            None => crate::shell::join(self.argv.iter().map(OsText::lossy)),
        };
        agent::cut(&mut line, LONGEST_COMMAND);
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_fields_are_refused_by_name() {
        let error = serde_json::from_str::<Spec>(r#"{"argv":["true"],"nonsense":1}"#).unwrap_err();
        assert!(error.to_string().contains("nonsense"), "{error}");
    }

    #[test]
    fn a_long_command_is_cut_where_it_is_shown_in_one_line() {
        let spec = Spec {
            argv: vec!["echo".into(), "ä".repeat(LONGEST_COMMAND).as_str().into()],
            ..Spec::default()
        };
        let line = spec.command_line();
        assert!(line.ends_with("ä…") && line.len() <= LONGEST_COMMAND, "{}", line.len());
    }

    #[test]
    fn secrets_never_show_in_debug() {
        let secret = Secret::Value("hunter2".into());
        assert!(!format!("{secret:?}").contains("hunter2"));
    }

    #[test]
    fn a_secret_that_is_given_wrongly_is_not_repeated() {
        let read = |text: &str| serde_json::from_str::<Secret>(text);
        assert_eq!(read(r#"{"value":"hunter2"}"#).unwrap(), Secret::Value("hunter2".into()));
        assert_eq!(read(r#"{"file":"/x"}"#).unwrap(), Secret::File("/x".into()));
        for text in [
            r#""hunter2""#,
            r#"{"hunter2":1}"#,
            r#"{"value":["hunter2"]}"#,
            r#"{"value":{"hunter2":"hunter2"}}"#,
            r#"{"value":"x","hunter2":1}"#,
            r#"["hunter2"]"#,
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(!error.contains("hunter2") && error.contains("secret"), "{error}");
        }
    }
}
