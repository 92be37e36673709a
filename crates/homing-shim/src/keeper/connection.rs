//! Packets with descriptors, between the keeper and everybody else.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use minicbor::{Decode, Encode};
use rustix::io::retry_on_intr;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};

use crate::wire::{self, Frames};

/// No packet to or from the keeper is longer.
const MAX_PACKET: usize = 8 * 1024;

/// One end of a packet socket.
#[derive(Debug)]
pub struct Connection(OwnedFd);

/// A packet that came.
#[derive(Debug)]
pub struct Received<T> {
    /// What it says; none if this release does not know it.
    pub message: Option<T>,
    /// What came with it.
    pub descriptors: Vec<OwnedFd>,
}

impl Connection {
    /// Around a connected packet socket.
    #[must_use]
    pub const fn new(socket: OwnedFd) -> Self {
        Self(socket)
    }

    /// Sends one packet, as [`send`] does.
    ///
    /// # Errors
    /// As [`send`].
    pub fn send<T: Encode<()>>(&self, message: &T, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        send(&self.0, message, descriptors)
    }

    /// Receives one packet, as [`receive`] does.
    ///
    /// # Errors
    /// As [`receive`].
    pub fn receive<T: for<'b> Decode<'b, ()>>(&self) -> io::Result<Option<Received<T>>> {
        receive(&self.0)
    }
}

/// Sends one packet, whole or not at all.
///
/// # Errors
/// If the other side is gone, or (on a socket that does not block) has no room.
pub fn send<T: Encode<()>>(socket: impl AsFd, message: &T, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    let bytes = wire::frame(message);
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // Whoever is stopped and goes on (Ctrl-Z) is interrupted, and has nothing to tell.
    retry_on_intr(|| sendmsg(&socket, &[IoSlice::new(&bytes)], &mut ancillary, SendFlags::NOSIGNAL))?;
    Ok(())
}

/// Receives one packet; none when the other side is gone.
///
/// # Errors
/// If nothing can be read (now, on a socket that does not block).
pub fn receive<T: for<'b> Decode<'b, ()>>(socket: impl AsFd) -> io::Result<Option<Received<T>>> {
    let mut bytes = [0; MAX_PACKET];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let got = retry_on_intr(|| {
        let mut buffers = [IoSliceMut::new(&mut bytes)];
        recvmsg(&socket, &mut buffers, &mut ancillary, RecvFlags::CMSG_CLOEXEC)
    })?;
    let mut descriptors = Vec::new();
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            descriptors.extend(rights);
        }
    }
    if got.bytes == 0 {
        return Ok(None);
    }
    let mut frames = Frames::default();
    frames.push(bytes.get(..got.bytes).unwrap_or_default());
    let message = frames.pop().map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
    Ok(Some(Received { message, descriptors }))
}

impl From<Connection> for OwnedFd {
    fn from(connection: Connection) -> Self {
        connection.0
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
