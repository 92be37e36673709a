//! Operations on a task that runs: stop, pause, input, size, progress.

pub(crate) mod input;
pub(crate) mod pause;
pub(crate) mod progress;
pub(crate) mod resize;
pub(crate) mod stop;
