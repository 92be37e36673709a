//! Deliveries: notices on their way to their targets.

pub(crate) mod deliveries;
pub(crate) mod hook;
pub(crate) mod routes;
