//! Starting and reaching the daemon, and the processes that it starts.

pub(crate) mod autostart;
pub(crate) mod survivors;
pub(crate) mod unresponsive_daemon;
pub(crate) mod waker;
