//! The caller's environment: which session it belongs to, who the owner of a task is, and which variables the task is given.
//!
//! A task runs with its caller's environment minus a deny list: agent session tokens, which would let a task speak as the
//! agent that started it, and homing's own names, which are set afresh for every attempt.

use std::collections::BTreeMap;

use homing_model::environment::DEFAULT_OWNER;
use homing_model::{OsText, Session};

use crate::registry::{self, REGISTRY};

/// Names of no agent in particular that say what a process belongs to.
const AGENT: &str = "AI_AGENT";
/// Every name of ours begins so.
const OWN: &str = "HOMING_";

/// Reads variables: nothing for one that is not set or empty.
#[derive(Clone, Copy)]
pub struct Variables<'a>(&'a dyn Fn(&str) -> Option<String>);

impl<'a> Variables<'a> {
    /// By a look-up, which may answer an empty text.
    #[must_use]
    pub fn new(lookup: &'a dyn Fn(&str) -> Option<String>) -> Self {
        Self(lookup)
    }

    /// The value of a variable, if it is set and not empty.
    #[must_use]
    pub fn get(self, name: &str) -> Option<String> {
        (self.0)(name).filter(|value| !value.trim().is_empty())
    }

    /// The value of a variable that is an absolute path.
    #[must_use]
    pub fn path(self, name: &str) -> Option<String> {
        self.get(name).filter(|path| path.starts_with('/'))
    }

    /// A folder in the user's own.
    #[must_use]
    pub fn at_home(self, name: &str) -> Option<String> {
        self.get("HOME").map(|home| format!("{}/{name}", home.trim_end_matches('/')))
    }
}

/// The session that an environment belongs to.
pub fn detect(lookup: impl Fn(&str) -> Option<String>) -> Option<Session> {
    let variables = Variables::new(&lookup);
    REGISTRY.iter().find_map(|agent| {
        let id = variables.get(agent.identity().session_variable)?;
        let found = registry::session(*agent, &id)?;
        Some(agent.detect(Session { path: variables.get("PATH"), ..found }, variables))
    })
}

/// Whether a variable is kept from tasks.
#[must_use]
pub fn is_denied(name: &str) -> bool {
    let of_agent = |agent: &&dyn crate::Agent| {
        let identity = agent.identity();
        identity.session_variable == name || identity.private_variables.contains(&name)
    };
    name.starts_with(OWN) || name == AGENT || REGISTRY.iter().any(of_agent)
}

/// The variables a task may be given, out of its caller's.
pub fn capture(variables: impl IntoIterator<Item = (String, OsText)>) -> BTreeMap<String, OsText> {
    let may = |(name, _): &(String, OsText)| !is_denied(name) && !name.is_empty() && !name.contains('=');
    let mut kept = BTreeMap::new();
    // One by one: to collect them would sort them first, and they mostly are.
    kept.extend(variables.into_iter().filter(may));
    kept
}

/// The owner that `HOMING_OWNER` names. Inside a task homing sets it to the task's owner, and an agent that was started there speaks for its
/// own session instead: no variables of a session come in from outside.
pub fn named_owner(lookup: impl Fn(&str) -> Option<String>) -> Option<String> {
    let named = lookup("HOMING_OWNER").filter(|owner| !owner.trim().is_empty())?;
    (lookup("HOMING_TASK_ID").is_none() || detect(lookup).is_none()).then_some(named)
}

/// The owner that an environment names: `HOMING_OWNER`, else the agent session, else `user`.
pub fn owner(lookup: impl Fn(&str) -> Option<String>) -> String {
    named_owner(&lookup)
        .or_else(|| detect(lookup).map(|session| session.owner()))
        .unwrap_or_else(|| DEFAULT_OWNER.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env<'a>(pairs: &'a [(&str, &str)]) -> impl Fn(&str) -> Option<String> + 'a {
        |name| pairs.iter().find(|(given, _)| *given == name).map(|(_, value)| (*value).to_owned())
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
    fn agent_tokens_and_our_own_names_stay_behind() {
        let given = [("PATH", "/bin"), ("CLAUDE_CODE_MESSAGING_TOKEN", "x"), ("HOMING_TASK_ID", "t-1")];
        let kept = capture(given.map(|(name, value)| (name.to_owned(), OsText::from(value))));
        assert_eq!(kept.keys().collect::<Vec<_>>(), ["PATH"]);
    }

    #[test]
    fn the_first_owner_that_applies() {
        let env = |pairs: &'static [(&'static str, &'static str)]| {
            move |name: &str| pairs.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned())
        };
        assert_eq!(owner(env(&[])), "user");
        assert_eq!(owner(env(&[("CODEX_THREAD_ID", "9")])), "codex:9");
        assert_eq!(owner(env(&[("CODEX_THREAD_ID", "9"), ("HOMING_OWNER", "me")])), "me");
        assert_eq!(owner(env(&[("CODEX_THREAD_ID", "9"), ("HOMING_OWNER", " ")])), "codex:9");
        assert_eq!(owner(env(&[("HOMING_TASK_ID", "t-1"), ("HOMING_OWNER", "codex:1")])), "codex:1");
        let nested = env(&[("CODEX_THREAD_ID", "9"), ("HOMING_TASK_ID", "t-1"), ("HOMING_OWNER", "codex:1")]);
        assert_eq!(owner(nested), "codex:9", "an agent inside a task has a session of its own");
    }
}
