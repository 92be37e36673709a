//! The connection to the daemon: framed, never blocking, allowed to vanish.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use crate::clock;
use crate::wire::{self, Frames, FromShim, ToShim};
use homing_sys::memory;

/// How often a send that failed for want of kernel memory is repeated, and the pause before each repetition.
const SHORTAGE_RETRIES: u32 = 10;
const SHORTAGE_PAUSE_MS: i64 = 5;

/// The other side is gone, or talks nonsense.
#[derive(Debug)]
pub(super) struct Closed;

/// One connection.
#[derive(Debug)]
pub(super) struct Channel {
    socket: OwnedFd,
    frames: Frames,
    out: Vec<u8>,
}

impl Channel {
    /// Takes over a connected socket.
    pub(super) fn new(socket: OwnedFd) -> Self {
        if let Ok(flags) = fcntl_getfl(&socket) {
            let _ = fcntl_setfl(&socket, flags | OFlags::NONBLOCK);
        }
        Self { socket, frames: Frames::default(), out: Vec::new() }
    }

    /// Whether something waits to be sent.
    pub(super) const fn is_pending(&self) -> bool {
        !self.out.is_empty()
    }

    /// Queues a message and sends what the socket takes. There are few messages and none is large, so the queue stays small.
    pub(super) fn send(&mut self, message: &FromShim) -> Result<(), Closed> {
        self.out.extend_from_slice(&wire::frame(message));
        self.flush()
    }

    /// Sends what the socket takes. A shortage of kernel memory is waited out for a moment.
    pub(super) fn flush(&mut self) -> Result<(), Closed> {
        let mut shortages = 0;
        while !self.out.is_empty() {
            match send(&self.socket, &self.out, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
                Ok(count) => drop(self.out.drain(..count.min(self.out.len()))),
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(Errno::NOBUFS | Errno::NOMEM) if shortages < SHORTAGE_RETRIES => {
                    shortages += 1;
                    clock::pause(SHORTAGE_PAUSE_MS);
                }
                Err(_) => return Err(Closed),
            }
        }
        self.out = Vec::new();
        Ok(())
    }

    /// Reads what is there. Messages that came before an end of file are still answered first.
    pub(super) fn receive(&mut self) -> Result<Vec<ToShim>, Closed> {
        let mut messages = Vec::new();
        let mut buffer = [0; 4096];
        loop {
            match recv(&self.socket, &mut buffer[..], RecvFlags::DONTWAIT) {
                Ok((0, _)) if messages.is_empty() => return Err(Closed),
                // What a shortage of kernel memory left in the socket is announced again.
                Ok((0, _)) | Err(Errno::AGAIN | Errno::NOBUFS | Errno::NOMEM) => return Ok(messages),
                Ok((count, _)) => {
                    let read = buffer.get_mut(..count).unwrap_or_default();
                    self.frames.push(read);
                    memory::overwrite(read);
                    while let Some(message) = self.frames.pop().map_err(|_| Closed)? {
                        messages.push(message);
                    }
                }
                Err(Errno::INTR) => {}
                Err(_) => return Err(Closed),
            }
        }
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
