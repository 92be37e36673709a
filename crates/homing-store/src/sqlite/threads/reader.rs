//! The thread that reads. Each read sees one moment of the ledger, and none holds up the writer.

use std::path::Path;
use std::sync::mpsc::{self, Sender};
use std::thread::{self, JoinHandle};

use rusqlite::Connection;
use tokio::sync::oneshot;

use crate::sqlite::disk::open;
use crate::store::{Error, Op};

type Read = Box<dyn FnOnce(&Connection) + Send>;

/// Sends reads to the reader.
#[derive(Debug)]
pub(in crate::sqlite) struct Handle {
    // Unbounded for the reason given at the writer's. `None` tells the thread to end.
    reads: Sender<Option<Read>>,
}

impl Handle {
    /// Runs `work` in a read transaction.
    pub(in crate::sqlite) fn run<T, F>(&self, work: F) -> Op<T>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, Error> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let read: Read = Box::new(move |conn| {
            let _ = reply.send(snapshot(conn, work));
        });
        // A failed send drops the reply, which the answer then shows.
        let _ = self.reads.send(Some(read));
        Box::pin(async move { answer.await.unwrap_or(Err(Error::Closed)) })
    }

    /// Ends the thread after the reads that were sent before.
    pub(in crate::sqlite) fn close(&self) {
        let _ = self.reads.send(None);
    }
}

/// Starts the reader. It ends when its handle is gone or closes it.
pub(in crate::sqlite) fn spawn(path: &Path) -> Result<(Handle, JoinHandle<()>), Error> {
    let conn = open::open_reader(path)?;
    let (reads, inbox) = mpsc::channel::<Option<Read>>();
    let thread = thread::Builder::new()
        .name("homing-read".into())
        .spawn(move || {
            while let Ok(Some(read)) = inbox.recv() {
                read(&conn);
            }
        })
        .map_err(|error| Error::Io(format!("the reader's thread could not be started: {error}")))?;
    Ok((Handle { reads }, thread))
}

/// Gives `work` one unchanging view, however many statements it needs.
pub(in crate::sqlite) fn snapshot<T>(
    conn: &Connection,
    work: impl FnOnce(&Connection) -> Result<T, Error>,
) -> Result<T, Error> {
    let tx = conn.unchecked_transaction()?;
    let answer = work(&tx);
    tx.finish()?;
    answer
}
