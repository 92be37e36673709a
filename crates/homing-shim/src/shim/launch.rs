//! How an attempt becomes this shim's: the launch, the lock, the marker, and later the socket.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use super::channel::Channel;
use crate::folder;
use crate::wire::{Launch, Refusal, ToShim};

/// Waits for the launch; beside it, what came with it. If the daemon goes away first, the attempt was never begun.
pub(super) fn receive(channel: &mut Channel) -> Option<(Launch, Vec<ToShim>)> {
    loop {
        let mut fds = [PollFd::new(channel, PollFlags::IN)];
        match poll(&mut fds, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return None,
        }
        let mut messages = channel.receive().ok()?.into_iter();
        while let Some(message) = messages.next() {
            if let ToShim::Launch(launch) = message {
                // A stop, a question or input may have been sent before this process was there to read the launch.
                return Some((*launch, messages.collect()));
            }
        }
    }
}

/// Lock, then marker: from here on the attempt is this shim's, or it is not run. Keeps P10.
pub(super) fn begin(folder: &OwnedFd) -> io::Result<Result<File, Refusal>> {
    if !folder::lock(folder)? {
        return Ok(Err(Refusal::Held));
    }
    // It can no longer start a second time: the marker is what its environment was.
    Ok(folder::mark(folder)?.ok_or(Refusal::AlreadyStarted))
}

/// The socket at which a later daemon finds this shim. Named through the folder's descriptor: no path is too long.
pub(super) fn listen(folder: &OwnedFd) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let listener = net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    let path = format!("/proc/self/fd/{}/{}", folder.as_raw_fd(), folder::SOCKET);
    let address = SocketAddrUnix::new(path)?;
    if net::bind(&listener, &address) == Err(Errno::ADDRINUSE) {
        // Ours, from an earlier daemon's absence, or of a shim that was killed: the lock says that nobody else listens there.
        homing_sys::atomic_file::remove_at(folder, folder::SOCKET)?;
        net::bind(&listener, &address)?;
    }
    net::listen(&listener, 4)?;
    Ok(listener)
}
