//! Connecting to the socket of a home that nobody else could tamper with, however long its path and however busy its daemon.
//!
//! Keeps P11: before one byte is sent, the home is known to be a real folder, ours and closed to others, and our own user to be
//! the one who listens in it.

use std::io;
use std::path::Path;
use std::time::Duration;

use homing_sys::private::PrivateHome;
use tokio::net::UnixStream;
use tokio::time::{Instant, sleep};

use crate::transport::error::Error;

/// The socket's name in the home.
pub const SOCKET: &str = homing_sys::home::SOCKET;

/// How long a full queue of the daemon is waited for.
const PATIENCE: Duration = Duration::from_secs(10);

/// Connects; a socket that nobody listens on is [`Error::Unreachable`].
pub(crate) async fn connect(home: &Path) -> Result<UnixStream, Error> {
    let failed = |error| Error::connecting(home, error);
    let checked = PrivateHome::open(home).map_err(failed)?;
    let stream = patiently(&checked.socket(SOCKET)).await.map_err(|error| failed(error.into()))?;
    checked.check_listener(&stream).map_err(failed)?;
    Ok(stream)
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
    use std::os::unix::fs::{PermissionsExt, symlink};

    use homing_api::Code;

    use super::*;
    use crate::fake::{Fake, Reply};
    use crate::transport::client::Client;

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
        assert!(connect(&folder.path().join("home")).await.unwrap_err().is_nobody_there());
        std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o700)).unwrap();
        assert!(connect(folder.path()).await.unwrap_err().is_nobody_there());
        drop(std::os::unix::net::UnixListener::bind(folder.path().join(SOCKET)).unwrap());
        assert!(connect(folder.path()).await.unwrap_err().is_nobody_there());
    }

    #[tokio::test]
    async fn p11_nothing_is_sent_into_a_home_that_others_could_tamper_with() {
        let folder = tempfile::tempdir().unwrap();
        let [real, link] = ["real", "link"].map(|name| folder.path().join(name));
        std::fs::create_dir(&real).unwrap();
        let fake = Fake::serve(&real, |_| Reply::json(200, "{}"));
        symlink(&real, &link).unwrap();
        let refused = async |home: &Path, says: &str| {
            let problem = Client::new(home, "me").healthy().await.unwrap_err().into_problem();
            assert_eq!(problem.known(), Some(Code::HostileHome), "{problem}");
            assert!(problem.detail.contains(says), "{problem}");
        };
        refused(&link, "is a link").await;
        refused(&link.join(""), "is a link").await;
        std::fs::set_permissions(&real, PermissionsExt::from_mode(0o711)).unwrap();
        refused(&real, "mode 0711").await;
        std::fs::set_permissions(&real, PermissionsExt::from_mode(0o700)).unwrap();
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(&real, Some(65534), None).unwrap();
            refused(&real, "uid 65534").await;
            std::os::unix::fs::chown(&real, Some(0), None).unwrap();
        }
        assert_eq!(fake.connections(), 0);
        Client::new(&real, "me").healthy().await.unwrap();
    }
}
