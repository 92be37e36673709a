//! One file per address, or per pair of addresses that are one thing.

pub(crate) mod attach;
pub(crate) mod complete;
pub(crate) mod daemon_stop;
pub(crate) mod deliveries;
pub(crate) mod events;
pub(crate) mod follow;
pub(crate) mod gc;
pub(crate) mod health;
pub(crate) mod heartbeat;
pub(crate) mod inbox;
pub(crate) mod input;
pub(crate) mod listener;
pub(crate) mod openapi;
pub(crate) mod output;
pub(crate) mod output_index;
pub(crate) mod progress;
pub(crate) mod rerun;
pub(crate) mod session;
pub(crate) mod signal;
pub(crate) mod status;
pub(crate) mod stop;
pub(crate) mod task;
pub(crate) mod tasks;
pub(crate) mod wait;
