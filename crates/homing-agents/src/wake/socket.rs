//! Sockets that an agent listens on, connected to without waiting.
//!
//! Whoever is stopped, or hangs, leaves its queue to fill up. A connect that waits for a place in it has no limit, and with it would hang the wake
//! and whatever it holds; one that does not wait is told at once that there is no place.

use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use homing_sys::peer::PeerProcess;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect as connect_to, socket_with,
};

/// Connects, or says at once why not: [`io::ErrorKind::WouldBlock`] if somebody is there who does not serve it.
pub(crate) fn connect(path: &Path) -> io::Result<UnixStream> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    connect_to(&socket, &SocketAddrUnix::new(path)?)?;
    let stream = UnixStream::from(socket);
    // What is written has a limit of its own.
    stream.set_nonblocking(false)?;
    Ok(stream)
}

/// A write that takes longer meets a process that does not read.
const WRITE: Duration = Duration::from_secs(5);

/// Writes these lines to a socket that this process of ours serves, if the session is `still` in it at the very last moment: any conversation
/// that the process is in would take them. False if not.
pub(crate) fn send_lines(path: &Path, pid: u32, lines: &str, still: impl Fn() -> bool) -> io::Result<bool> {
    let mut stream = connect(path)?;
    stream.set_write_timeout(Some(WRITE))?;
    let peer = PeerProcess::of(&stream)?;
    let other = |what: &str| io::Error::new(io::ErrorKind::PermissionDenied, format!("{what} is behind it"));
    if peer.uid() != rustix::process::getuid().as_raw() {
        return Err(other("another user"));
    }
    if peer.pid() != Some(pid) || !peer.is_alive() {
        return Err(other("another process"));
    }
    // What was begun may have been sent; only a connect that had no place has sent nothing.
    let begun = |error: io::Error| match error.kind() {
        io::ErrorKind::WouldBlock => io::Error::new(io::ErrorKind::TimedOut, "it is not read"),
        _ => error,
    };
    if !still() {
        return Ok(false);
    }
    stream.write_all(lines.as_bytes()).map_err(begun)?;
    stream.shutdown(std::net::Shutdown::Write)?;
    Ok(true)
}

/// A socket with no place left in its queue, and what takes them up.
#[cfg(test)]
pub(crate) fn clogged(path: &Path) -> (rustix::fd::OwnedFd, Vec<UnixStream>) {
    let listener = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None).unwrap();
    rustix::net::bind(&listener, &SocketAddrUnix::new(path).unwrap()).unwrap();
    rustix::net::listen(&listener, 0).unwrap();
    let waiting = std::iter::from_fn(|| connect(path).ok()).take(9).collect();
    (listener, waiting)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn a_socket_that_nobody_serves_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let _served = UnixListener::bind(path("served")).unwrap();
        assert!(connect(&path("served")).is_ok());
        let (_listener, waiting) = clogged(&path("full"));
        assert!((1..9).contains(&waiting.len()), "its queue is short, and full");
        assert_eq!(connect(&path("full")).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        assert_eq!(connect(&path("none")).unwrap_err().kind(), io::ErrorKind::NotFound);
        drop(UnixListener::bind(path("left")).unwrap());
        // A process that another test is just starting may have it for a moment longer.
        homing_testkit::wait_for("a refusal", || {
            let refused = connect(&path("left")).err()?;
            (refused.kind() == io::ErrorKind::ConnectionRefused).then_some(())
        });
    }
}
