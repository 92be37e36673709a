//! The end of an engine, as its background work sees it.

use tokio::sync::watch;

/// Becomes true once, when the last handle is gone.
#[derive(Debug, Clone)]
pub(crate) struct Shutdown(watch::Receiver<bool>);

impl Shutdown {
    /// A signal, and what gives it.
    pub(crate) fn new() -> (watch::Sender<bool>, Self) {
        let (sender, receiver) = watch::channel(false);
        (sender, Self(receiver))
    }

    /// Waits for the end.
    pub(crate) async fn over(&mut self) {
        // A sender that is gone means the end just as well.
        let _ = self.0.wait_for(|over| *over).await;
    }
}
