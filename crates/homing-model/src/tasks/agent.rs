//! Agents as tasks: which one, how its words are understood, and what it said of itself.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::TaskId;
use crate::sanitize;
use crate::session::AgentName;
use crate::text::OsText;

/// The longest prompt that is taken, in bytes.
pub const LONGEST_PROMPT: usize = 1 << 20;

/// So much of a prompt the ledger keeps, in bytes; the agent gets all of it.
pub const KEPT_PROMPT: usize = 64 * 1024;

/// The longest prompt that can be an argument, in bytes: the kernel takes 128 KiB in one.
pub const LONGEST_ARGUMENT: usize = 100 * 1024;

/// So much of a prompt stands for the command of an agent task, in characters.
const SHOWN_PROMPT: usize = 120;

/// How an agent's output is understood.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Driver {
    /// As the agent of this name prints it.
    Agent(AgentName),
    /// All that it prints on stdout is the answer.
    Stdout,
    /// JSON lines, with pointers (RFC 6901) to what matters.
    Lines {
        /// Where the answer is; the last line that has one counts.
        answer: String,
        /// Where an error is reported: anything but null, false and an empty text is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
        /// Where the id of its session is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session: Option<String>,
    },
}

/// Tokens that a model read and wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Tokens {
    /// Read, those of a cache included.
    pub input: u64,
    /// Of those, read from a cache.
    pub cached: u64,
    /// Written.
    pub output: u64,
}

/// What an agent said of itself so far.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Heard {
    /// Its session, by which it can be asked to go on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// Turns it took.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turns: Option<u64>,
    /// What that cost, in dollars, by its own account.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<Tokens>,
    /// What it is at, in a line; not kept after the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub doing: Option<String>,
}

/// The agent behind a task, as the ledger keeps it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SubAgent {
    /// Its name.
    pub name: String,
    /// How its output is understood.
    pub driver: Driver,
    /// Where it keeps its sessions, by the environment that the task was submitted with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<OsText>,
    /// The task whose session goes on in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continues: Option<TaskId>,
    /// What it said of itself; of a task that continues another, its session from the start.
    #[serde(default)]
    pub heard: Heard,
}

/// The agent behind a task, as every surface shows it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AgentInfo {
    /// Its name.
    pub name: String,
    /// Its session, once it said so.
    pub session_id: Option<String>,
    /// What it was asked; the beginning of it, if it is very long. Null of a forgotten task.
    pub prompt: Option<String>,
    /// Turns it took so far.
    pub turns: Option<u64>,
    /// What that cost, in dollars, by its own account.
    pub cost_usd: Option<f64>,
    /// Tokens, by its own account.
    #[serde(default)]
    pub tokens: Option<Tokens>,
    /// While it runs: what it is at, the last tool or the last message, in a line.
    #[serde(default)]
    pub doing: Option<String>,
    /// The task whose session it goes on with.
    #[serde(default, rename = "continue")]
    pub continues: Option<TaskId>,
}

/// Whether a text can be the name of an agent.
#[must_use]
pub fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= 64
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
}

/// What an agent task is called by, where a command has its command line.
#[must_use]
pub fn command_line(agent: &str, prompt: &str) -> String {
    struct Shortened<'a>(&'a str);
    impl fmt::Display for Shortened<'_> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            let text = sanitize::line(self.0.trim().lines().next().unwrap_or_default());
            match text.char_indices().nth(SHOWN_PROMPT) {
                None => f.write_str(&text),
                Some((cut, _)) => write!(f, "{}…", text.get(..cut).unwrap_or_default()),
            }
        }
    }
    format!("ask {agent}: {}", Shortened(prompt))
}

/// The beginning of a text, at most so many bytes of it, with no character cut.
#[must_use]
pub fn head(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    text.get(..end).unwrap_or_default()
}

/// Cuts a text that is longer than `most` bytes to that, and ends it in `…` then. Returns whether it
/// did. The memory of the rest is free then: a thousand cut texts may wait to be sent.
pub fn cut(text: &mut String, most: usize) -> bool {
    let whole = text.len() <= most;
    if !whole {
        text.truncate(head(text, most.saturating_sub('…'.len_utf8())).len());
        text.push('…');
        text.shrink_to_fit();
    }
    !whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_text_keeps_no_memory_of_the_rest() {
        let mut text = "x".repeat(250_000);
        assert!(cut(&mut text, 100) && text.capacity() < 1_000);
    }

    #[test]
    fn a_text_is_cut_where_a_character_ends() {
        assert_eq!((head("abc", 9), head("aä€", 2), head("aä€", 3), head("€", 2)), ("abc", "a", "aä", ""));
        for (text, most, expected) in
            [("abcde", 5, "abcde"), ("abcdef", 5, "ab…"), ("€€€", 8, "€…"), ("abcd", 1, "…")]
        {
            let mut text = text.to_owned();
            let was_cut = cut(&mut text, most);
            assert_eq!((text.as_str(), was_cut), (expected, text.ends_with('…')));
        }
    }

    #[test]
    fn a_command_line_is_the_first_line_of_the_prompt_and_short() {
        assert_eq!(command_line("claude", "\n Why?\nBecause."), "ask claude: Why?");
        let long = command_line("x", &"ä".repeat(500));
        assert_eq!(long, format!("ask x: {}…", "ä".repeat(SHOWN_PROMPT)));
        assert_eq!(command_line("x", ""), "ask x: ");
    }

    #[test]
    fn what_the_ledger_keeps_reads_back() {
        let drivers = AgentName::new("claude").map(Driver::Agent).into_iter();
        let lines = Driver::Lines { answer: "/result".into(), error: None, session: Some("/id".into()) };
        for driver in drivers.chain([Driver::Stdout, lines]) {
            let heard = Heard { session_id: Some("s".into()), cost_usd: Some(0.5), ..Heard::default() };
            let folder = Some("/home/ann/.claude".into());
            let agent = SubAgent { name: "claude".into(), driver, folder, continues: None, heard };
            let text = serde_json::to_string(&agent).unwrap();
            assert_eq!(serde_json::from_str::<SubAgent>(&text).unwrap(), agent, "{text}");
        }
    }

    #[test]
    fn names_are_plain() {
        assert!(is_name("claude") && is_name("my-agent_2.1"));
        for wrong in ["", "a b", "a/b", "ä", &"x".repeat(65)] {
            assert!(!is_name(wrong), "{wrong}");
        }
    }
}
