//! What homing has to know of an agent.

use std::fmt;
use std::pin::Pin;

use homing_model::Session;
use serde_json::Value;

use crate::environment::Variables;
use crate::hooks::{self, Event, Hooks, Input};
use crate::install::{Installation, Site};
use crate::parse::Parse;
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
    /// The variable that names its session.
    pub session_variable: &'static str,
    /// Other variables that say which session a process belongs to, or that let it act as one: they are kept from tasks.
    pub private_variables: &'static [&'static str],
    /// Whether a turn of it can be started from outside.
    pub wakes: bool,
    /// Whether a wake may name a server of it.
    pub has_server: bool,
    /// Whether a process of it is in one conversation at a time. Where one runs the tools of many, being started by it says nothing.
    pub one_session_per_process: bool,
    /// Where its MCP calls name their session: neither the environment nor the ancestors of a bridge say it.
    pub mcp_session: Option<McpSession>,
    /// How its prompt is drawn on a terminal, if that is known.
    pub prompt: Option<&'static PromptLayout>,
}

/// How an agent is asked one thing. The prompt is the input of the program.
#[derive(Debug, Clone, Copy)]
pub struct Ask {
    /// Program and arguments.
    pub argv: &'static [&'static str],
    /// The same where a session goes on: [`SESSION`] stands for it.
    pub resume: &'static [&'static str],
    /// Where the agent keeps its state: the first of these variables that is an absolute path, and the folder below it.
    pub folder: &'static [(&'static str, &'static str)],
    /// Folders below that in which sessions have files, and how many levels down.
    pub session_files: &'static [(&'static str, u32)],
}

/// Stands for the session in a command line that goes on with one.
pub const SESSION: &str = "{session}";

/// Where a call of the agent's MCP client names its session, where one process has several.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum McpSession {
    /// In this field of the call's `_meta`.
    Meta(&'static str),
    /// In this argument, which no tool has. homing's plugin sets it last, so a model that gives it changes nothing.
    Argument(&'static str),
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

    /// How it is asked.
    fn ask(&self) -> &'static Ask;

    /// Whether a file of this name may be that of a session, of which the name has only a part: then the file has the whole id in its
    /// first lines.
    fn abbreviates(&self, _file: &str, _session: &str) -> bool {
        false
    }

    /// Understands what it prints when it is asked.
    fn parser(&self) -> Box<dyn Parse>;

    /// Adds what the environment of a process in the session says of the way to it: facts (a process, a socket, a folder), never a token
    /// that opens it.
    fn detect(&self, found: Session, variables: Variables<'_>) -> Session {
        let _ = variables;
        found
    }

    /// What its hooks are like.
    fn hooks(&self) -> Hooks {
        Hooks::default()
    }

    /// What it calls an event.
    fn event_name(&self, event: Event) -> &'static str {
        event.usual_name()
    }

    /// What a hook prints so that the agent's model reads this text.
    fn hook_answer(&self, event: Event, text: &str) -> Value {
        hooks::context(self.event_name(event), text)
    }

    /// Whether the agent puts what this hook prints into the model's context.
    fn reaches_model(&self, event: Event, input: &Input) -> bool {
        let _ = input;
        event.reaches_model()
    }

    /// How often in a row a hook may put off the end of a turn; at the next time the agent ends it all the same.
    fn stop_limit(&self, variables: Variables<'_>) -> Option<u32> {
        let _ = variables;
        None
    }

    /// Whether the agent polls for the ends of its MCP tasks.
    fn polls_tasks(&self, variables: Variables<'_>) -> bool {
        let _ = variables;
        false
    }

    /// Whether a hook that waits in the background can wake the session; the words are those of the agent's command line.
    fn can_be_rewoken(&self, variables: Variables<'_>, words: &[&[u8]]) -> bool {
        let _ = (variables, words);
        true
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

    /// What makes it know of homing.
    fn install(&self, site: &Site<'_>) -> Installation;

    /// The ways by which this version can be woken, and what to do where that is too old.
    fn ways(&self, version: Option<Version>) -> Ways;
}
