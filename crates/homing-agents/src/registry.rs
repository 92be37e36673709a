//! The agents that homing works with.

use std::ffi::OsString;
use std::path::PathBuf;

use homing_model::route::Address;
use homing_model::{AgentName, NoRoute, Pane, Route, Session, Target, sanitize, slip};

use crate::agent::{Agent, McpSession};
use crate::{claude, codex, gemini, opencode, qwen};

/// Every agent, in the order in which their sessions are detected.
pub static REGISTRY: &[&dyn Agent] =
    &[&claude::Claude, &codex::Codex, &opencode::Opencode, &gemini::Gemini, &qwen::Qwen];

/// The names of all agents.
pub fn names() -> impl Iterator<Item = &'static str> {
    REGISTRY.iter().map(|agent| agent.name())
}

/// The names of all agents in a sentence.
#[must_use]
pub fn listed() -> String {
    names().collect::<Vec<_>>().join(", ")
}

/// The agent of this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static dyn Agent> {
    REGISTRY.iter().copied().find(|agent| agent.name() == name)
}

/// The agent of this name; else why there is none, with the name that may have been meant.
///
/// # Errors
/// If no agent has this name.
pub fn known(name: &str) -> Result<&'static dyn Agent, String> {
    find(name).ok_or_else(|| {
        let meant = slip::meant(name, names());
        format!("`{}` is no agent with sessions{meant}: expected one of {}", sanitize::line(name), listed())
    })
}

/// The agent whose MCP client calls itself so, and where its calls name their session.
#[must_use]
pub fn mcp_client(name: &str) -> Option<(&'static dyn Agent, McpSession)> {
    let agent = REGISTRY.iter().copied().find(|agent| name.starts_with(agent.name()))?;
    Some((agent, agent.identity().mcp_session?))
}

/// A session of an agent, of which no more is known. `None` if this can be no id.
#[must_use]
pub fn session(agent: &dyn Agent, id: &str) -> Option<Session> {
    let new = Session::new(AgentName::new(agent.name())?, id)?;
    Some(Session { asleep: !agent.identity().wakes, ..new })
}

/// The session that an owner is, of which no more is known. `None` for a person.
#[must_use]
pub fn session_of(owner: &str) -> Option<Session> {
    let (agent, id) = owner.split_once(':')?;
    session(find(agent)?, id)
}

/// Whether an owner is a session of an agent, and no person.
#[must_use]
pub fn is_session(owner: &str) -> bool {
    owner.split_once(':').is_some_and(|(agent, _)| find(agent).is_some())
}

/// Where an agent keeps its state, by the variables of its environment.
pub fn state_folder(agent: &dyn Agent, variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    agent.ask().folder.iter().find_map(|(name, below)| {
        let folder = PathBuf::from(variable(name)?);
        let folder = if below.is_empty() { folder } else { folder.join(below) };
        folder.is_absolute().then_some(folder)
    })
}

/// The way that a target means, for a task with this session and this pane, if its agent can be woken that way. `None` for a target that
/// wakes nobody.
///
/// # Errors
/// Why there is none.
pub fn route(
    target: &Target,
    session: Option<&Session>,
    pane: Option<&Pane>,
) -> Result<Option<Route>, NoRoute> {
    match target {
        Target::Wake(Some(whom)) => {
            if let Address::Session { agent, url, .. } = whom.parse()? {
                let can = |agent: &dyn Agent| {
                    let identity = agent.identity();
                    identity.wakes && (url.is_none() || identity.has_server)
                };
                if !find(agent.as_str()).is_some_and(can) {
                    return Err(NoRoute::Unknown(sanitize::line(whom)));
                }
            }
        }
        Target::Wake(None) => {
            let asleep = session.and_then(|session| find(session.agent.as_str()));
            if let Some(agent) = asleep.filter(|agent| !agent.identity().wakes)
                && let Some(name) = AgentName::new(agent.name())
            {
                return Err(NoRoute::Asleep { agent: name, title: agent.title().to_owned() });
            }
        }
        Target::Inbox | Target::Webhook(_) | Target::Exec(_) | Target::Desktop => {}
    }
    Route::of(target, session, pane)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_nearly_an_agents_is_asked_about() {
        let told = |name: &str| known(name).unwrap_err();
        assert!(
            told("claud").contains("`claud` is no agent with sessions (did you mean `claude`?): expected")
        );
        assert!(!told("aider").contains("did you mean"));
    }

    #[test]
    fn an_owner_is_a_session_or_a_person() {
        assert_eq!(session_of("codex:9").map(|session| session.owner()).as_deref(), Some("codex:9"));
        assert!(is_session("gemini:7") && session_of("gemini:7").is_some_and(|session| session.asleep));
        for person in ["user", "ci:12", "claude:", "claude", "claude:a b"] {
            assert_eq!(session_of(person), None, "{person}");
        }
        assert!(!is_session("ci:12") && !is_session("claude"));
    }

    #[test]
    fn only_agents_that_can_be_woken_are_addresses() {
        let way = |target: &str, session: Option<&str>| {
            let session = session.and_then(session_of);
            let way = route(&target.parse().unwrap(), session.as_ref(), None);
            way.map(|way| way.map(|way| way.target().to_string())).map_err(|why| why.to_string())
        };
        for target in ["wake:claude:1", "wake:opencode:http://h:1#s", "wake:opencode:s"] {
            assert_eq!(way(target, None), Ok(Some(target.to_owned())));
        }
        for target in ["wake:gemini:1", "wake:nobody:1", "wake:codex:http://h:1#s"] {
            assert!(way(target, None).unwrap_err().contains("names nobody"), "{target}");
        }
        assert!(way("wake", Some("gemini:7")).unwrap_err().contains("Gemini CLI"));
        assert_eq!(way("wake", Some("codex:7")), Ok(Some("wake:codex:7".to_owned())));
    }
}
