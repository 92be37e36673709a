//! What lives on when the daemon dies: the keeper, the shims it forks, and the files they leave.
//!
//! Everything here is synchronous and single-threaded, on std, rustix and a small serialiser: a shim waits for hours beside every running task, so
//! it must be small, and it is what the truth depends on, so it must be simple. No function in keeper or shim panics on purpose;
//! an error is told, counted, or ends in a record.
//!
//! Programs that embed the engine call [`dispatch`] as the first line of `main`.

pub mod cgroup;
mod clock;
mod dispatch;
pub mod folder;
mod freeze;
pub mod keeper;
pub mod output;
pub mod record;
mod shim;
pub mod tree;
pub mod wire;

pub use dispatch::{DAEMON, dispatch};
