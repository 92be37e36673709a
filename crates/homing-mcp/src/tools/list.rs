//! `list`: the caller's tasks, or one of anybody's.

use homing_client::ListQuery;
use homing_model::units::show_size;
use homing_model::{Status, Task, Timestamp};
use rmcp::model::{Tool, ToolAnnotations};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::access::Access;
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::summary::{Summary, line};

const DESCRIPTION: &str = "List your tasks, live ones first, or show one by `id`. Needs no ids: works after a restart or a compaction. Not for waiting: `wait` waits.";

/// On a page, where nobody says.
const PAGE: u32 = 20;
/// On a page at most.
const LONGEST: u32 = 50;

/// What it takes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Parameters {
    /// A task: id or unique start of it, name, or `@last`.
    id: Option<String>,
    /// Only these states: queued, starting, running, paused, stopping, succeeded, failed, stopped, timed_out, start_failed, lost.
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    status: Vec<Status>,
    /// Also tasks of others.
    #[serde(default)]
    everyone: bool,
    /// Up to 50; default 20.
    limit: Option<u32>,
    /// The last `next_cursor`.
    cursor: Option<String>,
}

/// More of one task.
#[derive(Debug, Serialize, JsonSchema)]
struct Details {
    /// What it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    /// Where it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    cwd: Option<String>,
    /// When its command was executed.
    #[serde(skip_serializing_if = "Option::is_none")]
    started_at: Option<Timestamp>,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_at: Option<Timestamp>,
    /// The file with the first bytes of its output.
    #[serde(skip_serializing_if = "Option::is_none")]
    output_path: Option<String>,
    /// Whether `input` reaches it.
    accepts_input: bool,
    /// What is watched for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    watch: Vec<String>,
    /// How far it says it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    progress: Option<String>,
}

/// A page of tasks.
#[derive(Debug, Serialize, JsonSchema)]
struct Listed {
    /// The tasks.
    tasks: Vec<Summary>,
    /// Of the one that was asked for by id: more.
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<Details>,
    /// Give this as `cursor` for the next page; absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

pub(super) fn tool() -> Tool {
    let annotations = ToolAnnotations::with_title("List tasks").read_only(true);
    super::tool::<Parameters, Listed>("list", DESCRIPTION, annotations)
}

pub(super) async fn call(access: &Access, given: Parameters) -> Result<Reply, Refusal> {
    if let Some(id) = given.id {
        return Ok(one(access, &super::find(access, "list", &id).await?));
    }
    let query = ListQuery {
        // Inside a task the daemon shows what was started there, whoever owns it, and nothing else.
        owner: (!given.everyone && access.outer.is_none()).then(|| access.owner.clone()),
        statuses: given.status,
        limit: Some(given.limit.unwrap_or(PAGE).clamp(1, LONGEST)),
        // Models fill in what is optional.
        cursor: given.cursor.filter(|cursor| !cursor.is_empty()),
        ..ListQuery::default()
    };
    let page = access.client.list(&query).await?;
    let tasks: Vec<_> = page.items.iter().map(|task| Summary::new(task, &access.owner)).collect();
    let lines: Vec<_> = page.items.iter().zip(&tasks).map(|(task, summary)| summary.text(task)).collect();
    let mut text = if lines.is_empty() { "No tasks.".to_owned() } else { lines.join("\n") };
    if let Some(cursor) = &page.next_cursor {
        text.push_str(&format!("\nThere are more: `cursor` {cursor}"));
    }
    Ok(Reply::new(text, &Listed { tasks, details: None, next_cursor: page.next_cursor }).noted())
}

fn one(access: &Access, task: &Task) -> Reply {
    let summary = Summary::new(task, &access.owner);
    let details = Details {
        description: task.description.as_deref().map(|text| line(text, 500)),
        cwd: task.cwd.as_deref().map(|text| line(text, 500)),
        started_at: task.started_at,
        ended_at: task.ended_at,
        output_path: task.output.path.as_deref().map(|text| line(text, 500)),
        accepts_input: task.accepts_input,
        watch: task.watch.iter().map(|pattern| line(pattern, 200)).collect(),
        progress: task.progress.as_ref().map(|progress| {
            let percent = progress.percent.map(|percent| format!("{percent:.0} % "));
            line(
                &format!("{}{}", percent.unwrap_or_default(), progress.text.as_deref().unwrap_or_default()),
                200,
            )
        }),
    };
    let size = show_size(task.output.bytes);
    let text = format!("{}\nIt has printed {size}; `output` shows it.", summary.text(task));
    Reply::new(text, &Listed { tasks: vec![summary], details: Some(details), next_cursor: None })
        .noted()
        .linked(&task.id)
}
