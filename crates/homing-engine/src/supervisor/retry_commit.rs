//! An end that the ledger would not take is tried again until it does. Keeps P2: nothing is forgotten while the disk is full.

use std::time::Duration;

use homing_model::TaskId;
use homing_store::store;

use crate::engine::Inner;

/// Between two tries: longer each time, up to the second.
const PAUSE: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_secs(10);

/// How often an end was refused, and so how long to wait.
#[derive(Debug, Default)]
pub(crate) struct Insist {
    pause: Option<Duration>,
}

impl Insist {
    /// The ledger refused: says so, and waits before the next try. False if the engine ends first.
    pub(crate) async fn again(&mut self, inner: &Inner, task: &TaskId, error: &store::Error) -> bool {
        tracing::error!(%task, %error, "an end could not be recorded; trying again");
        inner.set_degraded(Some(error.to_string()));
        let pause = self.pause.unwrap_or(PAUSE);
        self.pause = Some((pause * 2).min(LONGEST));
        tokio::select! {
            () = inner.shutdown.cancelled() => false,
            () = tokio::time::sleep(pause) => true,
        }
    }

    /// The ledger took it. Only what this end has said is taken back: new tasks may be refused for a disk on which there is room for ends.
    pub(crate) fn done(&self, inner: &Inner) {
        if self.pause.is_some() {
            inner.set_degraded(None);
        }
    }
}
