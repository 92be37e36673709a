//! Gemini CLI. It takes no turn from outside: its hooks deliver what waits.

mod install;
mod parse;

use serde_json::{Value, json};

use crate::agent::{Agent, Ask, Identity, SESSION};
use crate::hooks::{self, Event, Hooks, Input};
use crate::install::{Installation, Site};
use crate::parse::Parse;
use crate::wake::Ways;
use crate::wake::program::Version;
use crate::wake::screen::{Frame, PromptLayout};

/// Gemini CLI.
#[derive(Debug)]
pub(crate) struct Gemini;

impl Agent for Gemini {
    fn identity(&self) -> &'static Identity {
        &Identity {
            name: "gemini",
            title: "Gemini CLI",
            session_variable: "GEMINI_SESSION_ID",
            private_variables: &[],
            wakes: false,
            has_server: false,
            one_session_per_process: true,
            mcp_session: None,
            prompt: Some(&PromptLayout {
                placeholder: "Type your message or @path/to/file",
                choice: '●',
                // `*` stands there where no call is asked about (--yolo); `!` would run what is typed.
                frame: Frame::Mark { marks: &[" > ", " * "], indent: "   " },
            }),
        }
    }

    fn ask(&self) -> &'static Ask {
        &Ask {
            argv: &["gemini", "--output-format", "stream-json"],
            resume: &["gemini", "--output-format", "stream-json", "--resume", SESSION],
            folder: &[("HOME", ".gemini")],
            session_files: &[("tmp", 3)],
        }
    }

    fn abbreviates(&self, file: &str, session: &str) -> bool {
        let short = session.get(..8).unwrap_or(session);
        file.starts_with("session-") && file.contains(&format!("-{short}."))
    }

    fn parser(&self) -> Box<dyn Parse> {
        Box::new(parse::Parser::default())
    }

    fn hooks(&self) -> Hooks {
        // Its request failed, or the user stopped it.
        Hooks { no_answer: Some("[no response text]"), ..Hooks::default() }
    }

    fn event_name(&self, event: Event) -> &'static str {
        match event {
            Event::Stop => "AfterAgent",
            Event::Prompt => "BeforeAgent",
            Event::SessionStart | Event::SessionEnd | Event::Rewake => event.usual_name(),
        }
    }

    fn hook_answer(&self, event: Event, text: &str) -> Value {
        match event {
            Event::Stop => json!({ "decision": "deny", "reason": text }),
            _ => hooks::context(self.event_name(event), text),
        }
    }

    /// What `SessionStart` prints when a session is resumed in a terminal is dropped; what waits is then delivered by `BeforeAgent`, with the
    /// next prompt.
    fn reaches_model(&self, event: Event, input: &Input) -> bool {
        event.reaches_model() && !(event == Event::SessionStart && input.after_a_break())
    }

    fn install(&self, site: &Site<'_>) -> Installation {
        install::install(site)
    }

    fn ways(&self, _version: Option<Version>) -> Ways {
        let advice = "It takes no turn from outside: `homing install gemini` brings what waits at the end of its turns.";
        Ways { rungs: Vec::new(), advice: Some(advice.to_owned()) }
    }
}
