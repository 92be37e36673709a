//! Admission: what a caller may do, and the submit of a task.
//!
//! # The way of a submit
//!
//! 1. [`submit`] finds the owner and what the caller may do.
//! 2. [`accept`] checks the request and produces an [`AcceptedTask`](accept::AcceptedTask): the row to be, without
//!    any secret value, and the values themselves. It changes nothing.
//! 3. [`commit`] makes the folder, commits the row, and hands it to the [scheduler](crate::scheduler), the only
//!    part that starts tasks.
//!
//! Hooks and wakes take the steps 2 and 3 with a row of their own (`outbox/hook.rs`).
//!
//! # What can crash where
//!
//! - Before the commit there is at most a folder without a row. The next start removes it
//!   (`p10_a_folder_without_a_row_is_removed_at_the_next_open`), and the client repeats the request (P12:
//!   the id was never issued).
//! - After the commit the row is `starting` or `queued`, and its folder is complete. A `starting` row is started by
//!   the next daemon (`p10_an_attempt_that_was_never_begun_is_begun_once_by_the_next_daemon`), once, whatever became
//!   of the first launch: the start marker decides (P10). A `queued` row waits for the scheduler
//!   (`p9_a_queued_task_survives_a_restart_and_starts_once`).
//! - A request that is repeated under its idempotency key is answered as the first time, also where the repetition
//!   would be refused (`p10_a_request_sent_again_is_the_same_task_whatever_is_gone_since`).
//! - A power cut ends `starting` tasks as `lost`, so their folders are not synced. The folder of a task that may wait
//!   is synced before its commit (P9).
//! - The caller may go away at any time: the engine runs a submit to its end
//!   (`p4_a_task_whose_submitter_lost_interest_in_the_middle_is_started_all_the_same`).

pub(crate) mod accept;
pub(crate) mod ancestry;
pub(crate) mod caller_scope;
pub(crate) mod commit;
pub(crate) mod exec;
mod folder;
pub(crate) mod misconfigured;
pub(crate) mod rerun;
pub(crate) mod submit;
mod targets;
pub(crate) mod values;
