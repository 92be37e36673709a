//! What is told goes into the ledger with how far the output was judged; what cannot be told is held back.

use homing_model::notice::Body;
use homing_model::watch::{Permit, State};
use homing_model::{EventKind, Timestamp};
use homing_store::store::{self, Applied};

use super::watcher::Watcher;
use crate::entropy;

/// Before a ledger that would not take a notice is tried again.
const RETRY_MS: i64 = 5_000;

impl Watcher {
    /// Tells of every pattern whose time has come.
    pub(super) async fn tell_matches(&mut self) {
        loop {
            let now = self.inner.now();
            if self.held_until(now).is_some() || self.state.due(now).is_none_or(|due| due > now) {
                return;
            }
            match self.ask(now) {
                Permit::Tell => {}
                Permit::Wait { until, tripped } => {
                    if tripped {
                        self.note_pause(until, now).await;
                    }
                    return;
                }
            }
            let before = self.state.clone();
            let Some((at, telling)) = self.state.tell(now) else { return };
            let body = Body::Matched {
                pattern: self.record.spec.watch.get(at).cloned().unwrap_or_default(),
                line: telling.line,
                held_back: telling.held_back,
                explanation: telling.explanation,
            };
            if !self.keep(Some(body), now).await {
                self.state = before;
                return;
            }
        }
    }

    fn ask(&self, now: Timestamp) -> Permit {
        self.inner.breaker.lock().ask(now)
    }

    /// Until when no match is told, if so: the breaker is open, or the ledger was in trouble.
    pub(super) fn held_until(&self, now: Timestamp) -> Option<Timestamp> {
        let paused = self.inner.breaker.lock().paused(now);
        paused.max(self.retry_at.filter(|at| *at > now))
    }

    /// One event says that all watches pause.
    async fn note_pause(&self, until: Timestamp, now: Timestamp) {
        tracing::warn!(%until, "too many matches were told in all tasks together; watches pause");
        let data = serde_json::json!({ "until": until });
        if let Err(error) = self.inner.store.note(EventKind::WatchPaused, data, now).await {
            tracing::warn!(%error, "the pause of the watches could not be noted");
        }
        self.inner.bump();
    }

    /// Keeps how far we are, with what is told, if anything. False if the ledger would not take it.
    pub(super) async fn keep(&mut self, body: Option<Body>, now: Timestamp) -> bool {
        let told = body.is_some();
        let attempt = self.record.attempt();
        let state = State { turn: self.state.turn + 1, ..self.state.clone() };
        let at_most = Some(self.inner.config().notify.on);
        match self.inner.store.watched(attempt, state, body, entropy::draw(), at_most, now).await {
            Ok(Applied::Done(record)) => {
                self.state.turn += 1;
                self.kept_to = self.state.scanned;
                self.inner.live.update(&record);
                if told {
                    self.inner.put_on_its_way(&record);
                }
                true
            }
            // It has ended, or somebody else watches it: there is nothing left for us to tell.
            Ok(Applied::Rejected(_) | Applied::Unknown) => {
                self.over = true;
                true
            }
            Err(error) => {
                self.closed |= error == store::Error::Closed;
                self.retry_at = Some(now.plus_millis(RETRY_MS));
                tracing::warn!(task = %self.record.id, %error, "what a watch found is held back");
                false
            }
        }
    }
}
