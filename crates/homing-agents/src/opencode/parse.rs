//! opencode: `opencode run --format json`.
//!
//! Each line has `sessionID` and, but for errors, a `part`: `step_start`, `text` (whole; a message may have several), `tool_use`, `step_finish` with
//! what the step cost. An `error` ends the run, unless it goes on to speak.

use homing_model::agent::Tokens;
use serde_json::Value;

use crate::parse::words::{count, of_error};
use crate::parse::{Parse, Said};

#[derive(Debug, Default)]
pub(super) struct Parser {
    /// The message that was spoken last.
    message: Option<String>,
}

impl Parse for Parser {
    fn read(&mut self, line: &Value, said: &mut Said) {
        said.session(line.get("sessionID"));
        let part = line.get("part").unwrap_or(&Value::Null);
        match line.get("type").and_then(Value::as_str) {
            Some("step_start") => said.turn(),
            Some("text") => self.text(part, said),
            Some("tool_use") => {
                let name = part.get("tool").and_then(Value::as_str).unwrap_or("a tool");
                said.tool(name, part.pointer("/state/input").unwrap_or(&Value::Null));
            }
            Some("step_finish") => {
                if let Some(cost) = part.get("cost").and_then(Value::as_f64) {
                    said.heard.cost_usd = Some(said.heard.cost_usd.unwrap_or(0.0) + cost);
                }
                if part.get("tokens").is_some_and(Value::is_object) {
                    let cached = count(part, "/tokens/cache/read");
                    said.spend(Tokens {
                        input: count(part, "/tokens/input") + count(part, "/tokens/cache/write") + cached,
                        cached,
                        output: count(part, "/tokens/output") + count(part, "/tokens/reasoning"),
                    });
                }
            }
            Some("error") => said.fail(&of_error(line.get("error").unwrap_or(&Value::Null))),
            Some(_) | None => {}
        }
    }
}

impl Parser {
    fn text(&mut self, part: &Value, said: &mut Said) {
        let text = part.get("text").and_then(Value::as_str).filter(|text| !text.trim().is_empty());
        let synthetic = part.get("synthetic").and_then(Value::as_bool) == Some(true);
        let Some(text) = text.filter(|_| !synthetic) else { return };
        said.error = None;
        let message = part.get("messageID").and_then(Value::as_str);
        if message.is_some() && message == self.message.as_deref() {
            said.more("\n");
            said.more(text);
            said.doing(text);
        } else {
            said.message(text);
        }
        self.message = message.map(str::to_owned);
    }
}
