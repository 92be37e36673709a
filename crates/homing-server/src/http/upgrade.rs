//! A connection that becomes something else after its last answer: what is to be done with it then.
//!
//! It is done by whoever served the connection, in the same task: so it counts among the connections, and is cut with them.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use parking_lot::Mutex;

type Rest = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Of one connection.
#[derive(Clone, Default)]
pub(crate) struct Handover(Arc<Mutex<Option<Rest>>>);

impl fmt::Debug for Handover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handover").finish_non_exhaustive()
    }
}

impl Handover {
    /// This is to be done once the answer is out.
    pub(crate) fn give(&self, rest: Rest) {
        *self.0.lock() = Some(rest);
    }

    /// What is to be done, if anything.
    pub(crate) fn take(&self) -> Option<Rest> {
        self.0.lock().take()
    }
}
