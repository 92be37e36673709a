//! One file per resource of the API.

pub(crate) mod attach;
pub(crate) mod deliveries;
pub(crate) mod events;
pub(crate) mod external;
pub(crate) mod inbox;
pub(crate) mod input;
pub(crate) mod listener;
pub(crate) mod output;
pub(crate) mod pause;
pub(crate) mod session;
pub(crate) mod status;
pub(crate) mod stop;
pub(crate) mod tasks;
pub(crate) mod wait;
