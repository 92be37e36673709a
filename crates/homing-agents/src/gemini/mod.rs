//! Gemini CLI. It takes no turn from outside: its hooks deliver what waits.

use crate::agent::{Agent, Identity};
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
            prompt: Some(&PromptLayout {
                placeholder: "Type your message or @path/to/file",
                choice: '●',
                // `*` stands there where no call is asked about (--yolo); `!` would run what is typed.
                frame: Frame::Mark { marks: &[" > ", " * "], indent: "   " },
            }),
        }
    }

    fn ways(&self, _version: Option<Version>) -> Ways {
        let advice = "It takes no turn from outside: `homing install gemini` brings what waits at the end of its turns.";
        Ways { rungs: Vec::new(), advice: Some(advice.to_owned()) }
    }
}
