//! While no daemon is there: whoever would bring it back is watched, and its place taken when it is gone. Keeps P4.
//!
//! A keeper that lives restarts the daemon, with the patience that it thinks right; nobody interferes with that. When it is gone too, a
//! shim starts both. Of many shims one does: who has the lock on the home's folder. It is done by a process of its own, so that the
//! shim goes on capturing; that process is no child of the shim's, or it and the new keeper would count as the task's.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use super::revive;
use crate::{clock, folder, keeper};
use homing_sys::{home, sys};

/// Before looking again at what nobody tells: whether the one who revives has a keeper yet. Longer each time.
const FIRST_PAUSE_MS: i64 = 20;
const LONGEST_PAUSE_MS: i64 = 30_000;
/// Looks that find nobody after which this shim gives up: whatever keeps a daemon from coming is not mended by trying.
const LOOKS: u32 = 14;

/// The watch over one absence of the daemon.
#[derive(Debug, Default)]
pub(super) struct Vigil {
    /// Readable when the keeper is gone.
    keeper: Option<OwnedFd>,
    /// When to look again, with no keeper there.
    look_at: Option<i64>,
    /// Looks in a row that found nobody.
    vain: u32,
}

impl Vigil {
    /// The descriptor to watch, if there is a keeper.
    pub(super) fn watched(&self) -> Option<BorrowedFd<'_>> {
        self.keeper.as_ref().map(AsFd::as_fd)
    }

    /// When to be asked to look.
    pub(super) const fn deadline(&self) -> Option<i64> {
        self.look_at
    }

    /// Who is there to bring a daemon back? If nobody, it is begun here, or by whoever was faster.
    pub(super) fn look(&mut self, path: &Path) {
        self.look_at = None;
        self.keeper = None;
        // A stop on purpose is respected, and a home that is gone is not served.
        if home::is_stopped(path) || !path.is_dir() {
            return;
        }
        self.keeper = keeper::watch(path);
        if self.keeper.is_some() {
            return;
        }
        self.vain += 1;
        if self.vain > LOOKS {
            return;
        }
        begin_revival(path);
        let pause = (FIRST_PAUSE_MS << (self.vain - 1).min(16)).min(LONGEST_PAUSE_MS);
        self.look_at = Some(clock::monotonic() + pause);
    }

    /// A daemon is there.
    pub(super) fn end(&mut self) {
        *self = Self::default();
    }
}

/// Starts a process that brings keeper and daemon back, unless one is at it.
pub(super) fn begin_revival(path: &Path) {
    let Ok(turn) = folder::open(path) else { return };
    if !folder::lock(&turn).is_ok_and(|ours| ours) {
        return;
    }
    if let Ok(sys::Fork::Child) = sys::fork_sibling() {
        // Nothing of the task's is held by it: only the turn, until the daemon is there or cannot be had.
        sys::close_all_but(turn.as_fd(), turn.as_fd());
        let _ = rustix::thread::set_name(c"homing-revive");
        revive::revive(path);
        sys::exit_now(0);
    }
}
