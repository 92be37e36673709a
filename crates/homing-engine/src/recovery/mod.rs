//! Recovery of attempts: at start from the facts on disk, later by a periodic safety net.

pub(crate) mod adopt;
pub(crate) mod reconcile;
