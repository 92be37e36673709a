//! `input`: what one of the caller's own tasks reads.

use bytes::Bytes;
use rmcp::model::{Tool, ToolAnnotations};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::access::Access;
use crate::refusal::Refusal;
use crate::reply::Reply;

const DESCRIPTION: &str = "Write to your task that was run with `stdin` or `pty`: `text`, a line feed with `enter`, end of input with `eof`. `output` shows what it \
answers.";

/// What it takes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Parameters {
    /// Task, as for `list`.
    id: String,
    /// Written as it is.
    #[serde(default)]
    text: String,
    /// Add a line feed.
    #[serde(default)]
    enter: bool,
    /// Then close the input.
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

pub(super) async fn call(access: &Access, given: Parameters) -> Result<Reply, Refusal> {
    let mut text = given.text;
    if given.enter {
        text.push('\n');
    }
    if text.is_empty() && !given.eof {
        return Err(Refusal::invalid("there is nothing to write: give `text`, `enter` or `eof`"));
    }
    let task = super::find_own(access, "input", &given.id).await?;
    let whole = text.len();
    let answer = access.client.input(task.id.as_str(), Bytes::from(text), given.eof).await?;
    let text = format!("{} took {} of {whole} bytes.", task.id, answer.written);
    Ok(Reply::new(text, &Written { written: answer.written }))
}
