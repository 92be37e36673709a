//! Connecting to the socket of a home, however long its path and however busy its daemon.

use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use tokio::net::UnixStream;
use tokio::time::{Instant, sleep};

use crate::error::Error;

/// The socket's name in the home.
pub const SOCKET: &str = "homing.sock";

/// What a socket address holds, its closing NUL not counted.
const LONGEST_PATH: usize = 107;

/// How long a full queue of the daemon is waited for.
const PATIENCE: Duration = Duration::from_secs(10);

/// Connects; a socket that nobody listens on is [`Error::Unreachable`].
pub(crate) async fn connect(home: &Path) -> Result<UnixStream, Error> {
    let socket = home.join(SOCKET);
    attempt(home, &socket).await.map_err(|source| Error::Unreachable { socket, source })
}

async fn attempt(home: &Path, socket: &Path) -> io::Result<UnixStream> {
    if socket.as_os_str().as_bytes().len() <= LONGEST_PATH {
        return patiently(socket).await;
    }
    let folder = rustix::fs::open(home, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    patiently(Path::new(&format!("/proc/self/fd/{}/{SOCKET}", folder.as_raw_fd()))).await
}

/// A Unix socket with a full queue says "try again" and offers nothing to wait on, so this one wait is a poll.
async fn patiently(path: &Path) -> io::Result<UnixStream> {
    let deadline = Instant::now() + PATIENCE;
    let mut pause = Duration::from_millis(1);
    loop {
        match UnixStream::connect(path).await {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && Instant::now() < deadline => {
                sleep(pause).await;
                pause = (pause * 2).min(Duration::from_millis(50));
            }
            result => return result,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{Fake, Reply};

    #[tokio::test]
    async fn paths_too_long_for_an_address_work() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().join("x".repeat(100)).join("y".repeat(100));
        std::fs::create_dir_all(&home).unwrap();
        let _fake = Fake::serve(&home, |_| Reply::json(200, "{}"));
        assert!(connect(&home).await.is_ok());
    }

    #[tokio::test]
    async fn a_missing_socket_and_a_stale_one_are_nobody_there() {
        let folder = tempfile::tempdir().unwrap();
        assert!(connect(folder.path()).await.unwrap_err().is_nobody_there());
        drop(std::os::unix::net::UnixListener::bind(folder.path().join(SOCKET)).unwrap());
        assert!(connect(folder.path()).await.unwrap_err().is_nobody_there());
    }
}
