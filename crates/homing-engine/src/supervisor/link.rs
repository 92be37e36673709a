//! The connection to a shim, and sending on it.

use std::io;
use std::time::Duration;

use homing_shim::wire::{self, Frames, ToShim};
use homing_sys::memory;
use rustix::io::Errno;
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;

/// How often a send that failed for want of kernel memory is repeated, and the pause before each repetition.
const SHORTAGE_RETRIES: u32 = 50;
const SHORTAGE_PAUSE: Duration = Duration::from_millis(10);

/// A connection to a shim.
pub(crate) struct Link {
    pub(crate) stream: UnixStream,
    pub(crate) frames: Frames,
}

impl Link {
    pub(crate) fn new(stream: UnixStream) -> Self {
        Self { stream, frames: Frames::default() }
    }
}

/// Sends one message to a shim. A shortage of kernel memory is waited out for half a second.
///
/// # Errors
/// If the shim is gone or the shortage persists. A part of the message may have been sent, so the
/// connection is of no further use.
pub(crate) async fn send(stream: &mut UnixStream, message: &ToShim) -> io::Result<()> {
    let mut bytes = wire::frame(message);
    let sent = write(stream, &bytes).await;
    memory::wipe(&mut bytes);
    sent
}

async fn write(stream: &mut UnixStream, mut rest: &[u8]) -> io::Result<()> {
    let mut retries = 0;
    while !rest.is_empty() {
        match stream.write(rest).await {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => rest = rest.get(count..).unwrap_or_default(),
            Err(error) if is_shortage(&error) && retries < SHORTAGE_RETRIES => {
                retries += 1;
                tokio::time::sleep(SHORTAGE_PAUSE).await;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Whether a socket call failed for want of kernel memory and may succeed in a moment.
pub(crate) fn is_shortage(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::NOBUFS | Errno::NOMEM | Errno::TOOMANYREFS))
}

/// Whether the other side of the socket is gone. What it sent before can still be read.
pub(crate) fn is_hangup(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset)
}
