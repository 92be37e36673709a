//! The MCP server of homing: eight tools, two kinds of resources and the tasks extension, over homing's own HTTP API.
//!
//! # Theory of operation
//!
//! ```text
//! stdio    `homing mcp`: the handler on stdin and stdout, with a client on the home's socket
//! http     `/mcp` of the daemon: the same handler, with a client of the API in the same process
//! handler  what a client of MCP may ask; holds nothing but the way to the API
//! access   one call: in whose name, and what its tasks take over
//! tools    one file per tool: what it takes, what it gives, what it does
//! tasks    MCP tasks are homing's tasks, under the same ids, read from the ledger at every question
//! excerpt  all output that a model sees: bounded, without what a terminal would obey, between fences
//! ```
//!
//! Nothing here is remembered from one call to the next, so nothing is lost with this process or with the daemon: a bridge that stays
//! connected while the daemon is killed asks the next one, and hears the truth (P3, P12). An MCP task is durable before its id is given.
//!
//! **Told once** (P6). The call that brings an end to its owner is made in the owner's name with `told`, and whatever else the same tool call
//! has to look at is read by a client without a name: only the owner's next call confirms that the answer came through.
//!
//! The crate does not print, and reads neither the environment nor the clock of the wall.

mod access;
mod advice;
mod excerpt;
mod grep;
mod handler;
mod http;
mod patience;
mod polls;
mod refusal;
mod reply;
mod resources;
mod stdio;
mod summary;
mod tasks;
mod tools;

pub use access::{Bridge, Owner};
pub use handler::Handler;
pub use http::{LARGEST_REQUEST, Service, config, service};
pub use reply::LARGEST;
pub use stdio::{ServeError, serve};
