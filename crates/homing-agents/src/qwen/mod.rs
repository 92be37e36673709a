//! Qwen Code. Its output, hooks and inbox socket are like those of Claude Code; the protocol of the socket is published, with receipts
//! (`cross-session-protocol.md` of its documentation).

mod install;
mod record;
mod wake;

use homing_model::Session;
use serde_json::{Value, json};

use crate::agent::{Agent, Ask, BoxFuture, Identity, SESSION};
use crate::claude;
use crate::environment::Variables;
use crate::hooks::{self, Event};
use crate::install::{Installation, Site};
use crate::parse::Parse;
use crate::wake::program::Version;
use crate::wake::{Readiness, Rung, Surroundings, Verdict, WakeRequest, Ways, look_beside};

/// The folder in the user's own.
const FOLDER: &str = ".qwen";
/// The oldest version that was tried.
const TRIED: Version = Version(0, 24, 0);
/// It ends a turn in spite of its hooks once they have put that off so often in a row.
const BLOCKS: u32 = 8;

/// Qwen Code.
#[derive(Debug)]
pub(crate) struct Qwen;

impl Agent for Qwen {
    fn identity(&self) -> &'static Identity {
        &Identity {
            name: "qwen",
            title: "Qwen Code",
            session_variable: "QWEN_CODE_SESSION_ID",
            private_variables: &[
                "QWEN_CODE_AGENT_ID",
                "QWEN_CODE_MESSAGING_SOCKET",
                "QWEN_CODE_MESSAGING_TOKEN",
                "QWEN_CODE_PROMPT_ID",
            ],
            wakes: true,
            has_server: false,
            one_session_per_process: true,
            mcp_session: None,
            prompt: None,
        }
    }

    fn ask(&self) -> &'static Ask {
        &Ask {
            argv: &["qwen", "--output-format", "stream-json"],
            resume: &["qwen", "--output-format", "stream-json", "--resume", SESSION],
            folder: &[("QWEN_HOME", ""), ("HOME", FOLDER)],
            session_files: &[("projects", 3)],
        }
    }

    fn parser(&self) -> Box<dyn Parse> {
        Box::new(claude::Parser::default())
    }

    fn detect(&self, found: Session, variables: Variables<'_>) -> Session {
        let folder = variables.get("QWEN_HOME").or_else(|| variables.at_home(FOLDER));
        Session { version: variables.get("QWEN_CODE_STARTUP_VERSION"), folder, ..found }
    }

    fn hook_answer(&self, event: Event, text: &str) -> Value {
        match event {
            Event::Stop => json!({ "decision": "block", "reason": text }),
            _ => hooks::context(self.event_name(event), text),
        }
    }

    fn stop_limit(&self, variables: Variables<'_>) -> Option<u32> {
        let set = variables.get("QWEN_CODE_STOP_HOOK_BLOCK_CAP").and_then(|text| text.trim().parse().ok());
        Some(set.unwrap_or(BLOCKS)).filter(|most| *most > 0)
    }

    /// It has no hook that waits in the background.
    fn can_be_rewoken(&self, _variables: Variables<'_>, _words: &[&[u8]]) -> bool {
        false
    }

    fn readiness<'a>(
        &'a self,
        session: &'a Session,
        _runs: bool,
        surroundings: &'a Surroundings,
    ) -> BoxFuture<'a, Readiness> {
        let (session, surroundings) = (session.clone(), surroundings.clone());
        look_beside(move || wake::readiness(&session, &surroundings))
    }

    fn wake<'a>(
        &'a self,
        session: &'a Session,
        request: WakeRequest<'a>,
        surroundings: &'a Surroundings,
    ) -> BoxFuture<'a, Verdict> {
        Box::pin(async move { wake::wake(session, request, surroundings) })
    }

    fn has_traces(&self, session: &Session, surroundings: &Surroundings) -> Option<bool> {
        let folder = surroundings.folder_of(session, FOLDER)?;
        Some(record::transcripts(&folder, &session.id).any(|path| path.is_file()))
    }

    fn install(&self, site: &Site<'_>) -> Installation {
        install::install(site)
    }

    fn ways(&self, version: Option<Version>) -> Ways {
        let works = version.is_some_and(|version| version >= TRIED);
        let advice =
            || format!("Update Qwen Code to {TRIED} or later; `homing install qwen` adds its hooks.");
        Ways { rungs: vec![Rung { name: "inbox socket", works }], advice: (!works).then(advice) }
    }
}
