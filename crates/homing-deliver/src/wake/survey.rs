//! What can be woken on this machine, for `homing doctor`: which agents are there, of which version, and by which rungs they are reached.

use homing_model::session::{Agent, Session};

use super::Surroundings;
use super::codex::QUEUES;
use super::program::{self, Version};

/// The first Claude Code with an inbox socket.
const CLAUDE_SOCKET: Version = Version(2, 1, 224);
/// The first Claude Code that asks for MCP tasks by itself.
const CLAUDE_TASKS: Version = Version(2, 1, 319);
/// The oldest opencode that was tried.
const OPENCODE: Version = Version(1, 18, 0);

/// One way to an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rung {
    /// What it is.
    pub name: &'static str,
    /// Whether it works with this version.
    pub works: bool,
}

/// What is known of an agent here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Survey {
    /// Which.
    pub agent: Agent,
    /// The version that its program says.
    pub version: Option<String>,
    /// The ways to it, best first.
    pub rungs: Vec<Rung>,
    /// What to do, where something is amiss.
    pub advice: Option<String>,
}

/// Looks at the agents on a path, and at the session that the caller is in.
#[must_use]
pub fn survey(surroundings: &Surroundings, own: Option<&Session>) -> Vec<Survey> {
    let agents = Agent::ALL.into_iter();
    agents.filter_map(|agent| look(agent, surroundings, own.filter(|own| own.agent == agent))).collect()
}

fn look(agent: Agent, surroundings: &Surroundings, own: Option<&Session>) -> Option<Survey> {
    let found = program::find(agent.as_str(), &surroundings.path);
    if found.is_none() && own.is_none() {
        return None;
    }
    let said = found.and_then(|program| program::version(&program, &surroundings.path));
    let version = own.and_then(|own| Version::parse(own.version.as_deref()?)).or(said);
    let at_least = |least: Version| version.is_some_and(|version| version >= least);
    let rung = |name, works| Rung { name, works };
    let (rungs, advice) = match agent {
        Agent::Claude => (
            vec![
                rung("MCP task", at_least(CLAUDE_TASKS)),
                rung("inbox socket", at_least(CLAUDE_SOCKET)),
                rung("one more turn", version.is_some()),
            ],
            (!at_least(CLAUDE_SOCKET)).then(|| format!("Update Claude Code to {CLAUDE_TASKS} or later; `homing install claude` adds its hooks.")),
        ),
        Agent::Codex => (
            vec![rung("queue", at_least(QUEUES)), rung("one more turn", version.is_some())],
            (!at_least(QUEUES)).then(|| format!("Update Codex to {QUEUES} or later: it has a queue for messages.")),
        ),
        Agent::Opencode => (
            vec![rung("plugin", at_least(OPENCODE)), rung("HTTP server", at_least(OPENCODE))],
            (!at_least(OPENCODE)).then(|| {
                format!("Update opencode to {OPENCODE} or later; `homing install opencode` adds the plugin, which needs no `--port`.")
            }),
        ),
        Agent::Gemini => (
            Vec::new(),
            Some("It takes no turn from outside: `homing install gemini` brings what waits at the end of its turns.".to_owned()),
        ),
    };
    Some(Survey { agent, version: version.map(|version| version.to_string()), rungs, advice })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_decides_which_rungs_work() {
        let folder = tempfile::tempdir().unwrap();
        let install = |name: &str, says: &str| {
            homing_testkit::write_program(&folder.path().join(name), &format!("#!/bin/sh\necho '{says}'\n"));
        };
        install("claude", "2.1.300 (Claude Code)");
        install("codex", "codex-cli 0.150.2");
        install("opencode", "1.18.33");
        let path = format!("{}:/bin", folder.path().display());
        let found = survey(&Surroundings { path, ..Surroundings::default() }, None);
        let agents: Vec<_> = found.iter().map(|one| one.agent).collect();
        assert_eq!(agents, [Agent::Claude, Agent::Codex, Agent::Opencode]);
        assert!(
            found[2].rungs.iter().all(|rung| rung.works) && found[2].advice.is_none(),
            "no port is needed"
        );
        assert_eq!(found[0].version.as_deref(), Some("2.1.300"));
        assert_eq!(found[0].rungs.iter().map(|rung| rung.works).collect::<Vec<_>>(), [false, true, true]);
        assert!(found[0].advice.is_none());
        assert!(
            !found[1].rungs[0].works
                && found[1].advice.as_deref().is_some_and(|advice| advice.contains("0.166.0"))
        );
    }
}
