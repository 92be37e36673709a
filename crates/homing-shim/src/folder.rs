//! An attempt's folder: its lock, its start marker, and the names in it.
//!
//! Keeps P10. A shim locks the folder, then makes the marker, which only one can make, then executes the command; there is no other order in which a
//! command of ours is ever executed. The daemon makes the same marker before it declares an unstarted attempt ended. So whoever
//! comes second, a late shim or a hasty daemon, is told by the kernel. The marker stays for as long as the folder does.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use homing_sys::home::START_MARKER;
use rustix::fs::{self, AtFlags, FlockOperation, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

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

/// Opens a folder in another, without following a link.
///
/// # Errors
/// If it is not there, or not a folder.
pub fn open_in(parent: impl AsFd, name: &str) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(fs::openat(parent, name, flags, Mode::empty())?)
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
/// Where the environment's file is there it becomes the marker, by a rename that never replaces: as exclusive as O_EXCL, it ends the
/// environment in the same step, and no inode is made and freed for each task (which is what slows some filesystems down).
///
/// # Errors
/// If it could not be made for another reason.
pub fn mark(folder: impl AsFd) -> io::Result<Option<File>> {
    let folder = folder.as_fd();
    match fs::renameat_with(folder, ENVIRONMENT, folder, START_MARKER, RenameFlags::NOREPLACE) {
        Ok(()) => {
            let flags = OFlags::WRONLY | OFlags::TRUNC | OFlags::CLOEXEC | OFlags::NOFOLLOW;
            return Ok(Some(fs::openat(folder, START_MARKER, flags, Mode::empty())?.into()));
        }
        Err(Errno::EXIST) => return Ok(None),
        // No environment was written, or it became the marker already; or the filesystem knows no such rename.
        Err(Errno::NOENT | Errno::INVAL | Errno::NOSYS) => {}
        Err(error) => return Err(error.into()),
    }
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    match fs::openat(folder, START_MARKER, flags, Mode::RUSR | Mode::WUSR) {
        Ok(file) => {
            homing_sys::atomic_file::remove_at(folder, ENVIRONMENT)?;
            Ok(Some(file.into()))
        }
        Err(Errno::EXIST) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Makes sure that no environment is left in a folder whose attempt is over, however it came to that.
///
/// # Errors
/// If there is one and it cannot be removed.
pub fn forget_environment(folder: impl AsFd) -> io::Result<()> {
    let folder = folder.as_fd();
    homing_sys::atomic_file::remove_at(folder, ENVIRONMENT)?;
    // A shim that was killed right after its marker had no time to empty it.
    if crate::record::read(folder).is_ok_and(|record| record.is_none()) {
        let flags = OFlags::WRONLY | OFlags::TRUNC | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        match fs::openat(folder, START_MARKER, flags, Mode::empty()) {
            Ok(_) | Err(Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Whether the attempt was ever started, or declared never to be.
///
/// # Errors
/// If that cannot be seen.
pub fn is_marked(folder: impl AsFd) -> io::Result<bool> {
    match fs::statat(folder, START_MARKER, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(_) => Ok(true),
        Err(Errno::NOENT) => Ok(false),
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
    fn p10_the_environment_becomes_the_marker_once_and_is_gone() {
        let dir = tempfile::tempdir().unwrap();
        let folder = open(dir.path()).unwrap();
        std::fs::write(dir.path().join(ENVIRONMENT), "SECRET=canary").unwrap();
        assert!(mark(&folder).unwrap().is_some());
        assert!(mark(&folder).unwrap().is_none());
        assert_eq!(std::fs::read(dir.path().join(START_MARKER)).unwrap(), b"");
        // Written again by whoever: the marker still stands.
        std::fs::write(dir.path().join(ENVIRONMENT), "SECRET=canary").unwrap();
        assert!(mark(&folder).unwrap().is_none());
        forget_environment(&folder).unwrap();
        assert!(!dir.path().join(ENVIRONMENT).exists());
    }

    #[test]
    fn p10_a_held_folder_is_not_locked_twice() {
        let dir = tempfile::tempdir().unwrap();
        let (first, second) = (open(dir.path()).unwrap(), open(dir.path()).unwrap());
        assert!(lock(&first).unwrap());
        assert!(!lock(&second).unwrap());
        drop(first);
        // A process that another test is just starting may have it for a moment longer.
        while !lock(&second).unwrap() {
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_link_is_not_a_folder() {
        let dir = tempfile::tempdir().unwrap();
        let link = dir.path().join("link");
        std::os::unix::fs::symlink("/tmp", &link).unwrap();
        assert!(open(&link).is_err());
    }
}
