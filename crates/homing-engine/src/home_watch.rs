//! Whether what the home must hold is still there: the lock, the ledger; and word for others who have something in it.
//!
//! Asked when names in the home were removed or renamed, and by every pass. A ledger that was deleted is put back by the store; this
//! engine is over then, since it has the old one open, and the next one opens what was put back. On cancel (shutdown) it ends.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use homing_store::store;
use homing_sys::presence;
use tokio::io::Interest;
use tokio::net::UnixStream;

use crate::background::Reporter;
use crate::engine::Inner;

/// Looks whenever names in the home come and go, until the engine ends.
pub(crate) async fn run(inner: Arc<Inner>, report: Reporter) {
    // No socket; the stream type is only how the runtime watches it.
    let watched = presence::changes(inner.home.path())
        .and_then(|changes| UnixStream::from_std(std::os::unix::net::UnixStream::from(changes)));
    let changes = match watched {
        Ok(changes) => changes,
        Err(error) => {
            report.error(&error);
            tracing::warn!(%error, "changes of the home are only noticed by the reconcile pass");
            return;
        }
    };
    loop {
        tokio::select! {
            () = inner.shutdown.cancelled() => return,
            changed = next(&changes) => if !changed { return },
        }
        report.run();
        look(&inner).await;
    }
}

/// Waits until something changed, and a moment longer: whoever removes the whole home is not to be hindered.
async fn next(changes: &UnixStream) -> bool {
    if changes.readable().await.is_err() {
        return false;
    }
    tokio::time::sleep(Duration::from_millis(presence::SETTLE_MS)).await;
    let empty = || -> io::Result<()> {
        presence::drain(changes);
        Err(io::ErrorKind::WouldBlock.into())
    };
    let _ = changes.try_io(Interest::READABLE, empty);
    true
}

/// Looks now. False if there is nothing left to serve with this engine.
pub(crate) async fn look(inner: &Inner) -> bool {
    if !inner.home.is_there() {
        tracing::error!(home = %inner.home.path().display(), "the home folder is gone");
        inner.over.send_replace(true);
        return false;
    }
    match inner.store.intact().await {
        // Closed: a thread of the store is gone, by a panic. The next daemon opens the ledger anew.
        Err(store::Error::PutBack | store::Error::Closed) => {
            inner.over.send_replace(true);
            return false;
        }
        Err(error @ store::Error::Displaced(_)) => inner.set_degraded(Some(error.to_string())),
        // Trouble with the disk is told by whoever wanted to write.
        Ok(()) | Err(_) => {}
    }
    inner.looked.send_modify(|count| *count += 1);
    true
}
