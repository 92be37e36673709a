//! The SQLite store from outside: the suite of every store, and what is true of this one only.
#![expect(
    clippy::unwrap_used,
    reason = "in a test, a panic is the report; helpers outside of #[test] are tests too"
)]

mod conformance;
mod damaged_row;
mod durability;
mod golden;
mod group_commit;
mod home;
mod model;
mod refusal;
mod scale;
