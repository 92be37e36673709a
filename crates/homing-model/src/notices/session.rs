//! Sessions of agents: which one a process belongs to, and by what it can be reached.
//!
//! A session is found in the environment of whoever submits, once, and kept with the task: the route of its notices is fixed then. What is
//! kept are facts about the way (a process, a socket, a folder), never a token that opens it.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::slip;

/// An agent whose sessions are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Agent {
    /// Claude Code.
    Claude,
    /// Codex.
    Codex,
    /// opencode.
    Opencode,
    /// Gemini CLI.
    Gemini,
}

impl Agent {
    /// Every one, in the order in which their sessions are looked for.
    pub const ALL: [Self; 4] = [Self::Claude, Self::Codex, Self::Opencode, Self::Gemini];

    /// The word before the colon of an owner, and the program's name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Opencode => "opencode",
            Self::Gemini => "gemini",
        }
    }

    /// As people call it.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Claude => "Claude Code",
            Self::Codex => "Codex",
            Self::Opencode => "opencode",
            Self::Gemini => "Gemini CLI",
        }
    }

    /// The variable that names its session.
    #[must_use]
    pub const fn variable(self) -> &'static str {
        match self {
            Self::Claude => "CLAUDE_CODE_SESSION_ID",
            Self::Codex => "CODEX_THREAD_ID",
            Self::Opencode => "OPENCODE_SESSION_ID",
            Self::Gemini => "GEMINI_SESSION_ID",
        }
    }
}

impl fmt::Display for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Why a text is no agent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no agent with sessions{meant}: expected `claude`, `codex`, `opencode` or `gemini`",
    meant = slip::meant(.0, Agent::ALL.map(Agent::as_str))
)]
pub struct UnknownAgent(String);

impl FromStr for Agent {
    type Err = UnknownAgent;

    fn from_str(text: &str) -> Result<Self, UnknownAgent> {
        let found = Self::ALL.into_iter().find(|agent| agent.as_str() == text);
        found.ok_or_else(|| UnknownAgent(crate::sanitize::line(text)))
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
    pub agent: Agent,
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
}

impl Session {
    /// One of which nothing more is known. `None` if this can be no id.
    #[must_use]
    pub fn new(agent: Agent, id: &str) -> Option<Self> {
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
        })
    }

    /// Whom its tasks belong to: `claude:ID`.
    #[must_use]
    pub fn owner(&self) -> String {
        format!("{}:{}", self.agent, self.id)
    }

    /// The session that an owner is, of which nothing more is known. `None` for a person.
    #[must_use]
    pub fn of_owner(owner: &str) -> Option<Self> {
        let (agent, id) = owner.split_once(':')?;
        Self::new(agent.parse().ok()?, id)
    }
}

/// The session that an environment belongs to. `lookup` answers nothing for a variable that is not set or empty.
pub fn detect(lookup: impl Fn(&str) -> Option<String>) -> Option<Session> {
    let given = |name: &str| lookup(name).filter(|value| !value.trim().is_empty());
    let found = Agent::ALL.into_iter().find_map(|agent| Session::new(agent, &given(agent.variable())?))?;
    let at_home = |name: &str| given("HOME").map(|home| format!("{}/{name}", home.trim_end_matches('/')));
    let path = given("PATH");
    Some(match found.agent {
        Agent::Claude => Session {
            version: given("AI_AGENT").as_deref().and_then(claude_version),
            pid: given("CLAUDE_PID").and_then(|pid| pid.parse().ok()).filter(|pid| *pid > 1),
            socket: given("CLAUDE_CODE_MESSAGING_SOCKET").filter(|path| path.starts_with('/')),
            folder: given("CLAUDE_CONFIG_DIR").or_else(|| at_home(".claude")),
            program: given("CLAUDE_CODE_EXECPATH").filter(|program| program.starts_with('/')),
            headless: given("CLAUDE_CODE_SESSION_ATTENDED").is_some_and(|attended| attended == "0")
                || given("CLAUDE_CODE_ENTRYPOINT").is_some_and(|entry| entry.starts_with("sdk")),
            path,
            ..found
        },
        Agent::Codex => Session {
            version: given("CODEX_VERSION"),
            folder: given("CODEX_HOME").or_else(|| at_home(".codex")),
            path,
            ..found
        },
        Agent::Opencode => {
            let url = given("OPENCODE_SERVER_URL").map(|url| url.trim_end_matches('/').to_owned());
            Session { url, path, ..found }
        }
        Agent::Gemini => Session { path, ..found },
    })
}

