//! The end of an attempt: drained, told, recorded, confirmed. Keeps P2, P4 and P9.

use std::ffi::OsStr;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use minicbor::bytes::ByteVec;
use rustix::event::PollFlags;

use super::orders::main_process;
use super::revive;
use super::service::Service;
use super::stop::Cause;
use super::vigil;
use crate::cgroup;
use crate::clock;
use crate::record::{self, ExitRecord, Survivor, Verdict};
use crate::wire::FromShim;
use crate::{folder, freeze};
use homing_sys::sys;

/// After the main process's end, a pipe that is silent this long is considered drained.
pub(super) const QUIET_MS: i64 = 100;
/// And after this long it is, silent or not.
pub(super) const DRAIN_MS: i64 = 2_000;

/// How the main process ended.
pub(super) struct Ended {
    pub(super) end: sys::End,
    pub(super) max_rss_bytes: u64,
    pub(super) cpu_ms: u64,
    pub(super) at: i64,
    pub(super) wall: i64,
    /// What had been done to it before its end was seen.
    pub(super) cause: Option<Cause>,
}

/// Where the shim is in its work.
pub(super) enum Phase {
    /// The main process lives, or its start is not yet known.
    Running,
    /// It has ended; its output is being drained.
    Draining { since: i64, last_output: i64 },
    /// The end was told.
    Told { record: Vec<u8>, safety: Safety },
}

/// Where the end is safe from a power cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Safety {
    /// Nowhere yet: the record is in place but not synced, and is at this time if the ledger has not confirmed until then.
    Pending { sync_at: i64 },
    /// On disk, in the record.
    Record,
    /// In the ledger, by the daemon's word.
    Ledger,
    /// Only in this process: the disk took no record.
    Memory,
}

/// How long the ledger gets to make an end durable before the record is synced as well. Both at once would wait for one another in the
/// filesystem's journal; nobody is told of the end before one of them is done.
const SYNC_AFTER_MS: i64 = 20;

impl Service {
    /// Everything that is due because of what is now known, or of the time.
    pub(super) fn advance(&mut self) {
        let now = clock::monotonic();
        self.advance_pause(now);
        let timed = self.ended.is_none() && self.stop.is_none() && self.pause.is_none();
        if timed && self.timeout_at.is_some_and(|at| now >= at) {
            self.begin_stop(Cause::TimedOut, libc::SIGTERM, self.launch.grace_ms);
        }
        if let Some(stop) = &mut self.stop
            && !self.tree_gone
        {
            let main = self.pid.filter(|_| self.ended.is_none());
            let main = main_process(main, &self.signals, self.pause.is_some());
            stop.advance(self.group.as_ref(), main, now);
        }
        if matches!(self.phase, Phase::Running) && self.has_ended() {
            if self.launch.kill_on_exit && !self.tree_gone && self.stop.is_none() {
                self.begin_stop(Cause::Leftovers, libc::SIGTERM, self.launch.grace_ms);
            }
            // A stop is not over before the tree is.
            let stopped = self.stop.as_ref().is_none_or(|stop| self.tree_gone || stop.is_exhausted(now));
            if stopped {
                let answers = self.input.close();
                self.tell_all(&answers);
                self.phase = Phase::Draining { since: now, last_output: now };
                self.take_output([PollFlags::IN; 2]);
            }
        }
        if let Phase::Told { safety: Safety::Pending { sync_at }, .. } = self.phase
            && (now >= sync_at || self.channel.is_none())
        {
            self.sync();
        }
        if self.retry_at.is_some_and(|at| now >= at) {
            self.retry();
        }
        if self.vigil.deadline().is_some_and(|at| now >= at) {
            self.keep_vigil();
        }
        if let Phase::Draining { since, last_output } = self.phase {
            let drained = self.sources.is_empty() || now >= since + DRAIN_MS || now >= last_output + QUIET_MS;
            if drained {
                self.finish();
            }
        }
        if self.trim_at.is_some_and(|at| now >= at) {
            self.trim_at = None;
            sys::trim_memory();
        }
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended.is_some() || (self.pid.is_none() && self.failure.is_some())
    }

    /// Tells the daemon and puts the record in place. With a daemon there, its ledger is what makes the end durable, and it confirms that;
    /// with none, or one that does not confirm soon, the record is synced. Whoever dies from here on, the end is not lost.
    pub(super) fn finish(&mut self) {
        if self.tree_gone {
            self.take_rest();
        }
        let record = self.exit_record().encode();
        self.tell(&FromShim::Exited(ByteVec::from(record.clone())));
        let folder = self.folder.as_fd();
        let safety = match &self.marker {
            Some(marker) if self.channel.is_some() => match record::place(folder, marker, &record) {
                Ok(()) => Safety::Pending { sync_at: clock::monotonic() + SYNC_AFTER_MS },
                Err(_) => Safety::Memory,
            },
            Some(marker) if record::commit(folder, marker, &record).is_ok() => Safety::Record,
            Some(_) | None => Safety::Memory,
        };
        self.phase = Phase::Told { record, safety };
        self.plan_retry();
    }

