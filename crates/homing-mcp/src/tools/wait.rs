//! `wait`: until tasks have ended, or the time is up.

use homing_client::{Mode, Purpose};
use homing_model::TaskId;
use rmcp::model::{Tool, ToolAnnotations};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::access::{Access, Context};
use crate::excerpt::{Excerpt, MOST};
use crate::patience::{bounded, patiently};
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::summary::Summary;

const DESCRIPTION: &str = "Wait until all tasks, or any (`mode`), have ended; gives outcomes and the end of each output. Past `wait_ms` the tasks go on, which is no \
error. What you are notified of need not be waited for.";

/// How long, where nobody says: below the time that clients give a tool.
const WAIT_MS: u64 = 30_000;
/// So many at once.
const MOST_IDS: usize = 32;
/// Ends are shown with at most so much of their output.
const TAIL: usize = 4 * 1024;
/// And with none where that would be less than this.
const LEAST: usize = 512;

/// What it takes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Parameters {
    /// Up to 32 tasks, as for `list`.
    ids: Vec<String>,
    /// Default: all.
    #[serde(default)]
    mode: Which,
    /// Up to 600000.
    #[serde(default = "wait_ms")]
    wait_ms: u64,
}

#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Which {
    #[default]
    All,
    Any,
}

const fn wait_ms() -> u64 {
    WAIT_MS
}

/// One of the tasks.
#[derive(Debug, Serialize, JsonSchema)]
struct Waited {
    /// The task.
    task: Summary,
    /// Of one that has ended: the end of what it printed.
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<Excerpt>,
}

/// What a wait came to.
#[derive(Debug, Serialize, JsonSchema)]
struct Outcome {
    /// Whether all (or any, as asked) have ended. False is no error: the wait is over, and the tasks go on.
    done: bool,
    /// The tasks, in the order asked.
    tasks: Vec<Waited>,
    /// With `mode` any: the one that ended first.
    #[serde(skip_serializing_if = "Option::is_none")]
    first: Option<TaskId>,
}

pub(super) fn tool() -> Tool {
    let annotations = ToolAnnotations::with_title("Wait for tasks").read_only(true);
    super::tool::<Parameters, Outcome>("wait", DESCRIPTION, annotations)
}

pub(super) async fn call(access: &Access, given: Parameters, context: &Context) -> Result<Reply, Refusal> {
    if given.ids.is_empty() || given.ids.len() > MOST_IDS {
        return Err(Refusal::invalid(format!("`ids` names {} tasks: give 1 to {MOST_IDS}", given.ids.len())));
    }
    let mut ids = Vec::with_capacity(given.ids.len());
    for id in &given.ids {
        match id.parse() {
            Ok(id) => ids.push(id),
            Err(_) => ids.push(super::find(access, "wait", id).await?.id),
        }
    }
    let mode = match given.mode {
        Which::All => Mode::All,
        Which::Any => Mode::Any,
    };
    let patient = access.client.patient_for_task();
    let waiting = patient.wait_for(&ids, mode, Some(bounded(given.wait_ms)), Purpose::Deliver);
    let answer = patiently(context, "waiting for the end", waiting).await?;
    let ended = answer.items.iter().filter(|task| task.status.is_terminal()).count();
    let room = (MOST / ended.max(1)).min(TAIL);
    let (mut tasks, mut lines) = (Vec::new(), Vec::new());
    for task in &answer.items {
        let summary = Summary::new(task, &access.owner);
        lines.push(summary.text(task));
        let shown = task.status.is_terminal() && !task.forgotten && room >= LEAST;
        // In nobody's name: the end that was just told is confirmed by the owner's next call, not by this one.
        let output = if shown { Excerpt::whole(&access.reader, &task.id, room).await? } else { None };
        lines.extend(output.as_ref().map(Excerpt::text));
        tasks.push(Waited { task: summary, output });
    }
    if !answer.done {
        lines.push(
            "The wait is over before the tasks are, which is no error: they go on. Call `wait` again, or do something else meanwhile.".to_owned(),
        );
    }
    Ok(Reply::new(lines.join("\n"), &Outcome { done: answer.done, tasks, first: answer.first }).noted())
}
