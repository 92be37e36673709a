//! Wakes: a turn of an agent is started with notices. Keeps P5 and P6.
//!
//! # Theory of operation
//!
//! There are two halves. [`Agent::readiness`](crate::Agent::readiness) is called by the dispatcher, in the daemon, before anything is claimed: it
//! looks and changes nothing, so a session that is busy or closed costs a look now and then, and no attempt. [`Agent::wake`](crate::Agent::wake) is the
//! work of a process of its own under a shim (`homing __homing-wake`), which looks once more, speaks, and reports a [`Verdict`]. So a daemon that
//! dies neither loses nor doubles a turn.
//!
//! Each agent has a ladder of rungs, best first. A rung is taken only where it is known to work (the agent's version, a file, an answer), it
//! makes sure that it speaks to the very session it was given, and it has evidence that the session has the notices. Where no rung leads to the
//! session nothing is said anywhere: the notice stays in the inbox.

pub mod program;
pub mod screen;
pub(crate) mod socket;
mod survey;
pub mod tmux;
pub(crate) mod told;
pub(crate) mod transcript;

use std::fmt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use bytes::Bytes;
pub use homing_model::wake::Readiness;
use homing_model::{Notice, NoticeId, Session};

use crate::agent::BoxFuture;
pub use survey::{Rung, Survey, Ways, survey};

/// What a turn is started with.
#[derive(Debug, Clone, Copy)]
pub struct WakeRequest<'a> {
    /// What the turn is to report.
    pub notices: &'a [Notice],
    /// Which of the notices an attempt before this one may have delivered, with its evidence coming later than it waited.
    pub tried: &'a [NoticeId],
    /// Whether the agent may be run for one more turn where no process has the session open.
    pub runs: bool,
}

/// Sends HTTP requests for an agent that has a server.
pub trait HttpClient: fmt::Debug + Send + Sync {
    /// Sends one, and reads the answer; an error is a line for people.
    fn send(&self, request: http::Request<Bytes>) -> BoxFuture<'_, Result<http::Response<Vec<u8>>, String>>;
}

/// What a waker knows of its surroundings.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    /// The home that it works for.
    pub home: PathBuf,
    /// Whether programs have to be told which home that is.
    pub names_home: bool,
    /// The user's folder.
    pub user: Option<PathBuf>,
    /// Where programs are looked for, unless the session says it.
    pub path: String,
    /// The session bus, if the environment named one.
    pub bus: Option<String>,
    /// The way to agents that have a server.
    pub http: Option<Arc<dyn HttpClient>>,
}

/// What came of a wake, in one line each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The session has it, and this is the evidence.
    Delivered(String),
    /// Not now; this is no attempt.
    NotNow(String),
    /// It was tried, and the session does not have it.
    Failed(String),
    /// It was tried, and another attempt would fail as this one did.
    GivenUp(String),
}

/// Runs a look that reads files, which may be slow, beside the event loop.
pub(crate) fn look_beside(
    look: impl FnOnce() -> Readiness + Send + 'static,
) -> BoxFuture<'static, Readiness> {
    Box::pin(async { tokio::task::spawn_blocking(look).await.unwrap_or(Readiness::Ready) })
}

impl Surroundings {
    /// A program that may call homing calls it for the same home.
    pub(crate) fn prepare(&self, command: &mut Command) {
        if self.names_home {
            command.env("HOMING_HOME", &self.home);
        }
    }

    /// Where the programs of a session are looked for.
    pub(crate) fn path_of<'a>(&'a self, session: &'a Session) -> &'a str {
        session.path.as_deref().unwrap_or(&self.path)
    }

    /// The folder of an agent: what the session says, else the usual one.
    pub(crate) fn folder_of(&self, session: &Session, usual: &str) -> Option<PathBuf> {
        session.folder.as_ref().map(PathBuf::from).or_else(|| self.user.as_ref().map(|user| user.join(usual)))
    }
}
