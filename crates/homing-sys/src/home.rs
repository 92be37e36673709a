//! Names in the home folder that more than one process must agree on.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use crate::atomic_file;

/// The daemon's socket.
pub const SOCKET: &str = "homing.sock";
/// Held by the engine that serves this home.
pub const DAEMON_LOCK: &str = "daemon.lock";
/// Held by the keeper.
pub const KEEPER_LOCK: &str = "keeper.lock";
/// The keeper's socket.
pub const KEEPER_SOCKET: &str = "keeper.sock";
/// There while the daemon was stopped on purpose.
pub const STOPPED: &str = "stopped";
/// Which program to start when the daemon must be revived.
pub const PROGRAM: &str = "program";
/// What keeper and daemon have to say.
pub const LOG: &str = "daemon.log";
/// The tasks' folders.
pub const TASKS: &str = "tasks";
/// In an attempt's folder: made by the one process that may start it (P10).
pub const START_MARKER: &str = "started";
/// The database.
pub const DATABASE: &str = "homing.db";

/// Whether the daemon was stopped on purpose, so that nobody revives it.
#[must_use]
pub fn is_stopped(home: &Path) -> bool {
    home.join(STOPPED).exists()
}

/// The program that the last daemon ran from, so that an old shim starts the current version.
#[must_use]
pub fn recorded_program(home: &Path) -> Option<PathBuf> {
    let bytes = std::fs::read(home.join(PROGRAM)).ok()?;
    let path = PathBuf::from(OsString::from_vec(bytes));
    path.is_absolute().then_some(path)
}

/// Records the program for a revival.
///
/// # Errors
/// If the home cannot be written.
pub fn record_program(home: &Path, program: &Path) -> io::Result<()> {
    if recorded_program(home).as_deref() == Some(program) {
        return Ok(());
    }
    atomic_file::replace(&home.join(PROGRAM), program.as_os_str().as_encoded_bytes(), 0o600)
}
