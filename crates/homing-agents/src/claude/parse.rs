//! Claude Code: `claude -p --output-format stream-json --verbose`.
//!
//! `system` (`init` names the session), then `assistant` and `user` lines, one per part of a message, and a `result` at the end of each turn of
//! the conversation: there are several where background work of its own woke it. Lines with `parent_tool_use_id` are those of
//! sub-agents within. A message of the model `<synthetic>` is Claude Code's own, and says what went wrong. A result with `is_error` is a failure,
//! whatever its `subtype`.

use homing_model::agent::Tokens;
use serde_json::Value;

use crate::parse::words::{count, of_error};
use crate::parse::{Parse, Said};

#[derive(Debug, Default)]
pub(crate) struct Parser {
    /// The message that came last: a message has several lines, a turn one message.
    message: Option<String>,
    /// Whether something of it was said.
    spoken: bool,
}

impl Parse for Parser {
    fn read(&mut self, line: &Value, said: &mut Said) {
        match line.get("type").and_then(Value::as_str) {
            Some("system") => said.session(line.get("session_id")),
            Some("assistant") => {
                said.session(line.get("session_id"));
                self.message(line, said);
            }
            Some("result") => result(line, said),
            Some(_) | None => {}
        }
    }
}

impl Parser {
    fn message(&mut self, line: &Value, said: &mut Said) {
        let within = line.get("parent_tool_use_id").is_some_and(|id| !id.is_null());
        let synthetic = line.pointer("/message/model").and_then(Value::as_str) == Some("<synthetic>");
        let failed = line.get("error").is_some_and(|error| !error.is_null());
        let id = line.pointer("/message/id").and_then(Value::as_str);
        let own = !within && !synthetic && !failed;
        if own && (id.is_none() || id != self.message.as_deref()) {
            self.message = id.map(str::to_owned);
            self.spoken = false;
            said.turn();
        }
        let content = line.pointer("/message/content");
        if let (Some(text), true) = (content.and_then(Value::as_str), own) {
            said.message(text);
        }
        for part in content.and_then(Value::as_array).into_iter().flatten() {
            let text = part.get("text").and_then(Value::as_str).filter(|text| !text.trim().is_empty());
            match (part.get("type").and_then(Value::as_str), text) {
                (Some("tool_use"), _) => {
                    let name = part.get("name").and_then(Value::as_str).unwrap_or("a tool");
                    said.tool(name, part.get("input").unwrap_or(&Value::Null));
                }
                (Some("text"), Some(text)) if own && self.spoken => {
                    said.more("\n");
                    said.more(text);
                }
                (Some("text"), Some(text)) if own => {
                    self.spoken = true;
                    said.message(text);
                }
                (Some("text"), Some(text)) => said.doing(text),
                (_, _) => {}
            }
        }
    }
}

fn result(line: &Value, said: &mut Said) {
    said.session(line.get("session_id"));
    let turns = line.get("num_turns").and_then(Value::as_u64);
    said.heard.turns = turns.or(said.heard.turns);
    said.heard.cost_usd = line.get("total_cost_usd").and_then(Value::as_f64).or(said.heard.cost_usd);
    if let Some(usage) = line.get("usage").filter(|usage| usage.is_object()) {
        let cached = count(usage, "/cache_read_input_tokens");
        let input = count(usage, "/input_tokens") + count(usage, "/cache_creation_input_tokens") + cached;
        said.heard.tokens = Some(Tokens { input, cached, output: count(usage, "/output_tokens") });
    }
    let subtype = line.get("subtype").and_then(Value::as_str).unwrap_or("success");
    let words = line.get("result").and_then(Value::as_str);
    if line.get("is_error").and_then(Value::as_bool).unwrap_or(subtype != "success") {
        let errors = line.get("errors").and_then(Value::as_array).into_iter().flatten();
        let errors: Vec<String> = errors.map(of_error).filter(|error| !error.is_empty()).collect();
        match words.filter(|words| !words.trim().is_empty()) {
            Some(words) => said.fail(words),
            None if errors.is_empty() => said.fail(subtype),
            None => said.fail(&errors.join("; ")),
        }
        return;
    }
    said.error = None;
    said.message(words.unwrap_or_default());
}
