//! Tasks: rows, transitions, lists, retention.

pub(crate) mod census;
pub(crate) mod find;
pub(crate) mod life;
pub(crate) mod listing;
pub(crate) mod pause;
pub(crate) mod retention;
pub(crate) mod row;
pub(crate) mod submit;
