//! What homing needs of Linux beyond `std`: processes and their ancestors, peers of sockets, confinement, the files of a
//! home, and atomic replacement of files.
//!
//! Synchronous and small, because the shim is built on it. [`sys`] is the only module of the workspace with unsafe code.

pub mod atomic_file;
pub mod boot;
pub mod confine;
pub mod home;
pub mod memory;
pub mod peer;
pub mod plain;
pub mod presence;
pub mod private;
pub mod process;
pub mod sys;
pub mod tcp_owner;
