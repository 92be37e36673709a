//! The timer of all leases: it sleeps until the first runs out, and makes sure that this engine could have heard.

use std::sync::Arc;
use std::time::Duration;

use homing_model::units::show_duration;
use homing_store::Tracking;
use tokio::time::Instant;

use super::lose;
use crate::background::Reporter;
use crate::engine::Inner;

/// A word that came in time may still wait to be read: it is given this long.
const HEARING: Duration = Duration::from_millis(50);
/// Woken later than this, the engine was stopped or starved and could not hear.
const DEAF: Duration = Duration::from_millis(250);

/// Ends what nobody was heard of, until the engine ends. On cancel (shutdown) nothing is lost: the next engine begins every lease anew.
pub(crate) async fn run(inner: Arc<Inner>, report: Reporter) {
    loop {
        let Some(first) = inner.roll.earliest() else {
            tokio::select! {
                () = inner.shutdown.cancelled() => return,
                () = inner.roll.earlier() => continue,
            }
        };
        tokio::select! {
            () = inner.shutdown.cancelled() => return,
            () = inner.roll.earlier() => continue,
            () = tokio::time::sleep_until(first + HEARING) => {}
        }
        report.run();
        let now = Instant::now();
        if now > first + HEARING + DEAF {
            tracing::info!("leases begin anew: the daemon could not hear for a while");
            inner.roll.begin_anew(now);
            continue;
        }
        for record in inner.roll.expired(now.checked_sub(HEARING).unwrap_or(first)) {
            let lease = record.tracking.and_then(Tracking::lease_ms).unwrap_or_default();
            let reason = format!("nothing was heard of it for {}", show_duration(lease));
            tokio::spawn(lose::lose(Arc::clone(&inner), record, reason));
        }
    }
}
