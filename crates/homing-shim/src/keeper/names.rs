//! The keeper's names in the home, its lock and its socket, and whether they are still its own.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::fs::{FlockOperation, Mode as FileMode, OFlags};
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use super::announcement;
use super::service::Keeper;
use crate::clock;
use homing_sys::{home, presence};

/// Between two tries to make a socket again that was removed.
const REBIND_MS: i64 = 10_000;

impl Keeper {
    /// Somebody may have removed our lock or our socket. The lock decides who is the keeper: one that has it makes its socket again.
    pub(super) fn look_at_names(&mut self) {
        self.look_at = None;
        if !self.folder_is_there() {
            return;
        }
        if presence::named(&self.folder, home::KEEPER_LOCK) != presence::held(&self.lock) {
            match lock(&self.folder) {
                Ok(Some(taken)) => {
                    self.lock = taken;
                    announcement::announce(&self.lock);
                }
                Ok(None) => self.displaced = true,
                Err(_) => {}
            }
        }
        if !self.displaced && presence::named(&self.folder, home::KEEPER_SOCKET) != self.bound {
            match bind(&self.folder) {
                Ok(listener) => {
                    self.listener = listener;
                    self.bound = presence::named(&self.folder, home::KEEPER_SOCKET);
                }
                Err(_) => self.look_at = Some(clock::monotonic() + REBIND_MS),
            }
        }
    }
}

/// The keeper's lock; none if another keeper has it.
pub(super) fn lock(folder: &OwnedFd) -> io::Result<Option<OwnedFd>> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let lock = rustix::fs::openat(folder, home::KEEPER_LOCK, flags, FileMode::RUSR | FileMode::WUSR)?;
    match rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(lock)),
        Err(Errno::WOULDBLOCK) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The keeper's socket: bound under another name and renamed, so that it is there whole or not at all.
pub(super) fn bind(folder: &OwnedFd) -> io::Result<OwnedFd> {
    const TEMPORARY: &str = "keeper.sock.new";
    homing_sys::atomic_file::remove_at(folder, TEMPORARY)?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let listener = net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
    let path = format!("/proc/self/fd/{}/{TEMPORARY}", folder.as_raw_fd());
    net::bind(&listener, &SocketAddrUnix::new(path)?)?;
    net::listen(&listener, 128)?;
    rustix::fs::renameat(folder, TEMPORARY, folder, home::KEEPER_SOCKET)?;
    Ok(listener)
}
