//! Whether the database is still where it was opened; and putting it back when somebody has deleted it under us.
//!
//! An open file that was deleted works on, and all that is written to it is gone with the last process that has it open. So before every
//! commit the names are compared with what was opened, and as long as the database is open it can be copied whole, from a connection
//! that sees all that was committed. A file that somebody put in its place is not ours to overwrite: the copy goes beside it.

use std::fs::File;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rusqlite::Connection;

use crate::sqlite::disk::inspect;
use crate::sqlite::disk::open;
use crate::sqlite::threads::failure;
use crate::store::Error;

/// Device and inode of a file.
type Identity = (u64, u64);

fn identity(path: &Path) -> Option<Identity> {
    look(path).0
}

/// A file's identity and its length.
fn look(path: &Path) -> (Option<Identity>, u64) {
    let found = std::fs::symlink_metadata(path).ok();
    let length = found.as_ref().map_or(0, MetadataExt::size);
    (found.map(|found| (found.dev(), found.ino())), length)
}

/// The names of an open database, and what they must mean.
#[derive(Debug)]
pub(in crate::sqlite) struct Place {
    path: PathBuf,
    log: PathBuf,
    database: Option<Identity>,
    /// None until it was first seen: SQLite makes it with the first access.
    wal: Option<Identity>,
    /// What every write is answered with, since the database was taken away.
    left: Option<Error>,
}

impl Place {
    /// Of a database that was just opened.
    pub(in crate::sqlite) fn new(path: &Path) -> Self {
        let log = inspect::beside(path, "-wal");
        let (database, wal) = (identity(path), identity(&log));
        Self { path: path.to_owned(), log, database, wal, left: None }
    }

    /// Where its log is.
    pub(in crate::sqlite) fn log(&self) -> &Path {
        &self.log
    }

    /// Whether the database was where it was opened, when it was last looked at.
    pub(in crate::sqlite) const fn is_held(&self) -> bool {
        self.left.is_none()
    }

    /// Makes sure that what is committed now is not written into a file that nobody will find again. Returns the length of the database's
    /// file, without the log.
    pub(in crate::sqlite) fn hold(&mut self, conn: &Connection) -> Result<u64, Error> {
        if let Some(left) = &self.left {
            return Err(left.clone());
        }
        let ((database, length), wal) = (look(&self.path), identity(&self.log));
        self.wal = self.wal.or(wal);
        if database == self.database && wal == self.wal {
            return Ok(length);
        }
        let left = if database.is_none() || database == self.database {
            copy(conn, &self.path)?;
            tracing::error!(path = %self.path.display(), "the database was deleted while it was open; it was put back with all that it held");
            Error::PutBack
        } else {
            let beside = inspect::beside(&self.path, ".displaced");
            copy(conn, &beside)?;
            if wal == self.wal {
                // Our log would be taken for theirs, which it would damage; all that was in it is in the copy.
                open::remove_companions(&self.path)?;
            }
            tracing::error!(path = %self.path.display(), kept = %beside.display(), "another file was put in the place of the database; nothing is written until the daemon is restarted");
            Error::Displaced(beside.display().to_string())
        };
        self.left = Some(left.clone());
        Err(left)
    }
}

/// Writes all that a connection sees into a new database at this path, whole or not at all.
fn copy(conn: &Connection, to: &Path) -> Result<(), Error> {
    let young = inspect::beside(to, ".new");
    let shown = |error: &std::io::Error| failure::io(&young.display().to_string(), error);
    open::remove_with_companions(&young)?;
    File::options().write(true).create_new(true).mode(0o600).open(&young).map_err(|error| shown(&error))?;
    let name =
        young.to_str().ok_or_else(|| Error::Io("the path of the database is not valid UTF-8".into()))?;
    conn.execute("VACUUM INTO ?1", [name])?;
    let fresh = Connection::open(&young)?;
    fresh.pragma_update(None, "journal_mode", "WAL")?;
    fresh.close().map_err(|(_, error)| error)?;
    File::open(&young).and_then(|file| file.sync_all()).map_err(|error| shown(&error))?;
    // A log of the old one would be taken for the new one's.
    open::remove_companions(to)?;
    open::put_in_place(&young, to)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn database(path: &Path) -> Connection {
        let conn = open::open(path).unwrap();
        conn.execute_batch("CREATE TABLE kept (n)").unwrap();
        conn
    }

    fn reopened(path: &Path) -> i64 {
        open::open(path).unwrap().query_row("SELECT sum(n) FROM kept", [], |row| row.get(0)).unwrap()
    }

    #[test]
    fn a_deleted_database_is_put_back_with_all_that_was_committed() {
        for names in [&[""][..], &["-wal"], &["", "-wal", "-shm"]] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("homing.db");
            let conn = database(&path);
            let mut place = Place::new(&path);
            conn.execute("INSERT INTO kept VALUES (1)", []).unwrap();
            assert!(place.hold(&conn).is_ok());
            for name in names {
                std::fs::remove_file(inspect::beside(&path, name)).unwrap();
            }
            conn.execute("INSERT INTO kept VALUES (2)", []).unwrap();
            assert_eq!(place.hold(&conn), Err(Error::PutBack));
            assert_eq!(place.hold(&conn), Err(Error::PutBack));
            drop(conn);
            assert_eq!(reopened(&path), 3, "{names:?}");
        }
    }

    #[test]
    fn a_file_in_its_place_is_left_alone_and_ours_is_kept_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("homing.db");
        let conn = database(&path);
        let mut place = Place::new(&path);
        conn.execute("INSERT INTO kept VALUES (1)", []).unwrap();
        std::fs::write(folder.path().join("other"), "theirs").unwrap();
        std::fs::rename(folder.path().join("other"), &path).unwrap();
        assert!(matches!(place.hold(&conn), Err(Error::Displaced(_))));
        assert_eq!(std::fs::read(&path).unwrap(), b"theirs");
        assert_eq!(reopened(&folder.path().join("homing.db.displaced")), 1);
    }
}
