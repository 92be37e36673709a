//! A typed client for the homing daemon, over the Unix socket of its home, or over a pipe where the daemon is this process.
//!
//! # Theory of operation
//! A [`Client`] keeps idle connections and reuses them, so that requests in a row pay for one connect. When nobody listens
//! it calls its [`Revive`] hook, which may start a daemon or say why it will not; without a hook that is an error.
//! Asking is repeatable, so [`Client::wait`], [`Follow`] and [`EventStream`] outlive a restart of the daemon: they connect
//! again and go on from the last offset or cursor, losing nothing and repeating nothing. After a dozen failures in a row that is an error, but
//! not for a [`Client::patient`] one, which has something to wait for. Commands that change something are
//! repeated only where that is safe; each method says so.
//!
//! The crate never prints, and reads neither the environment nor the clock of the wall.

#[cfg(any(test, feature = "fake"))]
pub mod fake;
mod resources;
mod transport;

pub use resources::attach::{Keys, Screen, Seen};
pub use resources::deliveries::DeliveryQuery;
pub use resources::events::{EventQuery, EventStream, Log, Record};
pub use resources::input::piece_number;
pub use resources::output::{Chunk, Follow, OutputQuery, Source, Span, Stream};
pub use resources::tasks::{ListQuery, Submitted};
pub use resources::wait::{Mode, Purpose};
pub use transport::client::{Absence, Client, Connect, Revive};
pub use transport::error::Error;
pub use transport::socket::SOCKET;
