//! The end of the server, as its requests see it.

use tokio::sync::watch;

/// Comes true once: then streams end and waits are cut off, so that their clients turn to the next daemon.
#[derive(Debug, Clone)]
pub(crate) struct Leaving(watch::Receiver<bool>);

/// What makes it come true.
#[derive(Debug)]
pub(crate) struct Leave(watch::Sender<bool>);

/// A switch, and what it switches.
pub(crate) fn switch() -> (Leave, Leaving) {
    let (sender, receiver) = watch::channel(false);
    (Leave(sender), Leaving(receiver))
}

impl Leave {
    /// Now.
    pub(crate) fn begin(&self) {
        self.0.send_replace(true);
    }
}

impl Leaving {
    /// Whether it has come.
    pub(crate) fn has_begun(&self) -> bool {
        *self.0.borrow() || self.0.has_changed().is_err()
    }

    /// Waits for it.
    pub(crate) async fn begun(&mut self) {
        // A switch that is gone means the end just as well.
        let _ = self.0.wait_for(|leaving| *leaving).await;
    }
}
