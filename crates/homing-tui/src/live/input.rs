//! Keys and mouse, without a thread that would read them while the terminal is lent.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::Poll;

use crossterm::event::{Event, EventStream};
use futures_core::Stream as _;
use rustix::stdio::stdin;

use super::outlet::is_hung_up;

/// Reads the terminal while it exists.
pub(super) struct Input(EventStream);

impl Input {
    pub(super) fn open() -> Self {
        Self(EventStream::new())
    }

    /// What comes next; `None` when the terminal is gone. Cancelling it loses nothing.
    pub(super) async fn next(&mut self) -> Option<io::Result<Event>> {
        poll_fn(|context| {
            // What reads the keys reads one that is hung up for ever.
            if is_hung_up(stdin()) {
                return Poll::Ready(None);
            }
            Pin::new(&mut self.0).poll_next(context)
        })
        .await
    }
}
