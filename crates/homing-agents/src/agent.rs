//! What homing has to know of an agent.

use std::fmt;
use std::pin::Pin;

use homing_model::Session;

use crate::wake::program::Version;
use crate::wake::screen::PromptLayout;
use crate::wake::{Readiness, Surroundings, Verdict, WakeRequest, Ways};

/// A future of a method of [`Agent`].
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What an agent is called, and the facts of it that are plain data.
#[derive(Debug, Clone, Copy)]
pub struct Identity {
    /// The word before the colon of an owner, and the program's name.
    pub name: &'static str,
    /// As people call it.
    pub title: &'static str,
    /// How its prompt is drawn on a terminal, if that is known.
    pub prompt: Option<&'static PromptLayout>,
}

/// An agent that homing works with.
pub trait Agent: fmt::Debug + Sync {
    /// What it is called, and what it is like.
    fn identity(&self) -> &'static Identity;

    /// The word before the colon of an owner, and the program's name.
    fn name(&self) -> &'static str {
        self.identity().name
    }

    /// As people call it.
    fn title(&self) -> &'static str {
        self.identity().title
    }

    /// Whether the session can take a turn now. Changes nothing. `runs` permits a turn of a session that no process has open.
    fn readiness<'a>(
        &'a self,
        session: &'a Session,
        runs: bool,
        surroundings: &'a Surroundings,
    ) -> BoxFuture<'a, Readiness> {
        let _ = (session, runs, surroundings);
        Box::pin(async { Readiness::Ready })
    }

    /// Starts a turn of the session with the notices of the request.
    fn wake<'a>(
        &'a self,
        session: &'a Session,
        request: WakeRequest<'a>,
        surroundings: &'a Surroundings,
    ) -> BoxFuture<'a, Verdict> {
        let _ = (session, request, surroundings);
        Box::pin(async { Verdict::Failed(format!("{} takes no turn from outside", self.title())) })
    }

    /// Whether the agent's own files have this session. `None` if they cannot tell.
    fn has_traces(&self, _session: &Session, _surroundings: &Surroundings) -> Option<bool> {
        None
    }

    /// The ways by which this version can be woken, and what to do where that is too old.
    fn ways(&self, version: Option<Version>) -> Ways;
}
