//! HTTP and server-sent events on the Unix socket of a home, and the daemon that serves them.
//!
//! # Theory of operation
//!
//! ```text
//! net      the Unix socket, the loopback listener, and one task per connection; decides who may connect (P11)
//! auth     what a request on the loopback listener must show: token, Host, Origin, or a browser that signed in
//! http     bodies, streams and errors; one table of routes makes the axum router and the OpenAPI document
//! routes   one file per resource: reads the call, calls the engine, answers
//! mcp      `/mcp`: MCP tools as calls of the same routes
//! page     `/`: the page for a browser, compiled into the binary
//! ```
//!
//! Nothing here decides anything about tasks: the engine does, and whatever is told was committed before. Streams read on only
//! when their client takes what it was given, so a slow client costs no memory; every stream resumes from the id of its last event.
//! Work that changes something runs to its end even if its caller goes away in the middle.

mod app;
mod auth;
pub mod daemon;
mod http;
mod log;
mod mcp;
mod memory;
mod metrics;
mod net;
pub mod page;
mod reload;
mod routes;
mod settings;

pub use auth::token;
pub use daemon::{Options, run};
pub use http::openapi::openapi_json;
pub use net::server::{Ended, Server};
pub use net::{server, socket};
pub use reload::BROKEN_CONFIGURATION;
pub use settings::load as load_configuration;
