//! Requests and answers: reading, bounding, routing, refusing, streaming.

pub(crate) mod answer;
pub(crate) mod body;
pub(crate) mod body_drain;
pub(crate) mod call;
pub(crate) mod command;
pub(crate) mod openapi;
pub(crate) mod peer_closed;
pub(crate) mod query;
pub(crate) mod refusal;
pub(crate) mod route;
pub(crate) mod route_table;
pub(crate) mod router;
pub(crate) mod sse;
pub(crate) mod stream;
pub(crate) mod traffic;
pub(crate) mod upgrade;
pub(crate) mod utf8_chunker;
