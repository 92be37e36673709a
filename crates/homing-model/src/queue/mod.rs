//! The queue: which waiting tasks start, and why the others wait. Pure.
//!
//! Keeps P1 and P10. The store reads a [`QueueView`] and claims what [`decide`] returns in one transaction, so two
//! decisions never start the same task. [`reason`] applies the same rules on read; no reason is stored.

mod decide;

pub use decide::{QueueView, QueuedTask, Start, StartPolicy, WaitReason, decide, reason};
