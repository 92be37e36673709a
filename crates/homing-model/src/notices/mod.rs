//! Notices, their targets and deliveries, and the owners that read them.

pub mod binding;
pub mod channel;
pub mod delivery;
pub mod event;
pub mod inbox;
pub mod notice;
pub mod notify;
pub mod operator;
pub mod order;
pub mod reservation;
pub mod route;
pub mod schedule;
pub mod session;
pub mod turn;
pub mod wake;
