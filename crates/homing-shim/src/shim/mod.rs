//! The shim: one per running task, and all that stands between it and oblivion.
//!
//! # Theory of operation
//!
//! The keeper forks a shim and gives it two descriptors: a socket to the daemon and the attempt's folder. The daemon sends the launch over that
//! socket. The shim locks the folder, makes the start marker, executes the command, and from then on needs nobody: it moves output from
//! pipes to files, keeps the time limit, and ends the tree when asked. One loop over `poll` does all of it; nothing here blocks on the daemon.
//!
//! When the main process has ended and its output is drained, the shim tells the daemon and puts the exit record in place: from then on
//! no process is needed for the truth to survive. What a power cut could still take is made durable by the daemon's ledger, or, when
//! no daemon confirms that, by syncing the record. The shim leaves when the daemon says that the end is recorded; or, with no daemon there, when
//! the record is durable and a revival was begun. While no daemon is there the shim watches the keeper, and revives both when that is gone. Children that outlive the main process keep it here, capturing, until they are gone.
//!
//! Keeps P2, P3, P4, P7, P8, P9 and P10.

mod capture;
mod channel;
mod child;
mod ending;
mod input;
mod launch;
mod orders;
mod pause;
mod resize;
mod revive;
mod service;
mod stop;
mod vigil;

pub(crate) use service::run;
