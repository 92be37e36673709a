//! Silences and heartbeats: what is due by the clock, judged by what is on the disk.

use std::io;
use std::os::fd::OwnedFd;

use homing_model::Timestamp;
use homing_model::notice::{self, Body, TAIL};
use homing_model::utf8::unfinished;
use homing_model::watch::{self, Beat, Quiet};
use homing_shim::output::{self, Extent};

use super::terminal;
use super::watcher::Watcher;
use crate::query::report;

/// Of what is new so much is read for a heartbeat.
const READ: u64 = 16 * TAIL as u64;

/// When the task printed last; its start, if it never did.
pub(crate) fn last_output(started_at: Timestamp, written_at: Option<i64>) -> Timestamp {
    written_at.map_or(started_at, |at| started_at.max(Timestamp::from_millis(at)))
}

/// What the alarms wait for.
#[derive(Debug, Default)]
pub(super) struct Waits {
    /// The next look.
    pub(super) at: Option<Timestamp>,
    /// New output ends the silence that was told.
    pub(super) output: bool,
}

impl Watcher {
    /// Tells of a silence and gives a heartbeat where it is time.
    pub(super) async fn alarms(&mut self) -> Waits {
        let spec = &self.record.spec;
        let (quiet, beat) = (spec.quiet_after_ms, spec.heartbeat_ms);
        // A task that was told to stand still is silent for that reason, and its time does not count.
        if (quiet.is_none() && beat.is_none()) || self.stillness.paused {
            return Waits::default();
        }
        let now = self.inner.now();
        let extent = match self.folder().and_then(output::extent) {
            Ok(extent) => extent,
            Err(error) => {
                // The folder is gone, or descriptors are short: a look now and then costs little.
                tracing::debug!(task = %self.record.id, %error, "an output could not be looked at");
                return Waits { at: Some(now.plus_millis(10_000)), output: false };
            }
        };
        let mut waits = Waits::default();
        if let Some(after) = quiet {
            match self.silence(after, extent, now).await {
                Quiet::At(at) => waits.at = Some(at),
                Quiet::Told | Quiet::Alarm(_) => waits.output = true,
            }
            // What is watched for has to be read, too, before it counts as seen.
            if !self.state.watches() {
                self.seen = self.seen.max(extent.end);
            }
        }
        if let Some(every) = beat {
            let at = self.heartbeat(every, extent, now).await;
            waits.at = Some(waits.at.map_or(at, |other| other.min(at)));
        }
        if let Some(retry) = self.retry_at.filter(|at| *at > now) {
            waits.at = Some(waits.at.map_or(retry, |at| at.min(retry)));
        }
        waits
    }

    async fn silence(&mut self, after: u64, extent: Extent, now: Timestamp) -> Quiet {
        // A silence begins anew when the task goes on.
        let last = last_output(self.started_at, extent.written_at.max(self.stillness.since));
        let judged = watch::quiet(after, last, extent.end, self.state.quiet_told, now);
        if let Quiet::Alarm(quiet_ms) = judged {
            let waiting_for_input = self.record.spec.pty && self.pid.is_some_and(terminal::waits_for_input);
            let before = self.state.quiet_told.replace(extent.end);
            if !self.keep(Some(Body::Quiet { quiet_ms, waiting_for_input }), now).await {
                self.state.quiet_told = before;
            }
        }
        judged
    }

    /// Gives a heartbeat if one is due; answers when the next may be.
    async fn heartbeat(&mut self, every: u64, extent: Extent, now: Timestamp) -> Timestamp {
        let next = now.after_millis(every);
        if let Some(resumed) = self.stillness.since.map(Timestamp::from_millis) {
            self.beat_at = self.beat_at.max(resumed);
        }
        match watch::beat(every, self.beat_at, self.state.beat_to, extent.end, now) {
            Beat::At(at) => return at,
            Beat::Skip => {}
            Beat::Tell => match self.news(extent.end) {
                Ok((_, end)) if end <= self.state.beat_to => {}
                Ok((new_output, end)) => {
                    let before = (self.state.beat_to, self.state.beat_at);
                    (self.state.beat_to, self.state.beat_at) = (end, Some(now));
                    if !self.keep(Some(Body::Heartbeat { new_output }), now).await {
                        (self.state.beat_to, self.state.beat_at) = before;
                    }
                }
                Err(error) => {
                    tracing::warn!(task = %self.record.id, %error, "what is new could not be read");
                }
            },
        }
        self.beat_at = now;
        next
    }

    /// The end of what no heartbeat has told, and where it ends: never within a character.
    fn news(&self, end: u64) -> io::Result<(String, u64)> {
        let begin = self.state.beat_to.max(end.saturating_sub(READ));
        let folder = self.folder()?;
        let end = self.whole(&folder, begin, end)?;
        let open = unfinished(&report::stretch(&folder, begin.max(end.saturating_sub(3)), end)?) as u64;
        // A single character that never ends is told as it is.
        let end = if open < end - begin { end - open } else { end };
        let before = report::before(&folder, begin)?;
        let bytes = report::masked(&folder, &self.record, begin, end)?;
        Ok((notice::tail(before.as_deref(), &bytes, &self.record.masks).0, end))
    }

    /// Up to where no secret can be half printed: the last end of a line, or as far back as the longest one reaches.
    fn whole(&self, folder: &OwnedFd, begin: u64, end: u64) -> io::Result<u64> {
        let reach = (self.record.masks.longest() as u64).saturating_sub(1);
        let safe = end.saturating_sub(reach).max(begin);
        let tail = report::stretch(folder, safe, end)?;
        let line = tail.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        Ok(if reach == 0 { end } else { safe + line as u64 })
    }

    pub(super) fn folder(&self) -> io::Result<OwnedFd> {
        self.inner.home.open_attempt(&self.record.attempt())
    }
}
