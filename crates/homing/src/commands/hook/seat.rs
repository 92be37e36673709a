//! The agent's process: the one whose hook this is.

use homing_model::Agent;
use homing_sys::process::{Process, own_ancestors};

use crate::options::environment::Surroundings;

/// The agent, by its own word where it gives that, else the nearest ancestor that is no shell.
pub(super) fn agent_process(agent: Agent, surroundings: &Surroundings) -> Option<Process> {
    let said: Option<u32> = match agent {
        Agent::Claude => surroundings.text("CLAUDE_PID").and_then(|pid| pid.trim().parse().ok()),
        Agent::Codex | Agent::Gemini | Agent::Opencode => None,
    };
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
        let said = |pid: &str| agent_process(Agent::Claude, &Surroundings::from([("CLAUDE_PID", pid)]));
        assert_eq!(said(&parent).map(|found| found.pid.to_string()), Some(parent));
        assert_eq!(said(&std::process::id().to_string()), None);
        assert_eq!(said("1"), None);
    }
}
