//! A process that homing did not start, watched to its end by a pidfd. Nothing polls.
//!
//! A pid alone is not an identity: the process is its pid and its start time in one boot, and the descriptor that is watched was checked
//! against both. How it ended only its parent is told.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use homing_store::Record;
use homing_sys::process;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tokio::net::UnixStream;
use tokio::sync::oneshot;

use super::lose;
use crate::engine::Inner;

/// A living process, held.
#[derive(Debug)]
pub(crate) struct Foreign {
    pub(super) pid: u32,
    /// In the kernel's ticks since boot.
    pub(super) start: u64,
    pub(super) name: String,
    pidfd: OwnedFd,
}

/// Why a process cannot be watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Absent {
    #[error("there is no such process")]
    Gone,
    #[error("it is a thread of a process, not a process")]
    Thread,
    #[error("{0}")]
    System(Errno),
}

/// Holds the living process of that id.
pub(super) fn open(pid: u32) -> Result<Foreign, Absent> {
    let number = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(Absent::Gone)?;
    let pidfd = pidfd_open(number, PidfdFlags::empty()).map_err(|error| match error {
        Errno::SRCH => Absent::Gone,
        Errno::INVAL | Errno::NOENT => Absent::Thread,
        other => Absent::System(other),
    })?;
    // What is read here is of the process that the descriptor holds only if that still lives afterwards: its pid is then nobody else's.
    let process = process::stat(pid).ok_or(Absent::Gone)?;
    // Its first thread may have ended before the others: only the descriptor knows.
    if has_ended(&pidfd) {
        return Err(Absent::Gone);
    }
    Ok(Foreign { pid, start: process.start, name: process.name, pidfd })
}

/// A pidfd is readable once its process has ended.
fn has_ended(pidfd: &OwnedFd) -> bool {
    let mut watched = [PollFd::new(pidfd, PollFlags::IN)];
    poll(&mut watched, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|ready| ready > 0)
}

/// No socket; the stream type is only how the runtime watches it.
fn watched(pidfd: OwnedFd) -> io::Result<UnixStream> {
    fcntl_setfl(&pidfd, OFlags::NONBLOCK)?;
    UnixStream::from_std(std::os::unix::net::UnixStream::from(pidfd))
}

/// What is to be said when it ends.
pub(super) fn ended(pid: u32) -> String {
    format!("process {pid} ended; how is not known, since homing did not start it")
}

impl Foreign {
    /// Watches it to its end, which ends the task. On cancel (the task left the roll, or shutdown) the descriptor is closed; an error of
    /// the runtime leaves the task to the next pass.
    pub(super) async fn watch(self, inner: Arc<Inner>, record: Record, cancelled: oneshot::Receiver<()>) {
        let watched = match watched(self.pidfd) {
            Ok(watched) => watched,
            Err(error) => {
                tracing::warn!(task = %record.id, %error, "a process cannot be watched now; the next pass tries again");
                return;
            }
        };
        tokio::select! {
            () = inner.shutdown.cancelled() => return,
            _ = cancelled => return,
            readable = watched.readable() => if readable.is_err() { return },
        }
        if let Some(record) = inner.roll.ending(&record.id) {
            lose::lose(inner, record, ended(self.pid)).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_living_process_can_be_held() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        // It has that name a moment after whoever spawned it goes on.
        while process::stat(child.id()).is_some_and(|process| process.name != "sleep") {
            std::thread::yield_now();
        }
        let held = open(child.id()).unwrap();
        assert_eq!((held.pid, held.name.as_str()), (child.id(), "sleep"));
        assert_eq!(Some(held.start), process::stat(child.id()).map(|process| process.start));
        child.kill().unwrap();
        // Killed, and not waited for: it cannot do anything any more.
        until_zombie(child.id());
        assert_eq!(open(child.id()).unwrap_err(), Absent::Gone);
        child.wait().unwrap();
        assert_eq!(open(child.id()).unwrap_err(), Absent::Gone);
        for pid in [0, u32::MAX, i32::MAX.unsigned_abs()] {
            assert_eq!(open(pid).unwrap_err(), Absent::Gone);
        }
    }

    fn until_zombie(pid: u32) {
        while process::stat(pid).is_some_and(|process| !process.zombie) {
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_thread_is_no_process() {
        let (told, id) = std::sync::mpsc::channel();
        let (done, waiting) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            told.send(rustix::thread::gettid()).unwrap();
            let _ = waiting.recv();
        });
        let id = u32::try_from(id.recv().unwrap().as_raw_nonzero().get()).unwrap();
        assert_eq!(open(id).unwrap_err(), Absent::Thread);
        drop(done);
        thread.join().unwrap();
    }
}
