//! A folder with a database in it, gone after the test.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use homing_store::{SqliteStore, Store};
use tempfile::TempDir;

pub(crate) struct Home(TempDir);

impl Home {
    pub(crate) fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    pub(crate) fn folder(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.folder().join("homing.db")
    }

    pub(crate) fn open(&self) -> Arc<SqliteStore> {
        Arc::new(SqliteStore::open(&self.database()).unwrap())
    }

    /// The files as a kill at this instant would leave them.
    pub(crate) fn as_after_a_kill(&self) -> Self {
        let copy = Self::new();
        for suffix in ["", "-wal"] {
            let name = format!("homing.db{suffix}");
            std::fs::copy(self.folder().join(&name), copy.folder().join(&name)).unwrap();
        }
        copy
    }
}

/// The same store as the suite wants it.
pub(crate) fn ledger(store: &Arc<SqliteStore>) -> Arc<dyn Store> {
    Arc::<SqliteStore>::clone(store)
}
