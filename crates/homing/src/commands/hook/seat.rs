//! The agent's process: the one whose hook this is.

use homing_agents::Agent;
use homing_sys::process::{Process, own_ancestors};

use crate::options::environment::Surroundings;

/// The agent, by its own word where it gives that, else the nearest ancestor that is no shell.
pub(super) fn agent_process(agent: &dyn Agent, surroundings: &Surroundings) -> Option<Process> {
    let variable = agent.hooks().process;
    let said = variable.and_then(|name| surroundings.text(name)?.trim().parse::<u32>().ok());
    match said {
        Some(pid) => own_ancestors().find(|process| process.pid == pid),
        None => program_above(),
    }
}

/// The nearest ancestor that is no shell.
pub(crate) fn program_above() -> Option<Process> {
    own_ancestors().find(|process| !process.is_shell())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_ancestor_is_believed() {
        let parent = std::os::unix::process::parent_id().to_string();
        let claude = homing_agents::registry::find("claude").unwrap();
        let said = |pid: &str| agent_process(claude, &Surroundings::from([("CLAUDE_PID", pid)]));
        assert_eq!(said(&parent).map(|found| found.pid.to_string()), Some(parent));
        assert_eq!(said(&std::process::id().to_string()), None);
        assert_eq!(said("1"), None);
    }
}
