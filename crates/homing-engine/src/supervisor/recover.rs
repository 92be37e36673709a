//! What became of an attempt whose shim is not connected: the facts, in an order in which none can change meanwhile.
//!
//! Keeps P2 and P10. The exit record is the truth if it is there. A held lock is a living shim. A free lock is taken
//! before the rest is read, so that no late shim can begin meanwhile. Then a marker without a record means that the
//! shim was killed, and no marker that the attempt never began. After another boot no shim lives. No timeout decides
//! anything here.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use homing_model::Ending;
use homing_shim::folder;
use homing_shim::record::{self, ExitRecord};
use homing_shim::wire::ToShim;
use homing_store::Record;
use tokio::net::UnixStream;

use crate::engine::Inner;
use crate::supervisor::ending;
use crate::supervisor::orphans;
use crate::supervisor::{self, Link};

/// A shim binds its socket when it sees that its daemon is gone, which takes it a moment; how often to look, and how long to pause.
const LOOKS: u32 = 200;
const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(10);

/// What became of an attempt.
pub(crate) enum AttemptState {
    /// A shim lives; this is the connection to it, and it was asked for its state.
    Alive(Link),
    /// It ended.
    Ended(Box<Ending>),
    /// It had not begun when we held the lock, which is free again: the next process that makes the marker decides.
    NotStarted(OwnedFd),
    /// The facts cannot be read now.
    Unknown(String),
}

/// Finds out what became of an attempt.
pub(crate) async fn recover(inner: &Arc<Inner>, record: &Record) -> AttemptState {
    let same_boot = record.boot_id == inner.boot_id;
    let lost = |reason: &str| AttemptState::Ended(Box::new(ending::lost(inner, record, reason, Vec::new())));
    let attempt = match inner.home.open_attempt(&record.attempt()) {
        Ok(attempt) => attempt,
        Err(error) if is_missing(&error) && !same_boot => return lost("machine rebooted"),
        Err(error) if is_missing(&error) => {
            let survivors = orphans::end(inner, record).await;
            let ending = ending::lost(inner, record, "the task's folder is missing", survivors);
            return AttemptState::Ended(Box::new(ending));
        }
        Err(error) => return AttemptState::Unknown(error.to_string()),
    };
    let mut pause = FIRST_PAUSE;
    for _ in 0..LOOKS {
        // One that cannot be read decides nothing yet: a living shim has the truth, and a power cut may leave a name without its bytes.
        if let Ok(Some(exit)) = read_record(&attempt, record) {
            return AttemptState::Ended(Box::new(ending::ending(exit)));
        }
        if !same_boot {
            return lost("machine rebooted");
        }
        match folder::lock(&attempt) {
            Ok(true) => return unattended(inner, record, attempt).await,
            Ok(false) => {}
            Err(error) => return AttemptState::Unknown(error.to_string()),
        }
        if let Ok(stream) = connect(&attempt).await {
            return greet(stream).await;
        }
        // It holds the lock and does not listen yet, or no longer: look again.
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
    AttemptState::Unknown("a shim holds the attempt's folder and does not answer".into())
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// The lock is ours, so no shim lives and none can begin.
async fn unattended(inner: &Arc<Inner>, record: &Record, attempt: OwnedFd) -> AttemptState {
    // The shim may have written its record and left between our first look and the lock.
    let damage = match read_record(&attempt, record) {
        Ok(Some(exit)) => return AttemptState::Ended(Box::new(ending::ending(exit))),
        Ok(None) => None,
        Err(Unreadable::Now(why)) => return AttemptState::Unknown(why),
        Err(Unreadable::Ever(why)) => Some(why),
    };
    match folder::is_marked(&attempt) {
        Ok(marked) if marked || damage.is_some() => {
            let survivors = orphans::end(inner, record).await;
            let reason = damage.unwrap_or_else(|| "supervisor killed".to_owned());
            AttemptState::Ended(Box::new(ending::lost(inner, record, &reason, survivors)))
        }
        Ok(_) => {
            // Given back by closing; the descriptor that goes on is a new one, without the lock.
            drop(attempt);
            let again = inner.home.open_attempt(&record.attempt());
            again.map_or_else(|error| AttemptState::Unknown(error.to_string()), AttemptState::NotStarted)
        }
        Err(error) => AttemptState::Unknown(error.to_string()),
    }
}

/// Why a record that is there tells nothing.
enum Unreadable {
    /// Another look may read it: a shortage of the system, or a disk that fails.
    Now(String),
    /// What is there is no record of this attempt, and will not become one.
    Ever(String),
}

/// The record, if it is of this attempt.
fn read_record(attempt: impl AsFd, record: &Record) -> Result<Option<ExitRecord>, Unreadable> {
    match record::read(attempt) {
        Ok(Some(exit)) if exit.task == record.id.as_str() && exit.attempt == record.attempt => Ok(Some(exit)),
        Ok(Some(_)) => Err(Unreadable::Ever("its exit record is of another attempt".into())),
        Ok(None) => Ok(None),
        Err(record::Error::Io(error)) if !is_something_else(&error) => {
            Err(Unreadable::Now(error.to_string()))
        }
        Err(error) => Err(Unreadable::Ever(error.to_string())),
    }
}

/// Whether the name stands for something that is no file: a folder, a link, a socket.
fn is_something_else(error: &io::Error) -> bool {
    let errno = rustix::io::Errno::from_io_error(error);
    matches!(errno, Some(rustix::io::Errno::ISDIR | rustix::io::Errno::LOOP | rustix::io::Errno::NXIO))
}

/// Connects to a shim through its folder's descriptor: no path is too long.
pub(crate) async fn connect(attempt: &OwnedFd) -> io::Result<UnixStream> {
    UnixStream::connect(format!("/proc/self/fd/{}/{}", attempt.as_raw_fd(), folder::SOCKET)).await
}

async fn greet(mut stream: UnixStream) -> AttemptState {
    match supervisor::send(&mut stream, &ToShim::Hello).await {
        Ok(()) => AttemptState::Alive(Link::new(stream)),
        Err(error) => AttemptState::Unknown(error.to_string()),
    }
}
