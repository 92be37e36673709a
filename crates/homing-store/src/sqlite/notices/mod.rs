//! Notices, inboxes, deliveries and the event log.

pub(crate) mod claims;
pub(crate) mod deliveries;
pub(crate) mod event_cache;
pub(crate) mod events;
pub(crate) mod hooks;
pub(crate) mod inbox;
pub(crate) mod inheritance;
pub(crate) mod publish;
pub(crate) mod reservations;
pub(crate) mod wakes;
