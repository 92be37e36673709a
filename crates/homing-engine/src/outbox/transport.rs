//! What an engine delivers with. It is injected, so that an engine can be embedded without a
//! network and without agents.

use std::pin::Pin;

use homing_model::schedule::Verdict;
use homing_model::wake::Readiness;
use homing_model::{Notify, OsText, Route, Target, Timestamp};
use homing_store::outbox::Claimed;

use crate::engine::Inner;
use crate::error::Error;

/// A future of a transport.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Brings notices out of the engine. It keeps no state of a delivery and never retries.
pub trait Transport: Send + Sync + 'static {
    /// Checks at submit whether notices of a task can go to a target. The caller is `local` if it
    /// is a process of this user on this machine.
    ///
    /// # Errors
    /// A sentence that says what to do instead.
    fn check_target(&self, target: &Target, notify: &Notify, local: bool) -> Result<(), String>;

    /// Makes one attempt at an endpoint.
    fn attempt<'a>(&'a self, delivery: &'a Claimed, now: Timestamp) -> BoxFuture<'a, AttemptResult>;

    /// Whether a wake address can take a turn now. Changes nothing.
    fn readiness<'a>(&'a self, route: &'a Route, runs: bool) -> BoxFuture<'a, Readiness>;

    /// The program, with its arguments, that carries out a [`WakeOrder`](homing_model::WakeOrder)
    /// on its input. Empty if nothing can be woken.
    fn waker(&self) -> &[OsText];
}

/// What one attempt came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptResult {
    /// What follows from it.
    pub verdict: Verdict,
    /// The HTTP status, if there was an answer.
    pub status: Option<u16>,
    /// One line for people: the answer or the failure.
    pub detail: String,
    /// How long it took, in milliseconds.
    pub took_ms: u64,
}

impl AttemptResult {
    /// An attempt that could not begin.
    #[must_use]
    pub fn failed(why: String) -> Self {
        Self {
            verdict: Verdict::Failed { why: why.clone(), retry_after: None },
            status: None,
            detail: why,
            took_ms: 0,
        }
    }
}

/// Why a target is refused that nothing delivers to.
#[must_use]
pub fn no_transport(target: &Target) -> String {
    format!("nothing here delivers to `{}`: use `inbox`", target.shown())
}

impl Inner {
    /// Checks a target when a task is submitted.
    pub(crate) fn check_target(&self, target: &Target, notify: &Notify, local: bool) -> Result<(), Error> {
        match &self.transport {
            Some(transport) => transport.check_target(target, notify, local),
            None if *target == Target::Inbox => Ok(()),
            None => Err(no_transport(target)),
        }
        .map_err(Error::Target)
    }
}
