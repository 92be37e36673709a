//! HTTP and server-sent events on the Unix socket of a home, and the daemon that serves them.
//!
//! # Theory of operation
//!
//! ```text
//! socket   binds homing.sock in a home that was checked
//! server   accepts, and serves one connection per task
//! connection decides, once per connection, whether the caller may come in (P11)
//! listener the same over TCP on this machine, if it is turned on; gate decides there, at every request
//! router   one table of routes becomes the axum router; openapi makes the document of the same table
//! resource one file per address: reads the call, asks the engine, answers
//! mcp      `/mcp`: calls of tools, carried out by calls of the same routes
//! page     `/`: the page for a browser, from the binary; signin lets the browser in
//! ```
//!
//! Nothing here decides anything about tasks: the engine does, and whatever is told was committed before. Streams read on only
//! when their client takes what it was given, so a slow client costs no memory; every stream resumes from the id of its last event.
//! Work that changes something runs to its end even if its caller goes away in the middle.

mod answer;
mod app;
mod body;
mod call;
mod caught;
mod command;
mod connection;
pub mod daemon;
mod endings;
mod gate;
mod handover;
mod hangup;
mod leaving;
mod listener;
mod log;
mod mcp;
mod memory;
mod metrics;
mod openapi;
pub mod page;
mod places;
mod query;
mod refusal;
mod reload;
mod remembered;
mod resource;
mod route;
mod router;
mod routes;
pub mod server;
mod settings;
mod signin;
pub mod socket;
mod sse;
mod stream;
pub mod token;
mod traffic;
mod unread;

pub use daemon::{Options, run};
pub use openapi::openapi_json;
pub use reload::BROKEN_CONFIGURATION;
pub use server::{Ended, Server};
pub use settings::load as load_configuration;
