//! Attempts at one endpoint, side by side.

use std::sync::Arc;

use homing_model::{Channel, Target};
use homing_store::outbox::Claimed;
use tokio::sync::{Notify, OwnedSemaphorePermit};
use tokio::task::JoinSet;

use crate::outbox::dispatcher::{Dispatcher, STORE_RETRY};
use crate::outbox::transport::{AttemptResult, no_transport};

/// Attempts at one endpoint at once.
const MAX_PER_ENDPOINT: u32 = 16;
/// Attempts at all endpoints at once. Each needs a file descriptor of the daemon.
pub(super) const MAX_ATTEMPTS: usize = 128;
/// While no more permits are free than these, an endpoint gets one attempt at a time, so that
/// endpoints that hang leave permits to the others.
const SPARE_PERMITS: usize = MAX_ATTEMPTS / 2;

impl Dispatcher {
    /// Attempts what is due at an endpoint until nothing of it is due.
    pub(super) async fn serve_endpoint(&self, channel: &Channel, more: &Notify) {
        let mut attempts = JoinSet::new();
        let mut failed = false;
        loop {
            let free =
                MAX_PER_ENDPOINT.saturating_sub(u32::try_from(attempts.len()).unwrap_or(MAX_PER_ENDPOINT));
            let crowded = !attempts.is_empty() && self.permits.available_permits() <= SPARE_PERMITS;
            if free > 0 && !failed && !crowded {
                // Before the claim: a lease covers an attempt, and no wait for a permit.
                let permits = self.take_permits(free).await;
                match self.claim(channel, u32::try_from(permits.len()).unwrap_or(free)).await {
                    Ok(claims) => {
                        for (claim, permit) in claims.into_iter().zip(permits) {
                            let dispatcher = self.clone();
                            attempts.spawn(async move {
                                dispatcher.attempt(&claim).await;
                                drop(permit);
                            });
                        }
                    }
                    // What is under way continues; no more begins until the ledger can be written.
                    Err(error) => {
                        tracing::error!(?channel, %error, "deliveries could not be claimed");
                        failed = true;
                    }
                }
            }
            if attempts.is_empty() {
                if failed {
                    tokio::time::sleep(STORE_RETRY).await;
                }
                return;
            }
            tokio::select! {
                _ = attempts.join_next() => {}
                () = more.notified() => {}
            }
        }
    }

    /// Waits for one permit, in turn with the other endpoints, and takes as many more as are free.
    async fn take_permits(&self, limit: u32) -> Vec<OwnedSemaphorePermit> {
        // The semaphore is never closed.
        let mut permits: Vec<_> = Arc::clone(&self.permits).acquire_owned().await.into_iter().collect();
        while permits.len() < limit as usize
            && self.permits.available_permits() > SPARE_PERMITS
            && let Ok(permit) = Arc::clone(&self.permits).try_acquire_owned()
        {
            permits.push(permit);
        }
        permits
    }

    async fn attempt(&self, claim: &Claimed) {
        let began = self.inner.now();
        let result = match &claim.target {
            Target::Webhook(_) => self.transport.attempt(claim, began).await,
            other => AttemptResult::failed(no_transport(other)),
        };
        self.record(claim, result, began).await;
    }
}
