//! Opening: look first, make what is missing, then connect.

use std::fs::File;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use crate::sqlite::disk::filesystem;
use crate::sqlite::disk::inspect::{self, Found};
use crate::sqlite::schema;
use crate::sqlite::threads::failure;
use crate::store::Error;

/// Only a stranger (a person's `sqlite3`) could hold the write lock against us.
pub(in crate::sqlite) const BUSY: Duration = Duration::from_secs(5);

/// Each connection's page cache, in KiB: the daemon as a whole is to stay below 15 MB.
const CACHE_KIB: i64 = 1024;

/// Statements kept prepared; there are about forty.
const STATEMENTS: usize = 64;

/// Makes sure that a database of ours, of this version, is at the path, and gives the connection that may write to it.
pub(in crate::sqlite) fn open(path: &Path) -> Result<Connection, Error> {
    filesystem::check(folder(path))?;
    if inspect::inspect(path)? == Found::Nothing {
        create(path)?;
    }
    let mut conn = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    schema::migrate(&mut conn)?;
    Ok(conn)
}

/// A connection that cannot write.
pub(in crate::sqlite) fn open_reader(path: &Path) -> Result<Connection, Error> {
    let conn = connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    conn.pragma_update(None, "query_only", true)?;
    Ok(conn)
}

fn connect(path: &Path, access: OpenFlags) -> Result<Connection, Error> {
    // Each connection lives in one thread, so SQLite's own mutex is not needed.
    let conn = Connection::open_with_flags(path, access | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    conn.busy_timeout(BUSY)?;
    conn.set_prepared_statement_cache_capacity(STATEMENTS);
    conn.pragma_update(None, "cache_size", -CACHE_KIB)?;
    conn.pragma_update(None, "mmap_size", 0)?;
    conn.pragma_update(None, "temp_store", "MEMORY")?;
    conn.pragma_update(None, "foreign_keys", true)?;
    conn.pragma_update(None, "trusted_schema", false)?;
    conn.pragma_update(None, "synchronous", "FULL")?;
    let mode: String = conn.pragma_query_value(None, "journal_mode", |row| row.get(0))?;
    if mode != "wal" {
        return Err(Error::Corrupt(format!("its journal mode is {mode}, not wal")));
    }
    Ok(conn)
}

/// Makes the database whole under another name and renames it: a crash in between leaves no half of one.
fn create(path: &Path) -> Result<(), Error> {
    let young = inspect::beside(path, ".new");
    remove_with_companions(&young)?;
    // A log whose database is gone is of no use, and SQLite would take it for the new one's.
    remove_companions(path)?;
    // SQLite gives its other files the mode of this one.
    File::options()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&young)
        .map_err(|error| shown(&young, &error))?;
    let mut conn = Connection::open_with_flags(&young, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    conn.pragma_update(None, "journal_mode", "WAL")?;
    schema::migrate(&mut conn)?;
    conn.close().map_err(|(_, error)| error)?;
    File::open(&young).and_then(|file| file.sync_all()).map_err(|error| shown(&young, &error))?;
    put_in_place(&young, path)
}

/// Gives a whole database its name, durably.
pub(in crate::sqlite) fn put_in_place(young: &Path, path: &Path) -> Result<(), Error> {
    std::fs::rename(young, path).map_err(|error| shown(path, &error))?;
    File::open(folder(path)).and_then(|folder| folder.sync_all()).map_err(|error| shown(path, &error))
}

/// Removes the files that SQLite keeps beside a database.
pub(in crate::sqlite) fn remove_companions(path: &Path) -> Result<(), Error> {
    ["-wal", "-shm", "-journal"].iter().try_for_each(|suffix| remove(&inspect::beside(path, suffix)))
}

/// Removes a database that was not finished.
pub(in crate::sqlite) fn remove_with_companions(path: &Path) -> Result<(), Error> {
    remove(path)?;
    remove_companions(path)
}

fn remove(path: &Path) -> Result<(), Error> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(shown(path, &error)),
        Ok(()) | Err(_) => Ok(()),
    }
}

pub(in crate::sqlite) fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}

fn shown(path: &Path, error: &std::io::Error) -> Error {
    failure::io(&path.display().to_string(), error)
}
