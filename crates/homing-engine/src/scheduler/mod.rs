//! The scheduler: the only part that starts tasks.
//!
//! # Theory of operation
//!
//! Which task starts is decided by the pure function [`decide`](homing_model::queue::decide), inside the transaction
//! that claims it: the commit of a submit, or [`claim_waiting`]. Today's policy starts every task in the commit of its
//! submit, so a claim costs no commit of its own. A claimed row is handed to a supervisor, which launches the attempt.
//!
//! - A submit, a hook and a wake arrive by [`accepted`], with the open folder and all values.
//! - Recovery and reconcile hand what they find to [`resume`]. It starts a supervisor for a claimed attempt, and leaves
//!   a queued task alone: recovery never starts one.
//! - [`claim_waiting`] claims queued tasks, at the start of an engine and in a reconcile pass that sees one.
//!
//! # What a waiting task keeps
//!
//! Its environment lies in its folder, synced before the submit was acknowledged (P9). Values of secrets are never
//! written down: they stay in this process, and a task whose `--secret` value went with an earlier daemon ends as
//! `start_failed`, with the names (`p2_a_queued_task_whose_secret_is_gone_fails_to_start`). A secret that is a file is
//! read again.
//!
//! # What can crash where
//!
//! Before the claim commits the task is queued; after it the row is `starting`, and the next engine resumes it. The
//! start marker in the folder keeps one attempt from running twice (P10). A stop of a queued task ends it in one
//! transaction; values that a crash leaves in its folder are removed by the next start.

mod service;
mod start;

pub(crate) use service::Scheduler;
pub(crate) use start::{accepted, cancelled, claim_waiting, resume};
