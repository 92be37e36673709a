//! [`SqliteStore`]: each operation is sent to the thread that does it. One file per trait.

mod events;
mod inbox;
mod outbox;
mod queue;
mod tasks;
mod upkeep;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::sqlite::disk::emergency_space::{self, Reserve};
use crate::sqlite::disk::file_guard::Place;
use crate::sqlite::disk::open;
use crate::sqlite::disk::wal::Log;
use crate::sqlite::notices::event_cache::Recent;
use crate::sqlite::threads::reader;
use crate::sqlite::threads::writer;
use crate::store::Error;

/// The ledger in one SQLite file, with a thread that writes and one that reads.
///
/// Dropping it lets both threads end by themselves; [`Upkeep::close`](crate::store::Upkeep::close) waits until the files are closed.
#[derive(Debug)]
pub struct SqliteStore {
    path: PathBuf,
    writer: writer::Handle,
    reader: reader::Handle,
    recent: Arc<Recent>,
}

impl SqliteStore {
    /// Opens the database at `path`, or makes one (mode 0600) if there is none. Blocks; call it off the async runtime or before it serves.
    ///
    /// One store per file and process: the caller holds the lock of the home.
    ///
    /// # Errors
    /// If the file is not ours, of a later release, damaged, or on a filesystem that cannot hold it; it is unchanged then.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let mut opened = Self::connect(path);
        // The files beside the database need room too, and on a full disk forgetting is wanted most.
        while matches!(opened, Err(Error::Full | Error::Io(_))) && emergency_space::make_room(path) {
            opened = Self::connect(path);
        }
        opened
    }

    fn connect(path: &Path) -> Result<Self, Error> {
        let mut conn = open::open(path)?;
        let log = Log::follow(&mut conn, open::folder(path))?;
        let (reader, thread) = reader::spawn(path)?;
        let recent = Arc::new(Recent::new());
        let (place, reserve) = (Place::new(path), Reserve::open(path));
        let writer = writer::spawn(conn, log, place, reserve, Arc::clone(&recent), vec![thread])?;
        Ok(Self { path: path.to_owned(), writer, reader, recent })
    }

    /// Commits so far; far fewer than operations under load.
    #[must_use]
    pub fn commits(&self) -> u64 {
        self.writer.commits()
    }
}

#[cfg(test)]
mod tests {
    use homing_model::{Attempt, Ending, OsText, Spec, TaskId, Timestamp};

    use super::*;
    use crate::outbox::Report;
    use crate::record::NewTask;
    use crate::sqlite::threads::writer::Durability::Relaxed;
    use crate::store::{Applied, Op, Queue, Submit, Submitted, Tasks, Upkeep};

    /// Makes the disk look full: the file cannot grow beyond so many pages.
    fn limit_pages(store: &SqliteStore, pages: u32) -> Op<u32> {
        store.writer.run(Relaxed, move |conn| {
            Ok(conn.pragma_update_and_check(None, "max_page_count", pages, |row| row.get(0))?)
        })
    }

    fn submit(n: u64) -> Submit {
        let spec = Spec { argv: vec![OsText::from("x".repeat(2000).as_str())], ..Spec::default() };
        let task = NewTask {
            kind: homing_model::Kind::Command,
            tracking: None,
            agent: None,
            id: TaskId::from_entropy(n),
            spec,
            owner: "ann".into(),
            command: "x".into(),
            env_names: Vec::new(),
            volatile_secrets: Vec::new(),
            masks: homing_model::Masks::default(),
            parent: None,
            depth: 0,
            network: false,
            node: "here".into(),
            boot_id: "this".into(),
        };
        Submit {
            task,
            on_duplicate: homing_model::OnDuplicate::Join,
            children: u32::MAX,
            idempotency: None,
            policy: homing_model::queue::StartPolicy::default(),
        }
    }

    #[tokio::test]
    async fn a_store_without_its_reader_is_not_intact() {
        let folder = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(&folder.path().join("homing.db")).unwrap();
        assert_eq!(store.intact().await, Ok(()));
        let _ = store.reader.run(|_| -> Result<(), Error> { panic!("by mistake") }).await;
        assert_eq!(store.intact().await, Err(Error::Closed));
    }

    #[tokio::test]
    async fn a_full_disk_refuses_what_does_not_fit_and_keeps_the_rest() {
        let folder = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(&folder.path().join("homing.db")).unwrap();
        let now = Timestamp::from_millis(0);
        store.submit(submit(0), now).await.unwrap();
        limit_pages(&store, 40).await.unwrap();
        let mut accepted = 1;
        let refusal = loop {
            match store.submit(submit(accepted), now).await {
                Ok(_) => accepted += 1,
                Err(error) => break error,
            }
            assert!(accepted < 100, "forty pages hold no hundred such tasks");
        };
        assert_eq!(refusal, Error::Full);
        // Whoever shares the batch with one that does not fit is told the same, or is done; never half.
        let crowd: Vec<_> = (500..520).map(|n| store.submit(submit(n), now)).collect();
        for (n, answer) in (500..).zip(crowd) {
            let done = answer.await.is_ok();
            assert_eq!(store.get(TaskId::from_entropy(n)).await.unwrap().is_some(), done);
        }
        let (live, damaged) = store.live().await.unwrap();
        assert!(live.len() as u64 >= accepted && damaged.is_empty());

        limit_pages(&store, 4000).await.unwrap();
        assert!(matches!(store.submit(submit(accepted), now).await, Ok(Submitted::Created(_))));
        let attempt = Attempt { task: TaskId::from_entropy(0), number: 1 };
        let ended =
            store.finish(attempt, Ending::lost("no reason", Vec::new(), now), Report::default()).await;
        assert!(matches!(ended, Ok(Applied::Done(_))));
        assert_eq!(store.check().await, Ok(()));
    }
}
