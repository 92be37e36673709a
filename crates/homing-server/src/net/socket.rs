//! The socket of a home: where it may be, and how it comes to be there.
//!
//! Keeps P11. The folder is opened once, without following a link, and what was opened is what is checked and bound in: nobody
//! can put another folder in its place in between. The socket is bound under a temporary name, closed to others, and renamed:
//! whoever finds `homing.sock` finds it ready, and the one of an earlier daemon is replaced in one step. It is never unlinked at
//! the end, since by then it may be the next daemon's. Binding and connecting go through `/proc/self/fd`, because an address
//! holds 107 bytes and a path may be longer.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use homing_api::{Code, Problem};
use homing_sys::home;
use homing_sys::private::{Error as PrivateError, PrivateHome};
use rustix::fs::{AtFlags, Mode};

/// Why a home has no socket.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// Somebody else could tamper with the folder.
    #[error("{} {why}", home.display())]
    Hostile {
        /// Which folder.
        home: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The system said no.
    #[error("the socket in {} cannot be made: {source}", home.display())]
    Io {
        /// Which folder.
        home: PathBuf,
        /// What it said.
        source: io::Error,
    },
}

impl From<BindError> for Problem {
    fn from(error: BindError) -> Self {
        let code = match error {
            BindError::Hostile { .. } => Code::HostileHome,
            BindError::Io { .. } => Code::SystemLimit,
        };
        Self::new(code, error.to_string())
    }
}

/// Listens in a home. Only who holds the home's lock may call this.
///
/// # Errors
/// If the folder is not safe, or the system refuses.
pub fn bind(path: &Path) -> Result<UnixListener, BindError> {
    let opened = PrivateHome::open(path).map_err(|error| match error {
        PrivateError::Untrusted { home, fault } => BindError::Hostile { home, why: fault.to_string() },
        PrivateError::Io(source) => BindError::Io { home: path.to_owned(), source },
    })?;
    bind_in(&opened.into_folder()).map_err(|source| BindError::Io { home: path.to_owned(), source })
}

fn bind_in(opened: &OwnedFd) -> io::Result<UnixListener> {
    let temporary = format!("{}.{}", home::SOCKET, std::process::id());
    // One of ours with the same pid may have died halfway.
    homing_sys::atomic_file::remove_at(opened, &temporary)?;
    let listener = UnixListener::bind(format!("/proc/self/fd/{}/{temporary}", opened.as_raw_fd()))?;
    let ready = || -> io::Result<()> {
        // The folder is closed to others, so nobody was there before this.
        rustix::fs::chmodat(opened, &temporary, Mode::RUSR | Mode::WUSR, AtFlags::empty())?;
        rustix::fs::renameat(opened, &temporary, opened, home::SOCKET)?;
        listener.set_nonblocking(true)
    };
    if let Err(error) = ready() {
        let _ = homing_sys::atomic_file::remove_at(opened.as_fd(), &temporary);
        return Err(error);
    }
    Ok(listener)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
    use std::os::unix::net::UnixStream;

    use super::*;

    fn folder(path: &Path, mode: u32) {
        fs::create_dir(path).unwrap();
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    fn names(path: &Path) -> Vec<String> {
        fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn p11_a_folder_that_others_could_tamper_with_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for (name, mode) in [("group", 0o710), ("all", 0o755), ("write", 0o702)] {
            folder(&at(name), mode);
            assert!(matches!(bind(&at(name)), Err(BindError::Hostile { .. })), "{name}");
        }
        folder(&at("real"), 0o700);
        symlink(at("real"), at("link")).unwrap();
        fs::write(at("file"), "").unwrap();
        for name in ["link", "link/", "file"] {
            let error = bind(&at(name)).unwrap_err();
            assert_eq!(Problem::from(error).code, "HM0018", "{name}");
        }
        assert!(matches!(bind(&at("absent")), Err(BindError::Io { .. })));
        assert!(names(&at("real")).is_empty());
        assert!(bind(&at("real")).is_ok());
    }

    #[test]
    fn p11_a_folder_of_another_user_is_refused() {
        if !rustix::process::geteuid().is_root() {
            homing_testkit::left_out("only root can try a folder of another user");
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        std::os::unix::fs::chown(dir.path(), Some(65534), None).unwrap();
        let refused = bind(dir.path()).unwrap_err();
        assert!(refused.to_string().contains("belongs to another user"), "{refused}");
    }

    #[test]
    fn the_socket_replaces_an_old_one_and_stays_behind() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().join("home");
        folder(&home, 0o700);
        let path = home.join(home::SOCKET);
        let first = bind(&home).unwrap();
        let before = fs::metadata(&path).unwrap().ino();
        let second = bind(&home).unwrap();
        let found = fs::metadata(&path).unwrap();
        assert!(found.file_type().is_socket());
        assert_eq!(found.mode() & 0o777, 0o600);
        assert_ne!(found.ino(), before);
        drop(first);
        assert!(UnixStream::connect(&path).is_ok());
        drop(second);
        assert_eq!(names(&home), [home::SOCKET]);
    }

    #[test]
    fn a_path_too_long_for_an_address_works() {
        let dir = tempfile::tempdir().unwrap();
        let deep = dir.path().join("x".repeat(120)).join("y".repeat(120));
        fs::create_dir_all(&deep).unwrap();
        fs::set_permissions(&deep, Permissions::from_mode(0o700)).unwrap();
        let _listener = bind(&deep).unwrap();
        assert!(deep.join(home::SOCKET).exists());
    }
}
