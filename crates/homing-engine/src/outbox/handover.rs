//! Commands and wakes: all that is due of a channel goes to one hook task.
//!
//! A wake waits before it is claimed: while the session is at work, while no process has it open,
//! and while a waiter of the session takes from its inbox. That is looked at again and again, and
//! written down once.

use std::time::Duration;

use homing_agents::registry;
use homing_model::route::Address;
use homing_model::wake::{self, Readiness};
use homing_model::{Channel, Route, Status, turn};
use homing_store::outbox::Terms;
use homing_store::store::{Error, Filter};
use tokio::sync::Notify;

use crate::entropy;
use crate::outbox::dispatcher::{Dispatcher, STORE_RETRY};
use crate::outbox::hook;
use crate::outbox::transport::{AttemptResult, no_transport};

/// Notices given to a command at once.
const MAX_TOGETHER: u32 = 100;
/// Tasks that end within this time are reported to a command together.
const GATHER: Duration = Duration::from_millis(25);
/// The same for a wake while other tasks of its owner run: each wake costs a turn.
const GATHER_RUNNING: Duration = Duration::from_millis(250);
/// Looks at a session at work until the ledger is asked again whether the wake is still needed.
const LOOKS_PER_ADMISSION: u32 = 10;
/// Why a wake waits for a waiter.
const AWAITED: &str = "a process of its own waits for the session's inbox, and tells it";

impl Dispatcher {
    /// Gives all that is due to a hook task. Its end, recorded under a shim, settles it.
    pub(super) async fn hand_over(&self, channel: &Channel, more: &Notify) {
        tokio::time::sleep(self.gather_time(channel).await).await;
        let claims = match self.until_ready(channel, more).await {
            Ok(true) => self.claim(channel, max_together(channel)).await,
            Ok(false) => return,
            Err(error) => Err(error),
        };
        let claims = match claims {
            Ok(claims) => claims,
            Err(error) => {
                tracing::error!(?channel, %error, "deliveries could not be claimed");
                return tokio::time::sleep(STORE_RETRY).await;
            }
        };
        let Some(first) = claims.first() else { return };
        let waker = self.transport.waker();
        let failed = if waker.is_empty() && channel.kind().only_wakes() {
            no_transport(&first.target)
        } else {
            match hook::hand_over(&self.inner, channel, waker, &claims).await {
                Ok(()) => return,
                Err(error) => {
                    tracing::error!(?channel, %error, "notices could not be handed to their command; it will be tried again");
                    error.to_string()
                }
            }
        };
        for claim in claims {
            self.record(&claim, AttemptResult::failed(failed.clone()), self.inner.now()).await;
        }
    }

    async fn gather_time(&self, channel: &Channel) -> Duration {
        let Channel::Wake { owner, .. } = channel else { return GATHER };
        let statuses = Status::ALL.into_iter().filter(|status| !status.is_terminal()).collect();
        let running = Filter { owner: Some(owner.clone()), statuses, limit: 1, ..Filter::default() };
        let running = self.inner.store.list(running).await;
        if running.is_ok_and(|page| !page.records.is_empty()) { GATHER_RUNNING } else { GATHER }
    }

    /// Waits until what is due of a channel may be claimed. False if nothing of it is left for now.
    async fn until_ready(&self, channel: &Channel, more: &Notify) -> Result<bool, Error> {
        if !self.admit(channel).await? {
            return Ok(false);
        }
        let Some(owner) = channel.owner().filter(|_| channel.kind().only_wakes()) else { return Ok(true) };
        let (mut looks, mut admitted, mut written) = (0, true, None);
        let mut config = self.inner.config.subscribe();
        loop {
            config.mark_unchanged();
            let route = self.inner.store.route(channel.clone(), self.inner.now()).await?;
            let Some(route) = route else { return Ok(admitted) };
            let readiness = self.readiness(owner, &route).await;
            if let Readiness::Busy(why) | Readiness::Closed(why) = &readiness {
                if written.as_ref() != Some(why) {
                    self.inner.store.put_off(channel.clone(), why.clone(), self.inner.now()).await?;
                    written = Some(why.clone());
                }
                tokio::select! {
                    () = tokio::time::sleep(readiness.pause(looks)) => looks += 1,
                    // It may be allowed by now.
                    Ok(()) = config.changed() => looks = 0,
                    // Something new is due, perhaps with a newer address.
                    () = more.notified() => {
                        tokio::time::sleep(GATHER).await;
                        written = None;
                    }
                }
                admitted = false;
                // A closed session is looked at so seldom that each look can ask the ledger: a
                // delivery that its hooks made meanwhile is not to be shown as waiting.
                if looks % LOOKS_PER_ADMISSION != 0 && matches!(readiness, Readiness::Busy(_)) {
                    continue;
                }
            } else if admitted {
                return Ok(true);
            }
            // Its owner may have the notice by now, and it grows old.
            if !self.admit(channel).await? {
                return Ok(false);
            }
            admitted = true;
        }
    }

    async fn readiness(&self, owner: &str, route: &Route) -> Readiness {
        let settings = self.inner.config().wake;
        if self.inner.inbox_waiters.any(owner) {
            return Readiness::Busy(AWAITED.to_owned());
        }
        if matches!(route, Route::Pane(_)) && !settings.tmux {
            return Readiness::Closed(wake::NO_TMUX.to_owned());
        }
        let runs = matches!(route, Route::Session(session) if settings.runs(session.headless));
        self.transport.readiness(route, runs).await
    }

    /// Whether what is due of a channel may be handed over now. Ends what must not wake any more,
    /// and leaves what is beyond the budget in the inbox.
    async fn admit(&self, channel: &Channel) -> Result<bool, Error> {
        if !channel.spends_budget(registry::is_session) {
            return Ok(true);
        }
        let config = self.inner.config();
        let terms = Terms { budget: config.wake.budget(), at_most: config.notify.on };
        let admitted =
            self.inner.store.admit(channel.clone(), terms, entropy::draw(), self.inner.now()).await?;
        self.inner.bump();
        Ok(admitted)
    }
}

/// Notices of a channel handed over at once. A pane gets one: the line that is typed names one, and
/// only the notice's own address says which server has that pane and which program was in it.
fn max_together(channel: &Channel) -> u32 {
    match channel {
        Channel::Wake { address: Some(address), .. } if matches!(address.parse(), Ok(Address::Tmux(_))) => 1,
        _ if channel.kind().only_wakes() => turn::MOST as u32,
        _ => MAX_TOGETHER,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pane_gets_one_notice_at_a_time() {
        let of = |target: &str| max_together(&Channel::new(&target.parse().unwrap(), "ann", None).unwrap());
        assert_eq!((of("wake:tmux:%3"), of("wake:claude:s1"), of("desktop")), (1, 50, 50));
        assert_eq!(of("exec:wake:tmux:%3"), MAX_TOGETHER);
    }
}
