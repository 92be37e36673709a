//! Telling of a task while it runs: matches, silences, heartbeats. Keeps P5.
//!
//! # Theory of operation
//!
//! A task that asks for any of the three has one watcher, begun by its attendant when the command starts or is adopted. It sleeps until the
//! shim has news of the output (asked for once each time, and only where a pattern is watched for or a silence was told), or a time comes that
//! somebody gave: a window's end, an alarm, a heartbeat. Output is read from the files, in bounded pieces, and judged on a thread of its own.
//!
//! What is told and how far the output was judged are one transaction of the ledger. Whatever dies, the next watcher reads on from there, and
//! counts again exactly what was not told. Before the end of the task is recorded, its attendant lets the watcher judge what is left; what is
//! held back then is told with the end. What cannot be told now (the ledger is in trouble, the breaker is open) is held back too.
//!
//! On cancel (the attendant is gone, the engine ends) a watcher ends between two pieces. On error (output that cannot be read) it says so in
//! the log and watches no more; the task is not affected.

mod alarms;
mod scan;
mod telling;
mod terminal;
mod watcher;

pub(crate) use alarms::last_output;
pub(crate) use terminal::input_wait;
pub(crate) use watcher::{AT_ONCE, Handle, begin};
