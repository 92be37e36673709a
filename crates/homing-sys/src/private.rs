//! The home as daemon, keeper and clients open it: a real folder, ours, closed to others.
//!
//! Keeps P11. The folder is opened once, without following a link, and what was opened is what is checked and used, so that nobody
//! can put another in its place in between. Sockets in it are reached through `/proc/self/fd`, which also allows for paths that are
//! too long for a socket address.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags};

use crate::sys;

/// What another user could do harm by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The home is a link.
    Link,
    /// The home is a file, or another thing that is no folder.
    NotAFolder,
    /// The home belongs to this user.
    ForeignOwner(u32),
    /// The home has this mode.
    Open(u32),
    /// This user listens on a socket in the home.
    ForeignListener(u32),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Link => f.write_str("is a link, not a real folder"),
            Self::NotAFolder => f.write_str("is a file, not a real folder"),
            Self::ForeignOwner(uid) => write!(f, "belongs to another user (uid {uid})"),
            Self::Open(mode) => write!(f, "is open to other users (mode {mode:04o})"),
            Self::ForeignListener(uid) => write!(f, "is served by another user (uid {uid})"),
        }
    }
}

/// Why a home cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Another user could tamper with it.
    #[error("the home {} {fault}", home.display())]
    Untrusted {
        /// Which folder.
        home: PathBuf,
        /// What is wrong with it.
        fault: Fault,
    },
    /// It cannot be opened.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::Io(error) => error,
            error @ Error::Untrusted { .. } => Self::new(io::ErrorKind::PermissionDenied, error),
        }
    }
}

/// A home that was checked.
#[derive(Debug)]
pub struct PrivateHome {
    path: PathBuf,
    folder: OwnedFd,
}

impl PrivateHome {
    /// Opens and checks a home.
    ///
    /// # Errors
    /// If it is not there, or another user could tamper with it.
    pub fn open(home: &Path) -> Result<Self, Error> {
        // A slash at the end would follow a link.
        let path = home.components().as_path();
        let untrusted = |fault| Error::Untrusted { home: path.to_owned(), fault };
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder = rustix::fs::open(path, flags, Mode::empty()).map_err(io::Error::from)?;
        let found = rustix::fs::fstat(&folder).map_err(io::Error::from)?;
        match FileType::from_raw_mode(found.st_mode) {
            FileType::Directory => {}
            FileType::Symlink => return Err(untrusted(Fault::Link)),
            _ => return Err(untrusted(Fault::NotAFolder)),
        }
        if found.st_uid != rustix::process::geteuid().as_raw() {
            return Err(untrusted(Fault::ForeignOwner(found.st_uid)));
        }
        if found.st_mode & 0o077 != 0 {
            return Err(untrusted(Fault::Open(found.st_mode & 0o777)));
        }
        Ok(Self { path: path.to_owned(), folder })
    }

    /// Where a socket of this home can be connected to, for as long as this value lives.
    #[must_use]
    pub fn socket(&self, name: &str) -> PathBuf {
        format!("/proc/self/fd/{}/{name}", self.folder.as_raw_fd()).into()
    }

    /// Checks that our own user listens at the other end of a connection. Nothing may be sent before.
    ///
    /// # Errors
    /// If it is another user, or cannot be found out.
    pub fn check_listener(&self, connection: impl AsFd) -> Result<(), Error> {
        let (_, uid) = sys::peer(connection.as_fd())?;
        if uid == rustix::process::geteuid().as_raw() {
            return Ok(());
        }
        Err(Error::Untrusted { home: self.path.clone(), fault: Fault::ForeignListener(uid) })
    }

    /// The folder, to open what is in it.
    #[must_use]
    pub fn into_folder(self) -> OwnedFd {
        self.folder
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::os::unix::net::{UnixListener, UnixStream};

    use super::*;

    fn fault(path: &Path) -> Option<Fault> {
        match PrivateHome::open(path) {
            Err(Error::Untrusted { fault, .. }) => Some(fault),
            Err(Error::Io(error)) => panic!("{error}"),
            Ok(_) => None,
        }
    }

    #[test]
    fn p11_a_home_that_others_could_tamper_with_is_not_opened() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let folder = |name: &str, mode: u32| {
            std::fs::create_dir(at(name)).unwrap();
            std::fs::set_permissions(at(name), PermissionsExt::from_mode(mode)).unwrap();
        };
        folder("real", 0o700);
        folder("group", 0o710);
        folder("all", 0o755);
        symlink(at("real"), at("link")).unwrap();
        std::fs::write(at("file"), "").unwrap();
        for (name, expected) in [
            ("real", None),
            ("real/", None),
            ("group", Some(Fault::Open(0o710))),
            ("all", Some(Fault::Open(0o755))),
            ("link", Some(Fault::Link)),
            ("link/", Some(Fault::Link)),
            ("link/.", Some(Fault::Link)),
            ("file", Some(Fault::NotAFolder)),
        ] {
            assert_eq!(fault(&at(name)), expected, "{name}");
        }
        let absent = io::Error::from(PrivateHome::open(&at("absent")).unwrap_err());
        assert_eq!(absent.kind(), io::ErrorKind::NotFound);
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(at("real"), Some(65534), None).unwrap();
            assert_eq!(fault(&at("real")), Some(Fault::ForeignOwner(65534)));
        }
    }

    #[test]
    fn our_own_listener_is_trusted() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o700)).unwrap();
        let home = PrivateHome::open(dir.path()).unwrap();
        let _listener = UnixListener::bind(dir.path().join("a.sock")).unwrap();
        let connection = UnixStream::connect(home.socket("a.sock")).unwrap();
        assert!(home.check_listener(&connection).is_ok());
        assert!(home.check_listener(std::fs::File::open("/dev/null").unwrap()).is_err(), "no socket");
    }
}
