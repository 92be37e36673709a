//! How a request reaches the daemon: sockets, requests, errors, event streams.

pub(crate) mod call;
pub(crate) mod client;
pub(crate) mod error;
pub(crate) mod query;
pub(crate) mod socket;
pub(crate) mod sse;
pub(crate) mod tcp;
