//! `input`: what one of the caller's own tasks reads.

use bytes::Bytes;
use homing_model::Code;
use rmcp::model::{CallToolResult, JsonObject, Tool, ToolAnnotations};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::access::Access;
use crate::refusal::Refusal;
use crate::reply::Reply;

const DESCRIPTION: &str = "Write to the input of one of your tasks that was run with `stdin` or `pty`: `text`, then a line feed with `enter`, then the \
end of input with `eof`. `output` with the last `next_offset` shows what it answers.";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Parameters {
    /// The task: an id, a unique start of one, a name, or `@last`.
    id: String,
    /// What to write, exactly.
    #[serde(default)]
    text: String,
    /// End it with a line feed, as the Enter key does.
    #[serde(default)]
    enter: bool,
    /// Close the input afterwards.
    #[serde(default)]
    eof: bool,
}

/// What an input came to.
#[derive(Debug, Serialize, JsonSchema)]
struct Written {
    /// Bytes that the task took.
    written: u64,
}

pub(super) fn tool() -> Tool {
    let annotations = ToolAnnotations::with_title("Write to a task").read_only(false).destructive(false);
    super::tool::<Parameters, Written>("input", DESCRIPTION, annotations)
}

pub(super) async fn call(access: &Access, arguments: JsonObject) -> Result<CallToolResult, Refusal> {
    let given: Parameters = super::parameters(arguments)?;
    let mut text = given.text;
    if given.enter {
        text.push('\n');
    }
    if text.is_empty() && !given.eof {
        return Err(Refusal::invalid("there is nothing to write: give `text`, `enter` or `eof`"));
    }
    let task = access.client.task(&given.id).await?;
    super::own(access, &task, "write to")?;
    let whole = text.len();
    let sent = access.client.input(task.id.as_str(), Bytes::from(text), given.eof).await;
    let answer = sent.map_err(|error| match error.code() {
        Some(Code::NoInput) => {
            let advice = "Run it again with `stdin: true`, or with `pty: true` if it wants a terminal.";
            Refusal::advised(Code::NoInput, format!("{} takes no input", task.id), advice)
        }
        _ => error.into(),
    })?;
    let text = format!("{} took {} of {whole} bytes.", task.id, answer.written);
    Ok(Reply::new(text, &Written { written: answer.written }).into())
}
