//! Whether somebody is still at the other end of a connection. A client that has said everything may say so (it shuts down its half), and waits
//! for its answer all the same; one that is gone waits for nothing.

use std::os::fd::{AsFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::net::UnixStream;

/// The end of both halves of a connection.
#[derive(Debug)]
pub(crate) struct Hangup(AsyncFd<OwnedFd>);

impl Hangup {
    /// None if the system has no descriptor left to watch it by.
    #[expect(
        deprecated,
        reason = "its successor is unsafe, for descriptors that somebody else may close; this one is owned"
    )]
    pub(crate) fn of(stream: &UnixStream) -> Option<Self> {
        let watched = stream.as_fd().try_clone_to_owned().ok()?;
        // Who asks for nothing that can be read or written is told of nothing else.
        AsyncFd::with_interest(watched, Interest::PRIORITY).ok().map(Self)
    }

    /// Until nobody is there any more.
    pub(crate) async fn happened(&self) {
        while let Ok(mut told) = self.0.ready(Interest::PRIORITY).await {
            if told.ready().is_read_closed() {
                return;
            }
            told.clear_ready();
        }
        std::future::pending::<()>().await;
    }
}

/// Whether it has happened to a connection already.
pub(crate) fn has_happened(stream: &UnixStream) -> bool {
    let mut polled = [PollFd::new(stream, PollFlags::empty())];
    poll(&mut polled, Some(&Timespec::default())).is_ok() && polled[0].revents().contains(PollFlags::HUP)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::AsyncWriteExt;
    use tokio::time::timeout;

    use super::*;

    #[tokio::test]
    async fn whoever_has_said_everything_is_there_until_it_leaves() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let hangup = Hangup::of(&ours).unwrap();
        let gone = || timeout(Duration::from_millis(50), hangup.happened());
        assert!(gone().await.is_err());
        theirs.write_all(b"all").await.unwrap();
        theirs.shutdown().await.unwrap();
        assert!(gone().await.is_err() && !has_happened(&ours), "it still waits for the answer");
        drop(theirs);
        assert!(has_happened(&ours));
        hangup.happened().await;
        hangup.happened().await;
    }
}
