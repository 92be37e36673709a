//! Which agent is asked where none is named: the configured one, else the one whose session asks, else the only one that is there.

use homing_agents::registry::is_session;
use homing_model::Session;

use super::config::Agents;
use super::program::is_there;
use crate::error::Error;
use crate::supervisor::launch::Values;

/// The name of the agent to ask, where this one asks, if one does, and with these variables.
pub(super) fn choose(agents: &Agents, asking: Option<&str>, values: &Values) -> Result<String, Error> {
    if let Some(name) = &agents.default {
        return Ok(name.clone());
    }
    if let Some(agent) = asking {
        return Ok(agent.to_owned());
    }
    match there(agents, values).as_slice() {
        [one] => Ok((*one).to_owned()),
        several => {
            let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
            Err(Error::NoAgent { there: owned(several), known: owned(&agents.names()) })
        }
    }
}

/// Those whose program is there.
pub(super) fn there<'a>(agents: &'a Agents, values: &Values) -> Vec<&'a str> {
    let there = |name: &&str| {
        let known = agents.known(name);
        known.and_then(|known| known.argv.first().map(|program| is_there(program, values))).unwrap_or(false)
    };
    agents.names().into_iter().filter(there).collect()
}

/// The agent whose session asks: the one that was found to, or the one that the task belongs to.
pub(super) fn asking<'a>(session: Option<&'a Session>, owner: &'a str) -> Option<&'a str> {
    let owner = owner.split_once(':').filter(|_| is_session(owner)).map(|(agent, _)| agent);
    session.map(|session| session.agent.as_str()).or(owner)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_first_that_applies() {
        let dir = tempfile::tempdir().unwrap();
        let values = Values::from([("PATH".to_owned(), dir.path().as_os_str().to_owned().into())]);
        let put = |name: &str, mode: u32| {
            let path = dir.path().join(name);
            std::fs::write(&path, "").unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        let mut agents = Agents::default();
        let choose = |agents: &Agents, owner: &str| {
            choose(agents, asking(None, owner), &values).map_err(|error| error.to_string())
        };
        assert!(choose(&agents, "user").unwrap_err().contains("none of claude, codex"));
        put("claude", 0o644);
        put("gemini", 0o755);
        assert_eq!(choose(&agents, "user").as_deref(), Ok("gemini"));
        assert_eq!(choose(&agents, "codex:1").as_deref(), Ok("codex"), "the one that asks");
        put("codex", 0o755);
        assert!(choose(&agents, "user").unwrap_err().ends_with("there are codex, gemini"));
        agents.default = Some("opencode".to_owned());
        assert_eq!(choose(&agents, "codex:1").as_deref(), Ok("opencode"));
    }
}
