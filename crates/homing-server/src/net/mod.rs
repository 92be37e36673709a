//! Connections: the Unix socket, the loopback listener, and who may connect.

pub(crate) mod connection;
pub(crate) mod connection_limits;
pub(crate) mod listener;
pub(crate) mod listener_state;
pub mod server;
pub mod socket;
