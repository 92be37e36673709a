//! Gemini CLI: `gemini --output-format stream-json`.
//!
//! `init` names the session; a `message` of the assistant comes in pieces (`delta`), until something else comes; `tool_use`, `tool_result`; an `error` is
//! a warning; `result` has the status and the tokens.

use homing_model::agent::Tokens;
use serde_json::Value;

use crate::parse::words::{count, of_error};
use crate::parse::{Parse, Said};

#[derive(Debug, Default)]
pub(super) struct Parser {
    /// In the middle of a message.
    speaking: bool,
}

impl Parse for Parser {
    fn read(&mut self, line: &Value, said: &mut Said) {
        said.session(line.get("session_id"));
        let spoke = std::mem::take(&mut self.speaking);
        match line.get("type").and_then(Value::as_str) {
            Some("message") => self.message(line, spoke, said),
            Some("tool_use") => {
                let name = line.get("tool_name").and_then(Value::as_str).unwrap_or("a tool");
                said.tool(name, line.get("parameters").unwrap_or(&Value::Null));
            }
            Some("result") => {
                if let Some(stats) = line.get("stats").filter(|stats| stats.is_object()) {
                    said.heard.tokens = Some(Tokens {
                        input: count(stats, "/input_tokens"),
                        cached: count(stats, "/cached"),
                        output: count(stats, "/output_tokens"),
                    });
                }
                match line.get("status").and_then(Value::as_str) {
                    Some("error") => said.fail(&of_error(line.get("error").unwrap_or(&Value::Null))),
                    Some(_) | None => said.error = None,
                }
            }
            Some(_) | None => {}
        }
    }
}

impl Parser {
    fn message(&mut self, line: &Value, spoke: bool, said: &mut Said) {
        if line.get("role").and_then(Value::as_str) != Some("assistant") {
            return;
        }
        let text = line.get("content").and_then(Value::as_str).unwrap_or_default();
        self.speaking = line.get("delta").and_then(Value::as_bool) == Some(true);
        if spoke && self.speaking {
            said.more(text);
        } else if text.trim().is_empty() {
            // A message begins with its first word.
            self.speaking = false;
        } else {
            said.turn();
            said.message(text);
        }
    }
}
