//! Wakes: a turn of an agent is started with what it is to be told. Keeps P5 and P6.
//!
//! # Theory of operation
//!
//! There are two halves. [`readiness`] is asked by the dispatcher, in the daemon, before anything is claimed: it looks and changes nothing, so
//! a session that is busy or closed costs a look now and then, and no attempt. [`wake`] is the work of a process of its own under a shim
//! (`homing __homing-wake`), which looks once more, speaks, and says by its exit code what came of it: 0 delivered, 75 not now, 78 given up, anything
//! else a failed attempt. So a daemon that dies neither loses nor doubles a turn.
//!
//! Each agent has a ladder of rungs, best first. A rung is taken only where it is known to work (the agent's version, a file, an answer), it
//! makes sure that it speaks to the very session it was given, and it has its evidence that the session has it. Where no rung leads to the
//! session nothing is said anywhere: the notice stays in the inbox.

mod claude;
mod codex;
mod desktop;
mod opencode;
mod program;
mod prompt;
mod rollout;
mod socket;
mod survey;
mod tmux;
mod told;
mod trace;
mod transcript;

use std::path::PathBuf;
use std::process::Command;

use homing_model::session::{Agent, Foreground};
use homing_model::wake::Readiness;
use homing_model::{Pane, Route, Session, WakeOrder as Order};

pub use desktop::refusal as no_desktop;
pub use survey::{Rung, Survey, survey};
pub use trace::has_traces;

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

/// Looks whether the other end can take something now. Changes nothing.
pub async fn readiness(route: &Route, runs: bool, surroundings: &Surroundings) -> Readiness {
    match route {
        Route::Session(session) => match session.agent {
            Agent::Claude => {
                let (session, surroundings) = (session.clone(), surroundings.clone());
                // A folder of small files, on a disk that may be slow.
                let look =
                    tokio::task::spawn_blocking(move || claude::readiness(&session, runs, &surroundings));
                look.await.unwrap_or(Readiness::Ready)
            }
            Agent::Opencode => opencode::readiness(session, surroundings).await,
            Agent::Codex => {
                let (session, surroundings) = (session.clone(), surroundings.clone());
                let look =
                    tokio::task::spawn_blocking(move || codex::readiness(&session, runs, &surroundings));
                look.await.unwrap_or(Readiness::Ready)
            }
            Agent::Gemini => Readiness::Ready,
        },
        Route::Pane(_) | Route::Desktop => Readiness::Ready,
    }
}

/// Starts a turn with what the order says, or says why not.
pub async fn wake(order: &Order, surroundings: &Surroundings) -> Verdict {
    match &order.route {
        None => Verdict::Failed("there is no way to anybody".to_owned()),
        Some(Route::Desktop) => desktop::show(&order.notices, surroundings),
        Some(Route::Pane(pane)) => tmux::wake(pane, order, surroundings).await,
        Some(Route::Session(session)) => match session.agent {
            Agent::Claude => claude::wake(session, order, surroundings),
            Agent::Codex => codex::wake(session, order, surroundings).await,
            Agent::Opencode => opencode::wake(session, order, surroundings).await,
            Agent::Gemini => Verdict::Failed("Gemini CLI takes no turn from outside".to_owned()),
        },
    }
}

/// What runs in the foreground of a pane now. `None` if that cannot be found out.
#[must_use]
pub fn foreground(pane: &Pane, path: &str) -> Option<Foreground> {
    tmux::foreground(pane, path)
}

impl Surroundings {
    /// A program that may call homing calls it for the same home.
    fn prepare(&self, command: &mut Command) {
        if self.names_home {
            command.env("HOMING_HOME", &self.home);
        }
    }

    /// Where the programs of a session are looked for.
    fn path_of<'a>(&'a self, session: &'a Session) -> &'a str {
        session.path.as_deref().unwrap_or(&self.path)
    }

    /// The folder of an agent: what the session says, else the usual one.
    fn folder_of(&self, session: &Session, usual: &str) -> Option<PathBuf> {
        session.folder.as_ref().map(PathBuf::from).or_else(|| self.user.as_ref().map(|user| user.join(usual)))
    }
}
