//! The database file: opening and checking it, its write-ahead log, and space for a full disk.

pub(crate) mod check;
pub(crate) mod emergency_space;
pub(crate) mod file_guard;
pub mod filesystem;
pub(crate) mod inspect;
pub(crate) mod open;
pub(crate) mod reserved_space;
pub(crate) mod wal;
pub(crate) mod wal_preallocator;
