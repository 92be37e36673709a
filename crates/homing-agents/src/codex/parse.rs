//! Codex: `codex exec --json`.
//!
//! `thread.started` names the session, `turn.started`, `item.started|updated|completed` for each thing that it does, `turn.completed` with the tokens
//! so far, or `turn.failed`. An `error` may be one that it gets over; the end of the turn says. An item of the type `error` is a warning.

use homing_model::agent::Tokens;
use serde_json::Value;

use crate::parse::words::{count, of_error};
use crate::parse::{Parse, Said};

#[derive(Debug)]
pub(super) struct Parser;

impl Parse for Parser {
    fn read(&mut self, line: &Value, said: &mut Said) {
        let item = line.get("item").unwrap_or(&Value::Null);
        match line.get("type").and_then(Value::as_str) {
            Some("thread.started") => said.session(line.get("thread_id")),
            Some("turn.started") => said.turn(),
            Some("item.started" | "item.updated") => doing(item, said),
            Some("item.completed") => match (kind(item), item.get("text").and_then(Value::as_str)) {
                (Some("agent_message"), Some(text)) => said.message(text),
                (_, _) => doing(item, said),
            },
            Some("turn.completed") => {
                said.error = None;
                if let Some(usage) = line.get("usage").filter(|usage| usage.is_object()) {
                    said.heard.tokens = Some(Tokens {
                        input: count(usage, "/input_tokens"),
                        cached: count(usage, "/cached_input_tokens"),
                        output: count(usage, "/output_tokens"),
                    });
                }
            }
            Some("turn.failed") => said.fail(&of_error(line.get("error").unwrap_or(&Value::Null))),
            Some("error") => said.fail(&of_error(line.get("message").unwrap_or(&Value::Null))),
            Some(_) | None => {}
        }
    }
}

fn kind(item: &Value) -> Option<&str> {
    item.get("type").and_then(Value::as_str)
}

fn doing(item: &Value, said: &mut Said) {
    let text = |field: &str| item.get(field).and_then(Value::as_str).unwrap_or_default();
    match kind(item) {
        Some("command_execution") => said.doing(text("command")),
        Some("mcp_tool_call") => said.doing(&format!("{}: {}", text("server"), text("tool"))),
        Some("web_search") => said.doing(&format!("web search: {}", text("query"))),
        Some("file_change") => said.doing("file change"),
        Some(_) | None => {}
    }
}
