//! Putting starts and ends into the ledger. Keeps P1 and P2.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use homing_model::{Ending, Kind, Timestamp};
use homing_shim::folder;
use homing_shim::record::ExitRecord;
use homing_shim::wire::ToShim;
use homing_store::store::Applied;
use homing_store::{Record, Started, store};
use tokio::net::UnixStream;

use super::attendant::Attendant;
use super::link::send;
use crate::agent;
use crate::engine::Inner;
use crate::query::report;
use crate::supervisor::ending;
use crate::supervisor::retry_commit::Insist;
use crate::watch;

impl Attendant {
    /// Records the start without waiting for it: the ledger takes operations in order, so the end comes after it and may share its commit.
    pub(super) fn started(&mut self, pid: u32, at: i64) {
        self.values = None;
        self.forget_prompt();
        let started = Started { pid, at: Timestamp::from_millis(at) };
        let recording = self.inner.store.started(self.record.attempt(), started);
        let inner = Arc::clone(&self.inner);
        let id = self.record.id.clone();
        let starting = tokio::spawn(async move {
            match recording.await {
                Ok(Applied::Done(record)) => {
                    tracing::debug!(task = %id, attempt = record.attempt, pid, "started");
                    inner.meters.started(&record);
                    inner.live.update(&record);
                    inner.bump();
                }
                // Known already, or over already: adopted twice, or stopped meanwhile.
                Ok(Applied::Rejected(_) | Applied::Unknown) => {}
                Err(error) => {
                    tracing::warn!(task = %id, %error, "a start could not be recorded; the end will say when it was");
                }
            }
        });
        self.starting = Some(starting);
    }

    /// Begins to watch the output, if that was asked for.
    pub(super) fn watch(&mut self, pid: u32, at: i64) {
        if self.record.spec.is_watched() && self.watcher.is_none() && self.concluded.is_none() {
            let started_at = Timestamp::from_millis(at);
            self.watcher = Some(watch::begin(&self.inner, &self.record, Some(pid), started_at));
        }
    }

    /// Begins to listen, if it is an agent that runs.
    pub(super) fn listen(&mut self) {
        if self.record.kind == Kind::Agent && self.listener.is_none() && self.said.is_none() {
            self.listener = Some(agent::begin(&self.inner, &self.record));
        }
    }

    /// What the agent said, to the end of its output. None if the engine ends first.
    async fn conclude_agent(&mut self, ending: &Ending) -> Option<agent::Said> {
        if let Some(said) = &self.said {
            return Some(said.clone());
        }
        let listener = self.listener.take();
        // It may have spoken while no daemon lived.
        let said = match listener {
            None if ending.output_bytes == 0 => agent::Said::default(),
            None => agent::begin(&self.inner, &self.record).conclude(ending.output_bytes).await?,
            Some(listener) => listener.conclude(ending.output_bytes).await?,
        };
        self.said = Some(said.clone());
        Some(said)
    }

    /// Judges what is left of the output, so that it is told before the end is; answers what was held back. None if the engine ends first.
    async fn conclude_watch(&mut self, ending: &Ending) -> Option<Option<u64>> {
        if let Some(held_back) = self.concluded {
            return Some(held_back);
        }
        let watcher = self.watcher.take();
        if self.record.spec.watch.is_empty() || (watcher.is_none() && ending.output_bytes == 0) {
            return Some(None);
        }
        // It may have printed while no daemon lived.
        let watcher = watcher.unwrap_or_else(|| {
            let started_at = ending.started_at.unwrap_or(self.record.created_at);
            watch::begin(&self.inner, &self.record, None, started_at)
        });
        let held_back = watcher.conclude(ending.output_bytes).await?;
        self.concluded = Some(held_back);
        Some(held_back)
    }

    /// Records what a shim says of the end, and only then tells it so: it may leave after that.
    pub(super) async fn record_exit(&mut self, bytes: &[u8], stream: &mut UnixStream) -> io::Result<()> {
        let ending = match ExitRecord::decode(bytes) {
            Ok(record) => ending::ending(record),
            Err(error) => {
                tracing::error!(task = %self.record.id, %error, "a shim sent an exit record that cannot be read");
                ending::lost(&self.inner, &self.record, "its exit record cannot be read", Vec::new())
            }
        };
        if !self.finish(ending).await {
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        send(stream, &ToShim::Recorded).await
    }

    /// Records the end, however long that takes: the shim waits, so nothing is lost while the ledger cannot be written. False if the
    /// engine ends first.
    pub(super) async fn finish(&mut self, mut ending: Ending) -> bool {
        self.values = None;
        let mut insist = Insist::default();
        let Some(held_back) = self.conclude_watch(&ending).await else { return false };
        let mut report = report::report(&self.inner, &self.record, &ending);
        report.held_back = held_back;
        if self.record.kind == Kind::Agent {
            self.forget_prompt();
            let Some(said) = self.conclude_agent(&ending).await else { return false };
            agent::conclude(said, &self.record, &mut ending, &mut report);
        }
        loop {
            match self.inner.store.finish(self.record.attempt(), ending.clone(), report.clone()).await {
                Ok(Applied::Done(record)) => {
                    insist.done(&self.inner);
                    tracing::debug!(task = %record.id, attempt = record.attempt, status = %record.status, "ended");
                    self.inner.announce(&record);
                    self.record = record;
                    return true;
                }
                // The first finisher won, or a later attempt did.
                Ok(Applied::Rejected(record)) => {
                    if record.status.is_terminal() {
                        self.inner.ends.announce(&record);
                    }
                    self.record = record;
                    return true;
                }
                Ok(Applied::Unknown) => return true,
                Err(store::Error::Closed) => return false,
                // Its own trouble, not the ledger's: the next pass looks again.
                Err(error @ store::Error::BadRow { .. }) => {
                    crate::recovery::reconcile::note_error(
                        &self.inner,
                        &self.record.id,
                        "row",
                        &error.to_string(),
                    );
                    return false;
                }
                Err(error) => {
                    // Others are served meanwhile: whoever waits for the start must not wait for the disk.
                    self.settle();
                    if !insist.again(&self.inner, &self.record.id, &error).await {
                        return false;
                    }
                }
            }
        }
    }

    /// The agent has its prompt, or will never read it.
    fn forget_prompt(&self) {
        if self.record.kind == Kind::Agent
            && let Ok(attempt) = self.inner.home.open_attempt(&self.record.attempt())
        {
            remove_prompt(&self.record, &attempt);
        }
    }
}

/// Removes what an attempt that nobody runs may have left in its folder: its environment and its prompt.
pub(crate) fn forget_inputs(inner: &Inner, record: &Record) {
    let Ok(attempt) = inner.home.open_attempt(&record.attempt()) else { return };
    if let Err(error) = folder::forget_environment(&attempt) {
        tracing::warn!(task = %record.id, %error, "its environment could not be removed");
    }
    remove_prompt(record, &attempt);
}

fn remove_prompt(record: &Record, attempt: &OwnedFd) {
    if record.kind == Kind::Agent
        && let Err(error) = agent::prompt::forget(attempt)
    {
        tracing::warn!(task = %record.id, %error, "its prompt could not be removed");
    }
}
