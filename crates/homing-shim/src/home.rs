//! Names in the home folder that more than one process must agree on.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

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

/// Records the program for a revival, by rename, so that a reader sees the old or the new one.
///
/// # Errors
/// If the home cannot be written.
pub fn record_program(home: &Path, program: &Path) -> io::Result<()> {
    if recorded_program(home).as_deref() == Some(program) {
        return Ok(());
    }
    // Of this thread alone: two who start the first daemon at once would take each other's away, or write into one.
    let temporary = home.join(format!("{PROGRAM}.{}", rustix::thread::gettid().as_raw_nonzero()));
    let recorded =
        write_new(&temporary, program).and_then(|()| std::fs::rename(&temporary, home.join(PROGRAM)));
    if recorded.is_err() {
        let _ = std::fs::remove_file(&temporary);
    }
    recorded
}

fn write_new(path: &Path, program: &Path) -> io::Result<()> {
    let mut file = File::options().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(program.as_os_str().as_encoded_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn however_many_record_a_program_at_once_it_is_one_of_theirs_and_nothing_else_is_left() {
        let dir = tempfile::tempdir().unwrap();
        let programs = ["/usr/bin/homing", "/opt/somewhere/else/homing"].map(Path::new);
        std::thread::scope(|scope| {
            for number in 0..8 {
                let home = dir.path();
                scope.spawn(move || {
                    for round in 0..100 {
                        record_program(home, programs[(number + round) % 2]).unwrap();
                        assert!(programs.contains(&recorded_program(home).unwrap().as_path()));
                    }
                });
            }
        });
        let left: Vec<_> =
            std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, [PROGRAM]);
    }
}
