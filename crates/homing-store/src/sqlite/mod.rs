//! The ledger in one SQLite file.
//!
//! # Theory of operation
//!
//! One thread owns the only connection that writes (`writer`), another the one that reads (`reader`); WAL keeps them out of each
//! other's way. An operation is sent to its thread when the method is called, not when its future is polled, and dropping the future
//! does not take it back. The writer puts all that waits into one transaction, each operation under its own savepoint, and answers only
//! after the commit: what was answered is durable (P9), and the price of an fsync is shared by all who wait.
//!
//! Every change of a state asks `homing_model::transition::next` inside that transaction, so the first finisher wins (P1).
//!
//! Nothing here wakes up by itself: both threads sleep on their channels, but for the writer's one look after it has written much.

pub mod disk;
mod notices;
mod schema;
mod sessions;
mod store;
mod tasks;
mod threads;

pub use disk::emergency_space::WHOLE as RESERVE;
pub use store::SqliteStore;
