//! The keeper: one small process per home that forks shims and keeps the daemon alive.
//!
//! # Theory of operation
//!
//! A daemon with threads cannot fork safely, and a shim that is executed anew costs more memory and time than one that is forked from something small.
//! So the keeper has one thread, initialises nothing, and keeps no state that matters: all it knows is which children are shims and
//! which one is the daemon. It listens on `keeper.sock` for packets: the engine asks for shims, clients ask for a daemon.
//!
//! As the parent of the daemon it restarts it at once when it dies, with a growing pause only when it cannot even start. As subreaper it inherits the
//! children of a shim that was killed, and ends them: nothing may run on that nobody watches. When the daemon has left on purpose and no
//! shim is left, the keeper leaves too.
//!
//! Whoever starts a keeper wants a daemon: if its starter dies before it said so, the keeper starts one all the same.
//!
//! Killed itself, it is started again by the daemon; both killed, by a shim that sees it, or by the next one that ends. Keeps P3, P4 and P8.

mod announcement;
mod client;
mod connection;
mod daemon;
mod names;
mod peers;
mod restart;
mod service;
mod shims;
mod starter;

pub(crate) use announcement::watch;
pub use client::{Mode, StartError, connect, request_start, spawn};
pub use connection::{Connection, Received, receive, send};
pub(crate) use service::run;
