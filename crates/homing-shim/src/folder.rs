//! An attempt's folder: its lock, its start marker, and the names in it.
//!
//! Keeps P10. A shim locks the folder, then makes the marker with O_EXCL, then executes the command; there is no other order in which a
//! command of ours is ever executed. The daemon makes the same marker before it declares an unstarted attempt ended. So whoever
//! comes second, a late shim or a hasty daemon, is told by the kernel. The marker stays for as long as the folder does.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{self, AtFlags, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

/// The start marker.
pub const MARKER: &str = "started";
/// The shim's socket, for a daemon that was not there when the shim was made.
pub const SOCKET: &str = "shim.sock";
/// The environment, while the task may still start.
pub const ENVIRONMENT: &str = "env";

/// Opens a folder without following a link in its last step.
///
/// # Errors
/// If it is not there, or not a folder.
pub fn open(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(fs::open(path, flags, Mode::empty())?)
}

/// Takes the folder's lock; false if a living shim holds it.
///
/// # Errors
/// If the filesystem has no locks.
pub fn lock(folder: impl AsFd) -> io::Result<bool> {
    match fs::flock(folder, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Makes the start marker; none if it was there. The file is empty; a shim keeps its exit record in it.
///
/// # Errors
/// If it could not be made for another reason.
pub fn mark(folder: impl AsFd) -> io::Result<Option<File>> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    match fs::openat(folder, MARKER, flags, Mode::RUSR | Mode::WUSR) {
        Ok(file) => Ok(Some(file.into())),
        Err(Errno::EXIST) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Whether the attempt was ever started, or declared never to be.
///
/// # Errors
/// If that cannot be seen.
pub fn is_marked(folder: impl AsFd) -> io::Result<bool> {
    match fs::statat(folder, MARKER, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(_) => Ok(true),
        Err(Errno::NOENT) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Removes a name, if it is there.
///
/// # Errors
/// If it is there and cannot be removed.
pub fn remove(folder: impl AsFd, name: &str) -> io::Result<()> {
    match fs::unlinkat(folder, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p10_the_marker_is_made_once() {
        let dir = tempfile::tempdir().unwrap();
        let folder = open(dir.path()).unwrap();
        assert!(!is_marked(&folder).unwrap());
        assert!(mark(&folder).unwrap().is_some());
        assert!(mark(&folder).unwrap().is_none());
        assert!(is_marked(&folder).unwrap());
    }

    #[test]
    fn p10_a_held_folder_is_not_locked_twice() {
        let dir = tempfile::tempdir().unwrap();
        let (first, second) = (open(dir.path()).unwrap(), open(dir.path()).unwrap());
        assert!(lock(&first).unwrap());
        assert!(!lock(&second).unwrap());
        drop(first);
        assert!(lock(&second).unwrap());
    }

    #[test]
    fn a_link_is_not_a_folder() {
        let dir = tempfile::tempdir().unwrap();
        let link = dir.path().join("link");
        std::os::unix::fs::symlink("/tmp", &link).unwrap();
        assert!(open(&link).is_err());
    }
}
