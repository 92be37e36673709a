//! The queue: which waiting tasks start, and why the others wait. Pure.
//!
//! Keeps P1 and P10. The store reads a [`View`] and claims what [`decide`] returns in one transaction, so two
//! decisions never start the same task. [`reason`] applies the same rules on read; no reason is stored.

mod decide;

pub use decide::{Reason, Start, StartPolicy, View, Waiting, decide, reason};
