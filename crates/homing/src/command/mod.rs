//! The commands, one file each: its options, with help that teaches, and what it does.

pub(crate) mod ack;
pub(crate) mod complete;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod daemon;
pub(crate) mod deliveries;
pub(crate) mod doctor;
pub(crate) mod events;
pub(crate) mod exec;
pub(crate) mod explain;
pub(crate) mod forget;
pub(crate) mod gc;
pub(crate) mod heartbeat;
pub(crate) mod help;
pub(crate) mod inbox;
pub(crate) mod input;
pub(crate) mod list;
pub(crate) mod output;
pub(crate) mod progress;
pub(crate) mod redeliver;
pub(crate) mod run;
pub(crate) mod show;
pub(crate) mod status;
pub(crate) mod stop;
pub(crate) mod track;
pub(crate) mod wait;
