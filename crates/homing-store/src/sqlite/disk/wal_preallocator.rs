//! Room in the log: zeros at its end, put there while nobody waits.
//!
//! A sync of a file that grew has to wait for the filesystem's journal, and with it for whatever else is in there; one of a file that was
//! only written over does not (the worst of a hundred: 0.4 instead of up to 3 ms on ext4). SQLite writes its log from the start again and again, and
//! reads it up to the first frame that is not its own, so zeros beyond are nothing to it. Only the writer's thread appends, so nobody writes
//! in between. The log is no file that SQLite locks: opening it twice in one process is harmless.

use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

/// As long as the log usually becomes before it is copied back, on a roomy disk.
const USUAL: u64 = 4 << 20;
/// Where less is left on the disk, others need it more.
const SCARCE: u64 = 64 << 20;
/// Added in one idle moment: about a millisecond with its sync.
const PIECE: u64 = 256 << 10;

/// The log of one database.
#[derive(Debug)]
pub(in crate::sqlite) struct Room {
    log: PathBuf,
    /// How long the log is made.
    whole: u64,
    /// There is enough, or none to be had.
    done: bool,
}

impl Room {
    /// In the log at this path, which is kept below so many bytes.
    pub(in crate::sqlite) fn new(log: &Path, limit: u64) -> Self {
        Self { log: log.to_owned(), whole: limit.min(USUAL), done: false }
    }

    /// Adds a piece, if there is not enough. What fails is only slower.
    pub(in crate::sqlite) fn grow(&mut self) {
        if !self.done {
            // SQLite makes the log when it first needs it.
            self.done = self.add().unwrap_or_else(|error| error.kind() != std::io::ErrorKind::NotFound);
        }
    }

    /// SQLite may have cut the log.
    pub(in crate::sqlite) fn look_again(&mut self) {
        self.done = false;
    }

    /// True once there is enough.
    fn add(&self) -> std::io::Result<bool> {
        let nofollow = OFlags::NOFOLLOW.bits().cast_signed();
        let file = File::options().write(true).custom_flags(nofollow).open(&self.log)?;
        let found = file.metadata()?;
        let disk = rustix::fs::fstatvfs(&file)?;
        let scarce = disk.f_bavail.saturating_mul(disk.f_frsize) < SCARCE;
        if !found.is_file() || found.nlink() != 1 || found.len() >= self.whole || scarce {
            return Ok(true);
        }
        if let Err(error) = file.write_all_at(&vec![0; PIECE as usize], found.len()) {
            // On a full disk somebody else needs what was taken.
            file.set_len(found.len())?;
            return Err(error);
        }
        file.sync_data()?;
        Ok(found.len() + PIECE >= self.whole)
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::*;
    use crate::sqlite::disk::open;

    fn count(conn: &Connection) -> i64 {
        conn.query_row("SELECT count(*) FROM meta WHERE name LIKE 'x%'", [], |row| row.get(0)).unwrap()
    }

    #[test]
    fn a_log_with_zeros_at_its_end_loses_nothing_and_grows_no_further() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("homing.db");
        let conn = open::open(&path).unwrap();
        let log = folder.path().join("homing.db-wal");
        let mut room = Room::new(&log, u64::MAX);
        for n in 0..40 {
            conn.execute("INSERT INTO meta (name, value) VALUES (?1, 1)", [format!("x{n}")]).unwrap();
            room.grow();
        }
        let length = std::fs::metadata(&log).unwrap().len();
        assert!((USUAL..USUAL + 2 * PIECE).contains(&length), "{length}");
        assert_eq!(count(&conn), 40);
        // As after a crash: a copy of both files, whose log has to be read anew.
        let other = folder.path().join("other.db");
        std::fs::copy(&path, &other).unwrap();
        std::fs::copy(&log, folder.path().join("other.db-wal")).unwrap();
        assert_eq!(count(&open::open(&other).unwrap()), 40);
    }

    #[test]
    fn a_log_that_is_not_there_is_not_made() {
        let folder = tempfile::tempdir().unwrap();
        Room::new(&folder.path().join("homing.db-wal"), u64::MAX).grow();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