/// `claude-code_2-1-325_agent` is version 2.1.325.
fn claude_version(text: &str) -> Option<String> {
    let digits = text.strip_prefix("claude-code_")?.split('_').next()?;
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    plain.then(|| digits.replace('-', "."))
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
    fn a_name_that_is_nearly_an_agents_is_asked_about() {
        let told = |name: &str| name.parse::<Agent>().unwrap_err().to_string();
        assert!(
            told("claud").contains("`claud` is no agent with sessions (did you mean `claude`?): expected")
        );
        assert!(!told("aider").contains("did you mean"));
    }

    #[test]
    fn a_session_of_claude_is_found_with_all_that_leads_to_it_but_no_token() {
        let session = detect(env(&[
            ("CLAUDE_CODE_SESSION_ID", "0b6e-42"),
            ("CLAUDE_PID", "77"),
            ("CLAUDE_CODE_MESSAGING_SOCKET", "/tmp/cc/77.sock"),
            ("CLAUDE_CODE_MESSAGING_TOKEN", "hunter2"),
            ("CLAUDE_CODE_ENTRYPOINT", "cli"),
            ("AI_AGENT", "claude-code_2-1-325_agent"),
            ("HOME", "/home/ann"),
            ("PATH", "/bin"),
        ]))
        .unwrap();
        assert_eq!(session.owner(), "claude:0b6e-42");
        assert_eq!((session.version.as_deref(), session.pid), (Some("2.1.325"), Some(77)));
        assert_eq!(session.socket.as_deref(), Some("/tmp/cc/77.sock"));
        assert_eq!(session.folder.as_deref(), Some("/home/ann/.claude"));
        assert!(!session.headless);
        let kept = serde_json::to_string(&session).unwrap();
        assert!(!kept.contains("hunter2"), "{kept}");
        assert_eq!(serde_json::from_str::<Session>(&kept).unwrap(), session);
    }

    #[test]
    fn the_first_session_that_applies_and_none_that_could_not_be_one() {
        let owner = |pairs: &[(&str, &str)]| detect(env(pairs)).map(|session| session.owner());
        assert_eq!(owner(&[]), None);
        assert_eq!(owner(&[("TMUX", "/tmp/s,1,0"), ("TMUX_PANE", "%1")]), None);
        assert_eq!(
            owner(&[("CODEX_THREAD_ID", "t"), ("GEMINI_SESSION_ID", "g")]).as_deref(),
            Some("codex:t")
        );
        assert_eq!(
            owner(&[("CLAUDE_CODE_SESSION_ID", " "), ("GEMINI_SESSION_ID", "g")]).as_deref(),
            Some("gemini:g")
        );
        assert_eq!(owner(&[("OPENCODE_SESSION_ID", "ses_1")]).as_deref(), Some("opencode:ses_1"));
        for bad in ["--resume", "../x", "a b", "a\n", "a/b", "", &"x".repeat(129)] {
            assert_eq!(owner(&[("CLAUDE_CODE_SESSION_ID", bad)]), None, "{bad:?}");
        }
        let opencode =
            detect(env(&[("OPENCODE_SESSION_ID", "s"), ("OPENCODE_SERVER_URL", "http://127.0.0.1:9/")]));
        assert_eq!(opencode.and_then(|session| session.url).as_deref(), Some("http://127.0.0.1:9"));
        let codex = detect(env(&[("CODEX_THREAD_ID", "t"), ("CODEX_HOME", "/c")])).unwrap();
        assert_eq!(codex.folder.as_deref(), Some("/c"));
    }

    #[test]
    fn an_owner_is_a_session_or_a_person() {
        assert_eq!(Session::of_owner("codex:9").map(|session| session.owner()).as_deref(), Some("codex:9"));
        for person in ["user", "ci:12", "claude:", "claude", "claude:a b"] {
            assert_eq!(Session::of_owner(person), None, "{person}");
        }
    }

    #[test]
    fn versions_are_read_and_what_is_none_is_not() {
        assert_eq!(claude_version("claude-code_2-1-325_agent").as_deref(), Some("2.1.325"));
        for text in ["claude-code", "claude-code__agent", "claude-code_x_agent", "other_1-2_agent"] {
            assert_eq!(claude_version(text), None, "{text}");
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
