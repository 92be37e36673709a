//! The inbox of each owner, and the sessions of agents that read it.

pub(crate) mod entries;
pub(crate) mod reservations;
pub(crate) mod session;
pub(crate) mod waiters;
