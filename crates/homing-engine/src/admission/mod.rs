//! Admission: what a caller may do, and the submit of a task.

pub(crate) mod ancestry;
pub(crate) mod exec;
pub(crate) mod misconfigured;
pub(crate) mod nesting;
pub(crate) mod rerun;
pub(crate) mod submit;
