//! Codex.

mod install;
mod parse;
mod rollout;
mod threads;
mod wake;

use homing_model::Session;
use serde_json::{Value, json};

use crate::agent::{Agent, Ask, BoxFuture, Identity, McpSession, SESSION};
use crate::environment::Variables;
use crate::hooks::{self, Event};
use crate::install::{Installation, Site};
use crate::parse::Parse;
use crate::wake::program::Version;
use crate::wake::screen::{Frame, PromptLayout};
use crate::wake::{Readiness, Rung, Surroundings, Verdict, WakeRequest, Ways, look_beside};

/// The folder in the user's own.
const FOLDER: &str = ".codex";
/// The first version with a queue.
const QUEUES: Version = Version(0, 166, 0);

/// Codex.
#[derive(Debug)]
pub(crate) struct Codex;

impl Agent for Codex {
    fn identity(&self) -> &'static Identity {
        &Identity {
            name: "codex",
            title: "Codex",
            session_variable: "CODEX_THREAD_ID",
            private_variables: &["CODEX_SESSION_ID", "CODEX_TOOL_CALL_ID", "CODEX_VERSION"],
            wakes: true,
            has_server: false,
            one_session_per_process: false,
            mcp_session: Some(McpSession::Meta("threadId")),
            prompt: Some(&PromptLayout {
                placeholder: "Ask Codex to do anything",
                choice: '›',
                frame: Frame::Mark { marks: &["› "], indent: "  " },
            }),
        }
    }

    fn ask(&self) -> &'static Ask {
        &Ask {
            argv: &["codex", "exec", "--json", "--skip-git-repo-check", "-"],
            resume: &["codex", "exec", "resume", "--json", "--skip-git-repo-check", SESSION, "-"],
            folder: &[("CODEX_HOME", ""), ("HOME", FOLDER)],
            session_files: &[("sessions", 4), ("archived_sessions", 1), ("shell_snapshots", 1)],
        }
    }

    fn parser(&self) -> Box<dyn Parse> {
        Box::new(parse::Parser)
    }

    fn detect(&self, found: Session, variables: Variables<'_>) -> Session {
        let folder = variables.get("CODEX_HOME").or_else(|| variables.at_home(FOLDER));
        Session { version: variables.get("CODEX_VERSION"), folder, ..found }
    }

    fn hook_answer(&self, event: Event, text: &str) -> Value {
        match event {
            Event::Stop => json!({ "decision": "block", "reason": text }),
            _ => hooks::context(self.event_name(event), text),
        }
    }

    fn readiness<'a>(
        &'a self,
        session: &'a Session,
        runs: bool,
        surroundings: &'a Surroundings,
    ) -> BoxFuture<'a, Readiness> {
        let (session, surroundings) = (session.clone(), surroundings.clone());
        look_beside(move || wake::readiness(&session, runs, &surroundings))
    }

    fn wake<'a>(
        &'a self,
        session: &'a Session,
        request: WakeRequest<'a>,
        surroundings: &'a Surroundings,
    ) -> BoxFuture<'a, Verdict> {
        Box::pin(wake::wake(session, request, surroundings))
    }

    fn has_traces(&self, session: &Session, surroundings: &Surroundings) -> Option<bool> {
        threads::has_traces(&surroundings.folder_of(session, FOLDER)?, &session.id)
    }

    fn install(&self, site: &Site<'_>) -> Installation {
        install::install(site)
    }

    fn ways(&self, version: Option<Version>) -> Ways {
        let queues = version.is_some_and(|version| version >= QUEUES);
        let advice = || format!("Update Codex to {QUEUES} or later: it has a queue for messages.");
        Ways {
            rungs: vec![
                Rung { name: "queue", works: queues },
                Rung { name: "one more turn", works: version.is_some() },
            ],
            advice: (!queues).then(advice),
        }
    }
}
