//! Whether a name in a folder is still the file that was put there, and word when names in the folder come and go.
//!
//! Whoever removes or replaces a socket, a lock or the ledger under a running process does so by name; the open file stays what it
//! was. So the process compares the two: when the kernel says that something was removed or renamed, and now and then besides.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::fs::{AtFlags, Stat};

/// After a removal, how long to wait before anything is put back: whoever removes a whole folder is not to be hindered.
pub const SETTLE_MS: u64 = 300;

/// Which file a name means, or a descriptor holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    device: u64,
    inode: u64,
}

impl From<Stat> for Identity {
    fn from(stat: Stat) -> Self {
        Self { device: stat.st_dev, inode: stat.st_ino }
    }
}

/// What a name in a folder means now; none if it is not there. Links are not followed.
pub fn named(folder: impl AsFd, name: &str) -> Option<Identity> {
    rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).ok().map(Identity::from)
}

/// What a path means now; none if nothing is there. Links are not followed.
#[must_use]
pub fn at(path: &Path) -> Option<Identity> {
    rustix::fs::lstat(path).ok().map(Identity::from)
}

/// Which file a descriptor holds.
pub fn held(file: impl AsFd) -> Option<Identity> {
    rustix::fs::fstat(file).ok().map(Identity::from)
}

/// A descriptor that is readable when a name in this folder was removed or renamed, or the folder itself was. Does not block.
///
/// # Errors
/// If the system has none left.
pub fn changes(folder: &Path) -> io::Result<OwnedFd> {
    let changes = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
    let flags = WatchFlags::DELETE
        | WatchFlags::MOVE
        | WatchFlags::DELETE_SELF
        | WatchFlags::MOVE_SELF
        | WatchFlags::ONLYDIR;
    inotify::add_watch(&changes, folder, flags)?;
    Ok(changes)
}

/// Takes what such a descriptor holds; what it was is seen by looking.
pub fn drain(changes: impl AsFd) {
    let mut buffer = [0; 4096];
    while matches!(rustix::io::read(changes.as_fd(), &mut buffer), Ok(count) if count > 0) {}
}
