//! Everything that depends on an agent's vendor, behind one trait.
//!
//! [`Agent`] says how sessions are detected, how the agent is asked and its output parsed, how a turn is started from outside, which hooks
//! it calls, and what is written into its configuration. Each agent has one folder here and one line in the [registry]. No other crate
//! names an agent; they call through the registry, by the name that tasks, rows and requests carry.

mod agent;
mod claude;
mod codex;
pub mod environment;
mod gemini;
pub mod hooks;
pub mod install;
mod opencode;
pub mod parse;
mod qwen;
pub mod registry;
pub mod wake;

pub use agent::{Agent, Ask, BoxFuture, Identity, McpSession, SESSION};
