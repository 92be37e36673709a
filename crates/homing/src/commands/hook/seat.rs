//! The agent's process: the one whose hook this is.

use std::process;

use homing_model::Agent;
use homing_shim::process::{Process, stat};

use crate::options::environment::Surroundings;

/// What stands between an agent and its hooks, and is no agent.
const SHELLS: &[&str] = &["sh", "bash", "dash", "zsh", "fish", "ksh", "ash", "busybox"];
/// A longer chain of ancestors is a race with their ends.
const ANCESTORS: usize = 1_000;

/// The agent, by its own word where it gives that, else the nearest ancestor that is no shell.
pub(super) fn agent_process(agent: Agent, surroundings: &Surroundings) -> Option<Process> {
    let said: Option<u32> = match agent {
        Agent::Claude => surroundings.text("CLAUDE_PID").and_then(|pid| pid.trim().parse().ok()),
        Agent::Codex | Agent::Gemini | Agent::Opencode => None,
    };
    match said {
        Some(pid) => ancestors().find(|process| process.pid == pid),
        None => program_above(),
    }
}

/// The nearest ancestor that is no shell.
pub(crate) fn program_above() -> Option<Process> {
    ancestors().find(|process| !SHELLS.contains(&process.name.as_str()))
}

fn ancestors() -> impl Iterator<Item = Process> {
    let above = |process: &Process| stat(process.parent);
    std::iter::successors(stat(process::id()), above)
        .take_while(|process| process.pid > 1)
        .take(ANCESTORS)
        .skip(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_ancestor_is_believed() {
        let parent = stat(process::id()).map(|me| me.parent.to_string()).unwrap_or_default();
        let said = |pid: &str| agent_process(Agent::Claude, &Surroundings::from([("CLAUDE_PID", pid)]));
        assert_eq!(said(&parent).map(|found| found.pid.to_string()), Some(parent));
        assert_eq!(said(&process::id().to_string()), None);
        assert_eq!(said("1"), None);
    }
}
