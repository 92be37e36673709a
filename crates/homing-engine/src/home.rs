//! The home folder: private, locked by one engine, and where each attempt's folder is.

use std::fs::DirBuilder;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use homing_model::{Attempt, TaskId};
use homing_shim::folder;
use homing_sys::home;
use homing_sys::private::{self, PrivateHome};
use parking_lot::Mutex;
use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

/// Why a home cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum HomeError {
    /// Somebody else could tamper with it.
    #[error("{} {why}", path.display())]
    Hostile {
        /// Which folder.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// It cannot be made or read.
    #[error("{}: {source}", path.display())]
    Io {
        /// Which folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The filesystem does not know locks.
    #[error("{} is on a filesystem without working locks", .0.display())]
    NoLocks(PathBuf),
    /// Another engine serves it.
    #[error("another engine serves {}", .0.display())]
    InUse(PathBuf),
}

/// Makes a home if it is not there, and makes sure that it is a real folder, ours, and closed to others.
///
/// # Errors
/// If it is not.
pub fn prepare(path: &Path) -> Result<(), HomeError> {
    make(path).map(drop)
}

fn make(path: &Path) -> Result<PrivateHome, HomeError> {
    let io = |source| HomeError::Io { path: path.to_owned(), source };
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).map_err(io)?;
    }
    match DirBuilder::new().mode(0o700).create(path) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(source) => return Err(io(source)),
    }
    PrivateHome::open(path).map_err(|error| match error {
        private::Error::Untrusted { home, fault } => {
            HomeError::Hostile { path: home, why: fault.to_string() }
        }
        private::Error::Io(source) => io(source),
    })
}

/// A home that this engine holds.
#[derive(Debug)]
pub(crate) struct Home {
    path: PathBuf,
    lock: OwnedFd,
    /// The home itself.
    held: OwnedFd,
    /// The folder with those of all tasks, as it was opened: what somebody puts in its place is not gone into.
    tasks: Mutex<Arc<OwnedFd>>,
}

impl Drop for Home {
    fn drop(&mut self) {
        // Closing is not enough: a process that another thread is just forking holds a copy of the descriptor until it executes.
        let _ = rustix::fs::flock(&self.lock, FlockOperation::Unlock);
    }
}

