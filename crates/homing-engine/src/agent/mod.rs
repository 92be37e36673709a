//! Agents as tasks: an agent's program is run like any command, and what it says is its result. Keeps P2 and P5.
//!
//! # Theory of operation
//!
//! A submit names an agent and asks it something. The [plan] makes a command line of that, and keeps with the task how the agent's output
//! is to be understood, so that a later configuration changes nothing about it. The prompt waits in the task's folder as the command's
//! input, and is gone from there once the command has begun.
//!
//! What the agent prints is kept like any output. While it runs one [listener] per task reads its stdout in bounded pieces, when the shim has
//! news of it, and hands the lines to a parser of `homing-agents`: a small state machine, without input or output of its own, that knows one agent's words.
//! What it made of them so far is shown with the task.
//!
//! The answer is a function of the output and of how the command ended, and of nothing else. The attendant asks for it just before it records
//! the end, and the ledger takes status, answer and notice in one transaction. Whoever dies before, the next daemon reads the same output and
//! comes to the same answer. Output that cannot be read is no answer, and never a reason not to record the end.
//!
//! An agent keeps files of its own for each session. They go when the last task of the session is forgotten: just before the task's folder,
//! which is what remains to be done ([sessions]).

mod choice;
mod conclusion;
pub(crate) mod config;
mod listener;
pub(crate) mod plan;
mod program;
pub(crate) mod prompt;
mod reading;
pub(crate) mod sessions;

pub(crate) use conclusion::conclude;
pub use config::{Agents, Entry};
pub(crate) use homing_agents::parse::Said;
pub(crate) use listener::{Handle, begin};
