//! Memory after large requests and answers: the C library keeps what was freed, so that a daemon would stay as large as it once was.
//!
//! Each large body rings; the service gives the memory back once no other has rung for a while. On cancel (the server's end) nothing is left
//! to be done; it has no errors.

use std::sync::Arc;
use std::time::Duration;

use homing_engine::aside;
use homing_shim::memory;
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::leaving::Leaving;

/// Bodies below this are served from memory that is always there.
const LARGE: u64 = 256 << 10;
/// Until what was read or written has been freed, and others have been served.
const CALM: Duration = Duration::from_millis(500);

/// Rings for large bodies.
#[derive(Debug, Clone, Default)]
pub(crate) struct Bodies(Arc<Notify>);

impl Bodies {
    /// A body of so many bytes was read or is answered.
    pub(crate) fn passed(&self, bytes: u64) {
        if bytes >= LARGE {
            self.0.notify_one();
        }
    }

    /// The service.
    pub(crate) async fn release(self, mut leaving: Leaving) {
        loop {
            tokio::select! {
                () = leaving.begun() => return,
                () = self.0.notified() => {}
            }
            while timeout(CALM, self.0.notified()).await.is_ok() {}
            // A panic there is none; without a thread it is done here.
            let _ = aside(memory::release).await;
        }
    }
}
