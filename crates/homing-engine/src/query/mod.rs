//! Reads: tasks, output, waits, figures. None of them changes a task.

pub(crate) mod ends;
pub(crate) mod lookup;
pub mod metrics;
pub(crate) mod output;
pub(crate) mod output_notifier;
pub(crate) mod report;
pub(crate) mod view;
pub(crate) mod wait;
