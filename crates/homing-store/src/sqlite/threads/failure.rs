//! What SQLite's errors mean to a caller of the store.

use rusqlite::ErrorCode;

use crate::store::Error;

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        let rusqlite::Error::SqliteFailure(code, _) = &error else {
            // What is left are values of a type or range that we never write.
            return Self::Corrupt(error.to_string());
        };
        match code.code {
            ErrorCode::DiskFull => Self::Full,
            // A schema or a value that is not ours: the file opened, but it is not what we wrote.
            ErrorCode::DatabaseCorrupt
            | ErrorCode::NotADatabase
            | ErrorCode::ConstraintViolation
            | ErrorCode::TypeMismatch
            | ErrorCode::Unknown => Self::Corrupt(error.to_string()),
            _ => Self::Io(error.to_string()),
        }
    }
}

/// Reading or writing a file without SQLite failed.
pub(in crate::sqlite) fn io(what: &str, error: &std::io::Error) -> Error {
    match error.kind() {
        std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => Error::Full,
        _ => Error::Io(format!("{what}: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::ffi;

    use super::*;

    fn mapped(code: i32) -> Error {
        rusqlite::Error::SqliteFailure(ffi::Error::new(code), None).into()
    }

    #[test]
    fn each_class_of_failure_has_its_word() {
        assert_eq!(mapped(ffi::SQLITE_FULL), Error::Full);
        for code in [ffi::SQLITE_IOERR_FSYNC, ffi::SQLITE_CANTOPEN, ffi::SQLITE_READONLY, ffi::SQLITE_BUSY] {
            assert!(matches!(mapped(code), Error::Io(_)), "{code}");
        }
        for code in [ffi::SQLITE_CORRUPT, ffi::SQLITE_NOTADB, ffi::SQLITE_CONSTRAINT_UNIQUE] {
            assert!(matches!(mapped(code), Error::Corrupt(_)), "{code}");
        }
    }
}
