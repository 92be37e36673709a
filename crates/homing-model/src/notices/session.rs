//! Sessions of agents: which one a process belongs to, and by what it can be reached.
//!
//! A session is found in the environment of whoever submits, once, and kept with the task: the route of its notices is fixed then. What is
//! kept are facts about the way (a process, a socket, a folder), never a token that opens it.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::agent;

/// The name of an agent whose sessions are known: the word before the colon of an owner. Which names there are is not known here; the
/// registry of agents says it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct AgentName(String);

impl AgentName {
    /// The name that a text is. `None` if it can be none.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        agent::is_name(text).then(|| Self(text.to_owned()))
    }

    /// As text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for AgentName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl From<AgentName> for String {
    fn from(name: AgentName) -> Self {
        name.0
    }
}

impl TryFrom<String> for AgentName {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        if agent::is_name(&text) { Ok(Self(text)) } else { Err("the name of an agent") }
    }
}

/// The longest id of a session, in bytes.
const LONGEST_ID: usize = 128;

/// Whether a text can be the id of a session: it becomes an argument, a part of a file's name and of an address.
#[must_use]
pub fn is_id(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    text.len() <= LONGEST_ID
        && text.bytes().all(plain)
        && text.bytes().next().is_some_and(|first| first.is_ascii_alphanumeric())
}

/// One conversation with an agent, and what is known of the way to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Session {
    /// Which agent.
    pub agent: AgentName,
    /// Its own id for the conversation.
    pub id: String,
    /// The agent's version, as digits and points.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The agent's process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// The socket on which it takes messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub socket: Option<String>,
    /// The folder of its configuration and state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// Its HTTP server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The agent's own program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// Where programs were looked for; the agent's own may be there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// No person sits before it: it was started for one prompt.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub headless: bool,
    /// No turn of it can be started from outside.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub asleep: bool,
}

impl Session {
    /// One of which nothing more is known. `None` if this can be no id.
    #[must_use]
    pub fn new(agent: AgentName, id: &str) -> Option<Self> {
        is_id(id).then(|| Self {
            agent,
            id: id.to_owned(),
            version: None,
            pid: None,
            socket: None,
            folder: None,
            url: None,
            program: None,
            path: None,
            headless: false,
            asleep: false,
        })
    }

    /// Whom its tasks belong to: `AGENT:ID`.
    #[must_use]
    pub fn owner(&self) -> String {
        format!("{}:{}", self.agent, self.id)
    }

    /// The session that a text names as an owner does, whether or not there is such an agent.
    #[must_use]
    pub fn named(owner: &str) -> Option<Self> {
        let (agent, id) = owner.split_once(':')?;
        Self::new(AgentName::new(agent)?, id)
    }
}

/// A pane of tmux: a way to whatever runs in it, and nobody's session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pane {
    /// The socket of its server.
    pub server: String,
    /// `%3`.
    pub id: String,
    /// What ran in its foreground when the task was submitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<Foreground>,
}

/// The program in the foreground of a terminal: a process, by what no other can be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Foreground {
    /// The leader of the group in the foreground.
    pub pid: u32,
    /// When it was started, in the kernel's ticks.
    pub start: u64,
    /// Its name.
    pub name: String,
}

/// Whether a text is the id of a pane.
#[must_use]
pub fn is_pane(text: &str) -> bool {
    text.strip_prefix('%').is_some_and(|number| {
        (1..=9).contains(&number.len()) && number.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// The pane that an environment belongs to.
pub fn pane(lookup: impl Fn(&str) -> Option<String>) -> Option<Pane> {
    let id = lookup("TMUX_PANE").filter(|id| is_pane(id))?;
    Some(Pane { server: tmux_server(lookup)?, id, program: None })
}

/// The socket of the tmux server that an environment belongs to.
pub fn tmux_server(lookup: impl Fn(&str) -> Option<String>) -> Option<String> {
    // The socket, the server's process and a number; only the last two have no commas in them.
    let tmux = lookup("TMUX")?;
    tmux.rsplitn(3, ',').nth(2).filter(|server| server.starts_with('/')).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env<'a>(pairs: &'a [(&str, &str)]) -> impl Fn(&str) -> Option<String> + 'a {
        |name| pairs.iter().find(|(given, _)| *given == name).map(|(_, value)| (*value).to_owned())
    }

    #[test]
    fn an_owner_names_a_session_by_an_agent_and_an_id() {
        let named = |owner: &str| Session::named(owner).map(|session| session.owner());
        assert_eq!(named("codex:9").as_deref(), Some("codex:9"));
        for person in ["user", "claude:", "claude", "claude:a b", "a b:1"] {
            assert_eq!(named(person), None, "{person}");
        }
    }

    #[test]
    fn a_pane_is_a_server_and_a_number() {
        let found = pane(env(&[("TMUX", "/tmp/a,b/default,123,0"), ("TMUX_PANE", "%12")])).unwrap();
        assert_eq!((found.server.as_str(), found.id.as_str()), ("/tmp/a,b/default", "%12"));
        for (tmux, id) in
            [("/tmp/x,1,0", "12"), ("/tmp/x,1,0", "%"), ("x,1,0", "%1"), ("", "%1"), ("/tmp/x", "%1")]
        {
            assert_eq!(pane(env(&[("TMUX", tmux), ("TMUX_PANE", id)])), None, "{tmux} {id}");
        }
    }
}
