//! The process at the other end of a local connection.
//!
//! Keeps P11. `SO_PEERCRED` names it by a number, which belongs to another process as soon as it
//! has ended and was waited for: by the time of an accept, what `/proc` shows under that number may
//! be a stranger. So the process is held by a pidfd that the kernel makes for the one that
//! connected (`SO_PEERPIDFD`, Linux 6.5), `/proc` is read, and then [`PeerProcess::is_alive`] says
//! whether all of that was about it: a number is not given again while its process lives.
//!
//! Before Linux 6.5 the pidfd is of whichever process has the number when the connection is
//! accepted. What happens after that is noticed there too, what happened before is not; SECURITY.md
//! says so.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::sys;

/// The process that made a connection, or that listens where one was made to.
#[derive(Debug)]
pub struct PeerProcess {
    pid: Option<u32>,
    uid: u32,
    /// None if it had ended already.
    pidfd: Option<OwnedFd>,
}

impl PeerProcess {
    /// That of a connected Unix socket. Holds a descriptor until it is dropped.
    ///
    /// # Errors
    /// If the kernel does not say, or no descriptor is left.
    pub fn of(socket: impl AsFd) -> io::Result<Self> {
        let (pid, uid) = sys::peer(socket.as_fd())?;
        let pidfd = match sys::peer_pidfd(socket.as_fd()) {
            Err(error) if error.raw_os_error() == Some(libc::ENOPROTOOPT) => numbered(pid),
            held => held,
        };
        let pidfd = match pidfd {
            Ok(pidfd) => Some(pidfd),
            Err(error) if is_gone(&error) => None,
            Err(error) => return Err(error),
        };
        // A pid that means nothing here is that of a process in another pid namespace.
        Ok(Self { pid: Some(pid).filter(|pid| *pid > 0), uid, pidfd })
    }

    /// Its number; none if it is in a pid namespace that we cannot see into.
    #[must_use]
    pub const fn pid(&self) -> Option<u32> {
        self.pid
    }

    /// The user that it ran as when the connection was made.
    #[must_use]
    pub const fn uid(&self) -> u32 {
        self.uid
    }

    /// Whether it has not ended. What was read of its number before is about it, and about no other
    /// process.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        let has_ended = |pidfd: BorrowedFd<'_>| {
            let mut fds = [PollFd::from_borrowed_fd(pidfd, PollFlags::IN)];
            poll(&mut fds, Some(&at_once)) != Ok(0)
        };
        self.pidfd.as_ref().is_some_and(|pidfd| !has_ended(pidfd.as_fd()))
    }

    /// What is readable once it has ended; none if it had ended already.
    pub fn into_pidfd(self) -> Option<OwnedFd> {
        self.pidfd
    }
}

/// Whether the kernel notices that the pid of a caller was used again before its connection was
/// accepted.
#[must_use]
pub fn is_exact() -> bool {
    std::os::unix::net::UnixStream::pair().is_ok_and(|(socket, _)| sys::peer_pidfd(socket.as_fd()).is_ok())
}

fn numbered(pid: u32) -> io::Result<OwnedFd> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(Errno::SRCH)?;
    Ok(pidfd_open(pid, PidfdFlags::empty())?)
}

/// What the kernel says of a process that has ended; which of these depends on its release.
fn is_gone(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::SRCH | Errno::INVAL | Errno::NODATA))
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::{UnixListener, UnixStream};
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn the_peer_of_a_pair_is_this_process_and_lives() {
        let (one, _other) = UnixStream::pair().unwrap();
        let peer = PeerProcess::of(&one).unwrap();
        assert_eq!(peer.pid(), Some(std::process::id()));
        assert_eq!(peer.uid(), rustix::process::geteuid().as_raw());
        assert!(peer.is_alive());
        assert!(peer.into_pidfd().is_some());
    }

    /// A process that connects and waits for its standard input to end.
    const CONNECT: &str = "import socket, sys\n\
        s = socket.socket(socket.AF_UNIX)\n\
        s.connect(sys.argv[1])\n\
        sys.stdin.read()\n";

    #[test]
    fn p11_a_peer_that_has_ended_is_not_alive() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let listener = UnixListener::bind(&path).unwrap();
        let connect = || {
            let mut python = Command::new("python3");
            python.args(["-c", CONNECT]).arg(&path).stdin(Stdio::piped()).spawn().unwrap()
        };
        let mut child = connect();
        let (socket, _) = listener.accept().unwrap();
        let while_alive = PeerProcess::of(&socket).unwrap();
        assert_eq!(while_alive.pid(), Some(child.id()));
        assert!(while_alive.is_alive());
        drop(child.stdin.take());
        child.wait().unwrap();
        assert!(!while_alive.is_alive());
        assert!(!PeerProcess::of(&socket).unwrap().is_alive(), "it had ended before it was looked at");
        // One that has ended and was not waited for has its number still, and is no caller either.
        let mut unburied = connect();
        let (socket, _) = listener.accept().unwrap();
        drop(unburied.stdin.take());
        let held = PeerProcess::of(&socket).unwrap();
        let fd = held.pidfd.as_ref().unwrap();
        poll(&mut [PollFd::new(fd, PollFlags::IN)], None).unwrap();
        assert!(!PeerProcess::of(&socket).unwrap().is_alive());
        unburied.wait().unwrap();
    }

    #[test]
    fn a_number_that_no_process_has_is_gone() {
        assert!(is_gone(&numbered(0).unwrap_err()));
        assert!(is_gone(&numbered(i32::MAX.unsigned_abs()).unwrap_err()));
        assert!(numbered(std::process::id()).is_ok());
    }
}
