//! A look at a database before anything could change it.
//!
//! A file that is refused must be left as it was found: it may be another program's, a later release's, or the only copy of something
//! damaged. So its header is read as plain bytes first, and what SQLite has to look at it does through a connection that cannot write.

use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use crate::sqlite::schema;
use crate::sqlite::threads::failure;
use crate::store::Error;

/// Above this a check at the start would be felt; a larger file is checked when somebody asks (`Store::check`).
const CHECKED_AT_START: u64 = 64 << 20;

/// What is at the path.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::sqlite) enum Found {
    /// Nothing.
    Nothing,
    /// A database of ours that this release can open.
    Ours,
}

/// Looks, and refuses what is not ours to open.
pub(in crate::sqlite) fn inspect(path: &Path) -> Result<Found, Error> {
    // A clean shutdown removes the write-ahead log: one with content is left by a crash.
    let unclean = std::fs::metadata(beside(path, "-wal")).is_ok_and(|wal| wal.len() > 0);
    let Some(header) = Header::read(path)? else {
        // Nothing of ours leaves an empty one behind, and the log may be all that is left of the ledger.
        if path.exists() {
            let log = if unclean { ", but its log is not" } else { "" };
            return Err(Error::Corrupt(format!("{} is empty{log}", path.display())));
        }
        return Ok(Found::Nothing);
    };
    header.judge(path)?;
    let conn = if unclean { open_read_only(path)? } else { open_immutable(path)? };
    judge_through(&conn, path)?;
    if unclean && header.file_bytes <= CHECKED_AT_START {
        quick_check(&conn)?;
    }
    Ok(Found::Ours)
}

/// The path of a file that SQLite keeps beside the database.
pub(in crate::sqlite) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}

/// The fields of the file's first hundred bytes that say whose it is.
struct Header {
    sqlite: bool,
    file_bytes: u64,
    user_version: u32,
    application_id: i32,
}

impl Header {
    /// Must run before SQLite has the file open: closing any descriptor of it drops the locks that this process holds on it.
    fn read(path: &Path) -> Result<Option<Self>, Error> {
        let shown = path.display().to_string();
        let nofollow = i32::try_from(rustix::fs::OFlags::NOFOLLOW.bits()).unwrap_or(0);
        let file = match File::options().read(true).custom_flags(nofollow).open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) => {
                return Err(Error::Filesystem {
                    path: shown,
                    why: "is a symbolic link, which is not followed".into(),
                });
            }
            Err(error) => return Err(failure::io(&shown, &error)),
        };
        let metadata = file.metadata().map_err(|error| failure::io(&shown, &error))?;
        if !metadata.is_file() {
            return Err(Error::Filesystem { path: shown, why: "is not a regular file".into() });
        }
        if metadata.len() == 0 {
            return Ok(None);
        }
        let mut bytes = Vec::with_capacity(100);
        file.take(100).read_to_end(&mut bytes).map_err(|error| failure::io(&shown, &error))?;
        let word = |at: usize| {
            bytes.get(at..at + 4).and_then(|word| word.try_into().ok()).map_or(0, u32::from_be_bytes)
        };
        Ok(Some(Self {
            sqlite: bytes.len() == 100 && bytes.starts_with(b"SQLite format 3\0"),
            file_bytes: metadata.len(),
            user_version: word(60),
            application_id: word(68).cast_signed(),
        }))
    }

    fn judge(&self, path: &Path) -> Result<(), Error> {
        if !self.sqlite {
            return Err(Error::Corrupt(format!("{} is not an SQLite file", path.display())));
        }
        judge_identity(self.application_id, self.user_version, path)
    }
}

/// A new database gets its id, version and tables under another name and is then renamed, so one without an id is never a young one of
/// ours.
fn judge_identity(application_id: i32, version: u32, path: &Path) -> Result<(), Error> {
    if application_id != schema::APPLICATION_ID {
        return Err(Error::Foreign(path.display().to_string()));
    }
    if version > schema::VERSION {
        return Err(Error::TooNew { found: version, known: schema::VERSION });
    }
    if version == 0 {
        return Err(Error::Corrupt("it has our id but no schema".into()));
    }
    Ok(())
}

/// The same questions with the write-ahead log taken into account, and whether the schema and the first pages can be read at all.
fn judge_through(conn: &Connection, path: &Path) -> Result<(), Error> {
    let application_id = conn.pragma_query_value(None, "application_id", |row| row.get(0))?;
    let version = conn.pragma_query_value(None, "user_version", |row| row.get(0))?;
    judge_identity(application_id, version, path)?;
    schema::meta(conn, "finished")?;
    conn.query_row(
        "SELECT count(*) FROM (SELECT 1 FROM tasks INDEXED BY tasks_live WHERE ended_at IS NULL LIMIT 1)",
        [],
        |_| Ok(()),
    )?;
    Ok(())
}

/// Structure only, not whether every index agrees with its table: that is `Store::check`.
fn quick_check(conn: &Connection) -> Result<(), Error> {
    let verdict: String = conn.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    if verdict == "ok" { Ok(()) } else { Err(Error::Corrupt(verdict)) }
}

/// For a database with a log: SQLite must read both, and may at most build the shared index of the log.
fn open_read_only(path: &Path) -> Result<Connection, Error> {
    let conn = Connection::open_with_flags(
        path,
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    Ok(conn)
}

/// For one without: not even the empty files of a log are made.
fn open_immutable(path: &Path) -> Result<Connection, Error> {
    let mut uri = b"file:".to_vec();
    for &byte in path.as_os_str().as_bytes() {
        match byte {
            b'%' | b'?' | b'#' => uri.extend(format!("%{byte:02x}").bytes()),
            _ => uri.push(byte),
        }
    }
    uri.extend(b"?immutable=1");
    let flags =
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    Ok(Connection::open_with_flags(PathBuf::from(OsString::from_vec(uri)), flags)?)
}
