//! Tasks: what is asked for, states, transitions, outcomes.

pub mod agent;
pub mod answer;
pub mod counts;
pub mod environment;
pub mod id;
pub mod outcome;
pub mod retention;
pub mod signal;
pub mod spec;
pub mod status;
pub mod task;
pub mod terminal_size;
pub mod transition;
pub mod validate;
