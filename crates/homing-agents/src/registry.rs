//! The agents that homing works with.

use homing_model::Agent as AgentName;

use crate::agent::Agent;
use crate::{claude, codex, gemini, opencode};

/// Every agent, in the order in which their sessions are detected.
pub static REGISTRY: &[&dyn Agent] = &[&claude::Claude, &codex::Codex, &opencode::Opencode, &gemini::Gemini];

/// The agent of this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static dyn Agent> {
    REGISTRY.iter().copied().find(|agent| agent.name() == name)
}

/// The agent of this name, which is one of the registry's.
#[must_use]
pub fn of(name: AgentName) -> Option<&'static dyn Agent> {
    find(name.as_str())
}
