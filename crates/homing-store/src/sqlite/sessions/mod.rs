//! Sessions of agents.

pub(crate) mod bindings;
pub(crate) mod resumable;
