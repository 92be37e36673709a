//! The caller's environment: which variables a task is given, and who its owner is.
//!
//! A task runs with its caller's environment minus a deny list: agent session tokens, which would let a task speak as the
//! agent that started it, and homing's own names, which are set afresh for every attempt.

use std::collections::BTreeMap;

use crate::session::{self, Agent};
use crate::text::OsText;

/// Names that say which agent session a process belongs to, or that let it act as one.
const AGENT: &[&str] = &[
    "AI_AGENT",
    "CLAUDECODE",
    "CLAUDE_CODE_CHILD_SESSION",
    "CLAUDE_CODE_ENTRYPOINT",
    "CLAUDE_CODE_MESSAGING_SOCKET",
    "CLAUDE_CODE_MESSAGING_TOKEN",
    "CLAUDE_CODE_SESSION_ATTENDED",
    "CLAUDE_CODE_SESSION_ID",
    "CLAUDE_CODE_SSE_PORT",
    "CLAUDE_PID",
    "CODEX_SESSION_ID",
    "CODEX_THREAD_ID",
    "CODEX_TOOL_CALL_ID",
    "CODEX_VERSION",
    "GEMINI_SESSION_ID",
    "OPENCODE_SERVER_PASSWORD",
    "OPENCODE_SERVER_URL",
    "OPENCODE_SESSION_ID",
];

/// Every name of ours begins so.
const OWN: &str = "HOMING_";

/// Whether a variable is kept from tasks.
#[must_use]
pub fn is_denied(name: &str) -> bool {
    name.starts_with(OWN) || AGENT.contains(&name)
}

/// The variables a task may be given, out of its caller's.
pub fn capture(variables: impl IntoIterator<Item = (String, OsText)>) -> BTreeMap<String, OsText> {
    let may = |(name, _): &(String, OsText)| !is_denied(name) && !name.is_empty() && !name.contains('=');
    let mut kept = BTreeMap::new();
    // One by one: to collect them would sort them first, and they mostly are.
    kept.extend(variables.into_iter().filter(may));
    kept
}

/// Whether an owner is a session of an agent, and no person.
#[must_use]
pub fn is_agent_session(owner: &str) -> bool {
    owner.split_once(':').is_some_and(|(agent, _)| agent.parse::<Agent>().is_ok())
}

/// Whose a task is that nobody claims.
pub const DEFAULT_OWNER: &str = "user";

/// The owner that `HOMING_OWNER` names. Inside a task homing sets it to the task's owner, and an agent that was started there speaks for its
/// own session instead: no variables of a session come in from outside.
pub fn named_owner(lookup: impl Fn(&str) -> Option<String>) -> Option<String> {
    let named = lookup("HOMING_OWNER").filter(|owner| !owner.trim().is_empty())?;
    (lookup("HOMING_TASK_ID").is_none() || session::detect(lookup).is_none()).then_some(named)
}

/// The owner that an environment names: `HOMING_OWNER`, else the agent session, else `user`.
pub fn owner(lookup: impl Fn(&str) -> Option<String>) -> String {
    named_owner(&lookup)
        .or_else(|| session::detect(lookup).map(|session| session.owner()))
        .unwrap_or_else(|| DEFAULT_OWNER.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

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
