//! Who started this keeper, and whether it still lives: a fact that decides what a keeper does that nobody talks to.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, getppid, pidfd_open};

use crate::clock;

/// How long a starter that lives may take to say what it wants.
const FIRST_WORD_MS: i64 = 10_000;

/// The process that waits for the keeper to listen.
#[derive(Debug)]
pub(super) struct Starter {
    /// Readable when it is gone; none if it was gone before we could look.
    pidfd: Option<OwnedFd>,
    until: i64,
}

impl Starter {
    /// Our parent, if it is still the one who said its pid. Must be called before the fork that leaves it.
    pub(super) fn find(said: Option<u32>) -> Self {
        let is_parent = |pid: &Pid| {
            getppid() == Some(*pid)
                && said.is_none_or(|said| {
                    i32::try_from(said).is_ok_and(|said| said == pid.as_raw_nonzero().get())
                })
        };
        // Looked at again once held: as long as it is our parent, its pid is its own.
        let parent = getppid().filter(is_parent);
        let held = parent.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        let pidfd = held.filter(|_| parent.as_ref().is_some_and(is_parent));
        Self { pidfd, until: clock::monotonic() + FIRST_WORD_MS }
    }

    /// The descriptor to watch.
    pub(super) fn watched(&self) -> Option<BorrowedFd<'_>> {
        self.pidfd.as_ref().map(AsFd::as_fd)
    }

    /// Whether it has died.
    pub(super) fn is_gone(&self) -> bool {
        let Some(pidfd) = &self.pidfd else { return true };
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        matches!(poll(&mut [PollFd::new(pidfd, PollFlags::IN)], Some(&now)), Ok(ready) if ready > 0)
    }

    /// Whether it still has time.
    pub(super) fn may_still_come(&self) -> bool {
        clock::monotonic() < self.until
    }

    /// When its time is over.
    pub(super) const fn deadline(&self) -> i64 {
        self.until
    }
}
