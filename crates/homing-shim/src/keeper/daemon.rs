//! The daemon: started when somebody wants it, and again when it dies.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt as _;
use std::process::{Command, Stdio};

use rustix::fs::OFlags;

use super::client::Mode;
use super::peers::Role;
use super::service::Keeper;
use crate::wire::FromKeeper;
use crate::{clock, dispatch};
use homing_sys::home;

/// The daemon's process, whoever started it.
pub(super) struct Daemon {
    pub(super) pid: u32,
    /// For one that is not our child: readable when it is gone.
    pub(super) pidfd: Option<OwnedFd>,
    pub(super) since: i64,
    pub(super) ready: bool,
    pub(super) leaving: bool,
    pub(super) complaint: Option<String>,
}

impl Keeper {
    pub(super) fn ensure_daemon(&mut self) {
        if self.mode == Mode::Embedded {
            self.answer_waiting(&FromKeeper::NotRunning("this home is served by an embedded engine".into()));
            return;
        }
        match &self.daemon {
            Some(daemon) if daemon.ready && !daemon.leaving => self.answer_waiting(&FromKeeper::Running),
            // It is on its way, in or out: whoever waits is answered then.
            Some(_) => {}
            None => {
                self.restart.forgive();
                self.start_as_asked();
            }
        }
    }

    /// Somebody asked for a daemon: an earlier stop is over. Nothing else undoes one.
    fn start_as_asked(&mut self) {
        let _ = homing_sys::atomic_file::remove_at(&self.folder, home::STOPPED);
        self.start_daemon();
    }

    /// The pause before another try is over, unless the daemon was stopped meanwhile.
    pub(super) fn restart_daemon(&mut self) {
        if home::is_stopped(&self.home) {
            self.restart_at = None;
            self.answer_waiting(&FromKeeper::NotRunning("it was stopped meanwhile".into()));
        } else {
            self.start_daemon();
        }
    }

    /// Whoever started us may die before it says what for. All who do want a daemon, and some were it.
    pub(super) fn look_at_starter(&mut self) {
        let Some(starter) = &self.starter else { return };
        let gone = starter.is_gone();
        if gone || !starter.may_still_come() {
            self.starter = None;
        }
        if gone && self.mode == Mode::Daemon && self.daemon.is_none() && !home::is_stopped(&self.home) {
            self.start_daemon();
        }
    }

    fn start_daemon(&mut self) {
        self.restart_at = None;
        if !self.folder_is_there() {
            self.answer_waiting(&FromKeeper::NotRunning("the home folder is gone".into()));
            return;
        }
        match self.spawn_daemon() {
            Ok(pid) => {
                let since = clock::monotonic();
                self.daemon =
                    Some(Daemon { pid, pidfd: None, since, ready: false, leaving: false, complaint: None });
            }
            Err(error) => {
                self.answer_waiting(&FromKeeper::NotRunning(format!(
                    "the daemon could not be executed: {error}"
                )));
                self.restart_at = self.restart.after_death(false, 0).map(|pause| clock::monotonic() + pause);
            }
        }
    }

    pub(super) fn spawn_daemon(&self) -> io::Result<u32> {
        // The program that the home records may be newer than this keeper's own.
        let program = match home::recorded_program(&self.home).filter(|program| program.exists()) {
            Some(program) => program,
            None => std::env::current_exe()?,
        };
        let mut command = Command::new(program);
        command.arg(dispatch::DAEMON).arg(&self.home).stdin(Stdio::null()).stdout(Stdio::null());
        // No link is followed out of the home, and no pipe in its place is waited for.
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
        let mut options = File::options();
        options.append(true).create(true).mode(0o600).custom_flags(i32::try_from(flags.bits()).unwrap_or(0));
        let log = options.open(self.home.join(home::LOG));
        command.stderr(log.map_or_else(|_| Stdio::null(), Stdio::from));
        Ok(command.spawn()?.id())
    }

    pub(super) fn daemon_died(&mut self) {
        let Some(daemon) = self.daemon.take() else { return };
        let lived = clock::monotonic() - daemon.since;
        let waiting = self.peers.iter().any(|peer| peer.role == Role::Waiting);
        if daemon.leaving {
            // Stopped on purpose, unless somebody has asked for it again meanwhile.
            if waiting {
                self.start_as_asked();
            }
            return;
        }
        let stopped = home::is_stopped(&self.home);
        let pause = if stopped { None } else { self.restart.after_death(daemon.ready, lived) };
        self.restart_at = pause.map(|pause| clock::monotonic() + pause);
        // One that was killed as it started is tried again before anybody is told; one that said why it cannot is believed.
        let hopeless = daemon.complaint.is_some() || pause.is_none() || self.restart.is_failing();
        if !daemon.ready && waiting && hopeless {
            let reason =
                daemon.complaint.unwrap_or_else(|| "it died while it started; daemon.log may say why".into());
            self.answer_waiting(&FromKeeper::NotRunning(reason));
        }
    }
}