    /// Tries again what the disk or the system would not give, while no daemon is there that could take it from us.
    fn retry(&mut self) {
        self.retry_at = None;
        if self.channel.is_some() {
            return;
        }
        self.listen();
        let Phase::Told { record, safety: Safety::Memory } = &self.phase else { return };
        let kept = self
            .marker
            .as_ref()
            .is_some_and(|marker| record::commit(self.folder.as_fd(), marker, record).is_ok());
        if kept {
            self.settle(Safety::Record);
        } else if self.tree_gone
            && let Some(home) = self.unrevived()
        {
            // It can take the end from us even if the disk cannot, and asks for it before it serves: it must not find us waiting for it.
            vigil::begin_revival(home);
            self.revived = true;
        }
    }

    /// Where the daemon is still to be brought back, if it is.
    fn unrevived(&self) -> Option<&Path> {
        let home = self.launch.revive.as_ref().filter(|_| !self.revived)?;
        Some(Path::new(OsStr::from_bytes(home)))
    }

    fn sync(&mut self) {
        let synced =
            self.marker.as_ref().is_some_and(|marker| record::sync(self.folder.as_fd(), marker).is_ok());
        self.settle(if synced { Safety::Record } else { Safety::Memory });
    }

    /// The end is safe here now.
    pub(super) fn settle(&mut self, now: Safety) {
        if let Phase::Told { safety, .. } = &mut self.phase {
            *safety = now;
        }
        self.plan_retry();
    }

    pub(super) fn exit_record(&self) -> ExitRecord {
        let survivors = if self.tree_gone { Vec::new() } else { freeze::members(self.group.as_ref()) };
        let survivors = survivors
            .into_iter()
            .take(record::MAX_SURVIVORS)
            .map(|process| Survivor { pid: process.pid, name: process.name })
            .collect();
        let (exit_code, signal) = match self.ended.as_ref().map(|ended| ended.end) {
            Some(sys::End::Code(code)) if self.failure.is_none() => (Some(code), None),
            Some(sys::End::Signal(signal)) if self.failure.is_none() => (None, Some(signal)),
            Some(_) | None => (None, None),
        };
        let verdict = match (&self.failure, self.ended.as_ref().and_then(|ended| ended.cause)) {
            (Some(_), _) if self.forestalled => Verdict::Stopped,
            (Some(_), _) => Verdict::StartFailed,
            (None, Some(Cause::Requested)) => Verdict::Stopped,
            (None, Some(Cause::TimedOut)) => Verdict::TimedOut,
            (None, Some(Cause::Leftovers) | None) => Verdict::Exited,
        };
        let ended_at = self.ended.as_ref().map_or_else(clock::monotonic, |ended| ended.at);
        ExitRecord {
            task: self.launch.task.clone(),
            attempt: self.launch.attempt,
            nonce: self.launch.nonce,
            boot_id: self.boot_id.clone(),
            verdict,
            exit_code,
            signal,
            reason: self.failure.as_ref().map(|failure| failure.reason.chars().take(300).collect()),
            stopped_by: self
                .stopped_by
                .as_ref()
                .filter(|_| verdict == Verdict::Stopped)
                .map(|by| by.chars().take(200).collect()),
            survivors,
            pid: self.pid.filter(|_| self.failure.is_none()),
            started_at: self.started_at,
            ended_at: self.ended.as_ref().map_or_else(|| self.wall.now(), |ended| ended.wall),
            duration_ms: u64::try_from(ended_at - self.cloned_at).unwrap_or(0),
            max_rss_bytes: self.ended.as_ref().map_or(0, |ended| ended.max_rss_bytes),
            cpu_ms: self.ended.as_ref().map_or(0, |ended| ended.cpu_ms),
            output_bytes: self.output.total(),
            output_dropped: self.output.dropped(),
            start_error: self.failure.as_ref().filter(|_| !self.forestalled).map(|failure| failure.kind),
            inputs: Some(self.input.taken(record::MAX_INPUTS)),
        }
    }

    /// Whether this process may leave: the end is safe somewhere, and nobody of the tree is left to look after.
    pub(super) fn is_done(&self) -> bool {
        let Phase::Told { safety, .. } = self.phase else { return false };
        // Without a socket, or a folder to find it in, nobody will ever come to ask; what could not be made durable then is lost,
        // and says so.
        let hidden = || {
            self.listener.is_none() || rustix::fs::fstat(&self.folder).is_ok_and(|found| found.st_nlink == 0)
        };
        let safe = match safety {
            Safety::Ledger => true,
            Safety::Record => self.channel.is_none(),
            Safety::Memory => self.channel.is_none() && hidden(),
            Safety::Pending { .. } => false,
        };
        safe && self.tree_gone
    }

    pub(super) fn leave(&mut self) {
        if let Some(group) = &self.group {
            group.remove();
        }
        if let Some(base) = self.launch.cgroup.as_ref().filter(|_| self.channel.is_none()) {
            cgroup::leave(Path::new(OsStr::from_bytes(base)));
        }
        // Closed before a daemon is asked for: one that has connected would wait for our word, and we for it to be there.
        if self.listener.take().is_some() {
            let _ = homing_sys::atomic_file::remove_at(&self.folder, folder::SOCKET);
        }
        let confirmed = matches!(self.phase, Phase::Told { safety: Safety::Ledger, .. });
        if !confirmed && let Some(home) = self.unrevived() {
            revive::revive(home);
            self.revived = true;
        }
    }
}