impl Home {
    /// Prepares and locks it.
    pub(crate) fn open(path: &Path) -> Result<Self, HomeError> {
        let held = make(path)?.into_folder();
        let io = |source: Errno| HomeError::Io { path: path.to_owned(), source: source.into() };
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let lock =
            rustix::fs::openat(&held, home::DAEMON_LOCK, flags, Mode::RUSR | Mode::WUSR).map_err(io)?;
        match rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Err(HomeError::InUse(path.to_owned())),
            Err(Errno::NOLCK | Errno::NOSYS | Errno::OPNOTSUPP | Errno::INVAL) => {
                return Err(HomeError::NoLocks(path.to_owned()));
            }
            Err(error) => return Err(io(error)),
        }
        let tasks = make_tasks(&held).map_err(|source| {
            let path = path.join(home::TASKS);
            match Errno::from_io_error(&source) {
                Some(Errno::NOTDIR | Errno::LOOP) => {
                    HomeError::Hostile { path, why: "is not a real folder".to_owned() }
                }
                _ => HomeError::Io { path, source },
            }
        })?;
        Ok(Self { path: path.to_owned(), lock, held, tasks: Mutex::new(Arc::new(tasks)) })
    }

    fn tasks(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.tasks.lock())
    }

    /// The folder that new tasks go into. One that was deleted is made anew; one that something else has taken the place of is not ours.
    fn sound_tasks(&self) -> io::Result<Arc<OwnedFd>> {
        let tasks = self.tasks();
        let ours = rustix::fs::fstat(&*tasks)?;
        match rustix::fs::statat(&self.held, home::TASKS, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(there) if (there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino) => Ok(tasks),
            Ok(_) => Err(io::Error::other(
                "something else was put in the place of the folder `tasks`; put it back, or restart the daemon",
            )),
            Err(Errno::NOENT) => {
                let anew = Arc::new(make_tasks(&self.held)?);
                tracing::error!("the folder of all tasks was deleted; it was made anew");
                *self.tasks.lock() = Arc::clone(&anew);
                Ok(anew)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Whether it is still the folder that we locked: one that was deleted serves nobody.
    pub(crate) fn is_there(&self) -> bool {
        let ours = rustix::fs::fstat(&self.lock);
        let there = std::fs::metadata(self.path.join(home::DAEMON_LOCK));
        matches!((ours, there), (Ok(ours), Ok(there)) if ours.st_ino == there.ino() && ours.st_dev == there.dev())
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// A task's folder.
    pub(crate) fn task(&self, id: &TaskId) -> PathBuf {
        self.path.join(home::TASKS).join(id.as_str())
    }

    /// The same, open.
    pub(crate) fn open_task(&self, id: &TaskId) -> io::Result<OwnedFd> {
        folder::open_in(&*self.tasks(), id.as_str())
    }

    /// An attempt's folder, open: the task's own for the first, one below it for later ones.
    pub(crate) fn open_attempt(&self, attempt: &Attempt) -> io::Result<OwnedFd> {
        let task = self.open_task(&attempt.task)?;
        if attempt.number <= 1 { Ok(task) } else { folder::open_in(&task, &attempt.number.to_string()) }
    }

    /// The file with an attempt's first bytes of output.
    pub(crate) fn output(&self, attempt: &Attempt) -> PathBuf {
        let task = self.task(&attempt.task);
        let folder = if attempt.number <= 1 { task } else { task.join(attempt.number.to_string()) };
        folder.join("output.log")
    }

    /// Makes the folder of a task's first attempt, new.
    pub(crate) fn make_task(&self, id: &TaskId) -> io::Result<OwnedFd> {
        let tasks = self.sound_tasks()?;
        rustix::fs::mkdirat(&*tasks, id.as_str(), Mode::RWXU)?;
        folder::open_in(&*tasks, id.as_str())
    }

    /// Makes the names of the tasks' folders survive a power cut.
    pub(crate) fn sync_tasks(&self) -> io::Result<()> {
        Ok(rustix::fs::fsync(&*self.tasks())?)
    }

    /// Removes a task's folder and all in it.
    pub(crate) fn remove_task(&self, id: &TaskId) -> io::Result<()> {
        // Through the descriptor, so that what was put in the folder's place is not touched.
        let tasks = self.tasks();
        match std::fs::remove_dir_all(format!("/proc/self/fd/{}/{id}", tasks.as_raw_fd())) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => Ok(()),
        }
    }
}

/// Makes the folder of all tasks, if it is not there, and opens it.
fn make_tasks(home: impl AsFd) -> io::Result<OwnedFd> {
    match rustix::fs::mkdirat(&home, home::TASKS, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => folder::open_in(home, home::TASKS),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn p11_a_home_that_others_can_enter_or_that_is_a_link_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let open = dir.path().join("open");
        std::fs::create_dir(&open).unwrap();
        std::fs::set_permissions(&open, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert!(matches!(prepare(&open), Err(HomeError::Hostile { .. })));
        let link = dir.path().join("link");
        std::os::unix::fs::symlink("/tmp", &link).unwrap();
        for path in [link.clone(), link.join("")] {
            assert!(matches!(prepare(&path), Err(HomeError::Hostile { .. })), "{}", path.display());
        }
        assert!(prepare(&dir.path().join("a/b")).is_ok());
    }

    #[test]
    fn one_home_has_one_engine() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("home");
        let first = Home::open(&path).unwrap();
        assert!(matches!(Home::open(&path), Err(HomeError::InUse(_))));
        drop(first);
        assert!(Home::open(&path).is_ok());
    }

    #[test]
    fn p11_a_link_in_the_place_of_the_tasks_is_not_followed_and_a_deleted_folder_is_made_anew() {
        let dir = tempfile::tempdir().unwrap();
        let (path, elsewhere) = (dir.path().join("home"), dir.path().join("elsewhere"));
        let home = Home::open(&path).unwrap();
        let [first, second, third] = [1, 2, 3].map(TaskId::from_entropy);
        home.make_task(&first).unwrap();
        std::fs::create_dir(&elsewhere).unwrap();
        std::fs::rename(path.join("tasks"), dir.path().join("moved")).unwrap();
        std::os::unix::fs::symlink(&elsewhere, path.join("tasks")).unwrap();
        assert!(home.make_task(&second).is_err());
        assert!(home.open_task(&first).is_ok(), "what was there is still ours");
        std::fs::create_dir(elsewhere.join(first.as_str())).unwrap();
        home.remove_task(&first).unwrap();
        assert!(
            elsewhere.join(first.as_str()).exists()
                && !dir.path().join("moved").join(first.as_str()).exists()
        );
        std::fs::remove_file(path.join("tasks")).unwrap();
        home.make_task(&third).unwrap();
        assert!(path.join("tasks").join(third.as_str()).is_dir());
    }
}
