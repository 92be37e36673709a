//! `stop`: ends the caller's own tasks, the whole tree of each.

use homing_agents::registry::is_session;
use homing_api::StopRequest;
use rmcp::model::{Tool, ToolAnnotations};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::access::{Access, Context};
use crate::patience::patiently;
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::summary::Summary;

const DESCRIPTION: &str =
    "End your task with its process tree: SIGTERM, SIGKILL after `grace_ms`. No error if it has ended.";

/// What it takes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Parameters {
    /// Task, as for `list`.
    id: String,
    /// Default: the task's own, usually 5000.
    grace_ms: Option<u64>,
    /// Instead of TERM: INT, HUP, QUIT, ….
    signal: Option<String>,
}

/// What a stop came to.
#[derive(Debug, Serialize, JsonSchema)]
struct Stopped {
    /// False if it had ended before.
    stopping: bool,
    /// The task now.
    task: Summary,
}

pub(super) fn tool() -> Tool {
    let annotations =
        ToolAnnotations::with_title("Stop a task").read_only(false).destructive(true).idempotent(true);
    super::tool::<Parameters, Stopped>("stop", DESCRIPTION, annotations)
}

pub(super) async fn call(access: &Access, given: Parameters, context: &Context) -> Result<Reply, Refusal> {
    let task = super::find_own(access, "stop", &given.id).await?;
    let request = StopRequest {
        grace_ms: given.grace_ms,
        signal: given.signal,
        by: Some(access.owner.clone()),
        wait: true,
    };
    let stopping = access.client.stop(task.id.as_str(), &request);
    let answer = patiently(context, "the task is being stopped", stopping).await?;
    let task = answer.task;
    if task.status.is_terminal() && !is_session(&access.owner) {
        // The API tells a session of an agent by itself; whoever else calls tools has read the answer too.
        access.client.mark_delivered(std::slice::from_ref(&task.id)).await?;
    }
    let summary = Summary::new(&task, &access.owner);
    let before = if answer.stopping { "" } else { "It had ended before, and nothing was changed.\n" };
    let text = format!("{before}{}", summary.text(&task));
    Ok(Reply::new(text, &Stopped { stopping: answer.stopping, task: summary }).noted())
}
