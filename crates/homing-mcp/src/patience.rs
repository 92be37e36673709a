//! Waiting on behalf of a client: for no longer than it wants, with a sign of life where it asked for one.

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use homing_api::Code;
use rmcp::RoleServer;
use rmcp::model::ProgressNotificationParam;
use rmcp::service::RequestContext;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use crate::refusal::Refusal;

/// Between two signs of life: well below what clients take for silence.
const BEAT: Duration = Duration::from_secs(5);

/// No call waits longer; whoever wants to wait on calls again.
pub(crate) const LONGEST: Duration = Duration::from_secs(600);

/// A wait that the caller asked for.
pub(crate) fn bounded(wait_ms: u64) -> Duration {
    Duration::from_millis(wait_ms).min(LONGEST)
}

/// Does `work`, unless the client takes its call back. A client that gave a token for progress hears that the call goes on.
pub(crate) async fn patiently<T, E: Into<Refusal>>(
    context: &RequestContext<RoleServer>,
    doing: &str,
    work: impl Future<Output = Result<T, E>>,
) -> Result<T, Refusal> {
    let token = context.meta.get_progress_token();
    let begun = Instant::now();
    let mut beat = interval_at(begun + BEAT, BEAT);
    beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut work = pin!(work);
    loop {
        tokio::select! {
            biased;
            done = &mut work => return done.map_err(Into::into),
            () = context.ct.cancelled() => {
                let advice = "Nothing was changed by that; a task that was started goes on.";
                return Err(Refusal::advised(Code::NotApplicable, "the call was taken back", advice));
            }
            _ = beat.tick(), if token.is_some() => {
                if let Some(token) = token.clone() {
                    let mut news = ProgressNotificationParam::new(token, begun.elapsed().as_secs_f64());
                    news.message = Some(doing.to_owned());
                    // A client that no longer listens takes its call back, or is gone.
                    let _ = context.peer.notify_progress(news).await;
                }
            }
        }
    }
}
