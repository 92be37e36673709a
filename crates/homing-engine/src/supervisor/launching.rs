//! Handing an attempt to the keeper, and again if nothing came of it. Keeps P10.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use homing_model::{Ending, Status, Verdict};
use homing_shim::wire::ToShim;
use homing_shim::{folder, record};
use tokio::net::UnixStream;

use super::attendant::Attendant;
use super::link::{Link, is_hangup, send};
use crate::entropy;
use crate::supervisor::ending::never_started;
use crate::supervisor::launch::{self, Surroundings};
use crate::supervisor::recover::AttemptState;

/// Pauses between launches that came to nothing; after the last the task could not be started.
const RELAUNCH: [Duration; 5] = [
    Duration::from_millis(5),
    Duration::from_millis(50),
    Duration::from_millis(250),
    Duration::from_millis(1000),
    Duration::from_millis(2000),
];

/// A socket for us, and its other end for the shim.
fn pair() -> io::Result<(UnixStream, OwnedFd)> {
    let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
    ours.set_nonblocking(true)?;
    Ok((UnixStream::from_std(ours)?, theirs.into()))
}

impl Attendant {
    /// Hands the attempt to the keeper. The shim's side of the socket exists before the shim does, so the launch can be sent at once.
    pub(super) async fn launch(&mut self, folder: OwnedFd) -> Option<Link> {
        let values = self.values.as_ref()?;
        let (stream, theirs) = match pair() {
            Ok(pair) => pair,
            Err(error) => {
                tracing::warn!(task = %self.record.id, %error, "no socket for a shim");
                return None;
            }
        };
        self.launches += 1;
        self.nonce = entropy::draw();
        let config = self.inner.config();
        let output = self.inner.home.output(&self.record.attempt());
        let around = Surroundings {
            config: &config,
            home: self.inner.home.path(),
            output: &output,
            fallback_cwd: &self.inner.fallback_cwd,
            cgroups: self.inner.cgroups.as_deref(),
            revive: self.inner.revive,
        };
        let spec = match launch::restored(&self.record, values) {
            Ok(spec) => spec,
            Err(error) => {
                tracing::error!(task = %self.record.id, error, "a task cannot be launched as it was asked for");
                self.launch_failure = Some(error);
                return None;
            }
        };
        let launch = launch::message(&self.record, &spec, self.nonce, values, &around);
        self.inner.keeper.launch(self.nonce, theirs, folder).await;
        let mut link = Link::new(stream);
        self.grace_ms = Some(launch.grace_ms);
        let mut message = ToShim::Launch(Box::new(launch));
        let sent = send(&mut link.stream, &message).await;
        if let ToShim::Launch(launch) = &mut message {
            launch.wipe();
        }
        match sent {
            Ok(()) => Some(link),
            // A shim that is not there is noticed by the conversation, which reads the end of the file.
            Err(error) if is_hangup(&error) => Some(link),
            // The shim waits for a message that will not come. It leaves when the connection is dropped, which is
            // here, and the attempt is launched again.
            Err(error) => {
                tracing::warn!(task = %self.record.id, %error, "the launch could not be sent to the shim");
                self.launch_failure =
                    Some(format!("the launch could not be sent to the supervisor: {error}"));
                None
            }
        }
    }

    /// The attempt was never started: launch it again, unless it may not or cannot be; then it is declared ended, marker first.
    pub(super) async fn launch_again(&mut self, folder: OwnedFd) -> Option<Link> {
        let refusal = self.reason_not_to_launch(&folder).await;
        let Some((verdict, reason)) = refusal else {
            return self.launch(folder).await;
        };
        // P10: whoever makes the marker decides. If a shim was faster, the facts are looked at anew.
        match folder::mark(&folder) {
            Ok(Some(marker)) => {
                let ending = Ending::never_started(verdict, reason, self.inner.now());
                // Beside the ledger, for the next daemon: should this one die now, the marker alone would speak of a killed supervisor.
                let record = never_started(&self.record, &ending).encode();
                if let Err(error) = record::place(folder.as_fd(), &marker, &record) {
                    tracing::warn!(task = %self.record.id, %error, "the end of an unstarted task is only in the ledger");
                }
                self.finish(ending).await;
                None
            }
            Ok(None) => match self.recover().await {
                AttemptState::Alive(link) => Some(link),
                AttemptState::Ended(ending) => {
                    self.finish(*ending).await;
                    None
                }
                AttemptState::NotStarted(_) | AttemptState::Unknown(_) => None,
            },
            Err(error) => {
                crate::recovery::reconcile::note_error(
                    &self.inner,
                    &self.record.id,
                    "marker",
                    &error.to_string(),
                );
                None
            }
        }
    }

    pub(super) async fn reason_not_to_launch(&mut self, folder: &OwnedFd) -> Option<(Verdict, String)> {
        if let Ok(Some(record)) = self.inner.store.get(self.record.id.clone()).await {
            self.record = record;
        }
        if self.record.status == Status::Stopping {
            return Some((Verdict::Stopped, "stopped before it was started".into()));
        }
        self.note_launch_failure();
        if self.launches > RELAUNCH.len() {
            let why = self.launch_failure.clone();
            return Some((
                Verdict::StartFailed,
                why.unwrap_or_else(|| "no supervisor could be started".into()),
            ));
        }
        if self.values.is_none() {
            let kept = self.inner.scheduler.take_secrets(&self.record.id);
            match launch::recover_values(&self.record, folder, kept).await {
                Ok(values) => self.values = Some(values),
                Err(reason) => return Some((Verdict::StartFailed, reason)),
            }
        }
        if let Some(pause) = self.launches.checked_sub(1).and_then(|at| RELAUNCH.get(at)) {
            tokio::time::sleep(*pause).await;
            self.note_launch_failure();
        }
        None
    }

    /// The keeper's word on a launch that failed comes on another line than the end of the shim's, and may come after it: what it said
    /// of an earlier try is as good.
    pub(super) fn note_launch_failure(&mut self) {
        if let Some(error) = self.inner.keeper.take_failure(self.nonce) {
            self.launch_failure = Some(format!("no process could be made: {error}"));
        }
    }
}
