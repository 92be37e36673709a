//! What can be woken on this machine, for `homing doctor`: which agents are there, of which version, and by which rungs they are reached.

use homing_model::Session;

use super::Surroundings;
use super::program::{self, Version};
use crate::agent::Agent;
use crate::registry::REGISTRY;

/// One way to an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rung {
    /// What it is.
    pub name: &'static str,
    /// Whether it works with this version.
    pub works: bool,
}

/// The ways to an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ways {
    /// Best first.
    pub rungs: Vec<Rung>,
    /// What to do, where something is amiss.
    pub advice: Option<String>,
}

/// What is known of an agent here.
#[derive(Debug)]
pub struct Survey {
    /// Which.
    pub agent: &'static dyn Agent,
    /// The version that its program says.
    pub version: Option<String>,
    /// The ways to it.
    pub ways: Ways,
}

/// Looks at the agents on a path, and at the session that the caller is in.
#[must_use]
pub fn survey(surroundings: &Surroundings, own: Option<&Session>) -> Vec<Survey> {
    let own = |agent: &dyn Agent| own.filter(|own| own.agent.as_str() == agent.name());
    REGISTRY.iter().filter_map(|agent| look(*agent, surroundings, own(*agent))).collect()
}

fn look(agent: &'static dyn Agent, surroundings: &Surroundings, own: Option<&Session>) -> Option<Survey> {
    let found = program::find(agent.name(), &surroundings.path);
    if found.is_none() && own.is_none() {
        return None;
    }
    let said = found.and_then(|program| program::version(&program, &surroundings.path));
    let version = own.and_then(|own| Version::parse(own.version.as_deref()?)).or(said);
    Some(Survey { agent, version: version.map(|version| version.to_string()), ways: agent.ways(version) })
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
        let agents: Vec<_> = found.iter().map(|one| one.agent.name()).collect();
        assert_eq!(agents, ["claude", "codex", "opencode"]);
        assert!(
            found[2].ways.rungs.iter().all(|rung| rung.works) && found[2].ways.advice.is_none(),
            "no port is needed"
        );
        assert_eq!(found[0].version.as_deref(), Some("2.1.300"));
        assert_eq!(
            found[0].ways.rungs.iter().map(|rung| rung.works).collect::<Vec<_>>(),
            [false, true, true]
        );
        assert!(found[0].ways.advice.is_none());
        assert!(
            !found[1].ways.rungs[0].works
                && found[1].ways.advice.as_deref().is_some_and(|advice| advice.contains("0.166.0"))
        );
    }
}
