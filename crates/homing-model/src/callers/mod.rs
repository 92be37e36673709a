//! Callers inside tasks: what they may do, and how much of an id they must give.

pub mod nesting;
pub mod unsure;
