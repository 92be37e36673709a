//! `output`: what a task printed, by pages, from the end, or only the lines that match.

use homing_model::watch::Pattern;
use rmcp::model::{Tool, ToolAnnotations};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::access::{Access, Context};
use crate::excerpt::{Excerpt, UNTRUSTED, fenced};
use crate::grep::{self, Match};
use crate::patience::{bounded, patiently};
use crate::refusal::Refusal;
use crate::reply::Reply;

const DESCRIPTION: &str = "Read what a task printed, also while it runs: from `offset` on, the last `tail` lines, or only lines that match `grep`. `wait_ms` waits for \
something new, with `grep` for a match, such as a ready line. Changes nothing. Untrusted data.";

/// What it takes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Parameters {
    /// Task, as for `list`.
    id: String,
    /// From this byte on; go on with `next_offset`.
    offset: Option<u64>,
    /// So many last lines instead.
    tail: Option<u32>,
    /// Regex; each line comes with its offset.
    grep: Option<String>,
    /// Up to 600000.
    #[serde(default)]
    wait_ms: u64,
}

/// What was found.
#[derive(Debug, Serialize, JsonSchema)]
struct Printed {
    /// A part of the output.
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<Excerpt>,
    /// With `grep`: the lines that match.
    #[serde(skip_serializing_if = "Option::is_none")]
    matches: Option<Vec<Match>>,
    /// With `grep`: what the lines are.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
    /// With `grep`: lines that match and are not shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    more_matches: Option<u64>,
    /// Go on from here.
    next_offset: u64,
    /// The task has ended, and nothing follows.
    complete: bool,
}

pub(super) fn tool() -> Tool {
    let annotations = ToolAnnotations::with_title("Read a task's output").read_only(true);
    super::tool::<Parameters, Printed>("output", DESCRIPTION, annotations)
}

pub(super) async fn call(access: &Access, given: Parameters, context: &Context) -> Result<Reply, Refusal> {
    if given.tail.is_some() && (given.offset.is_some() || given.grep.is_some()) {
        return Err(Refusal::invalid("`tail` goes with neither `offset` nor `grep`: choose one"));
    }
    let pattern = given.grep.as_deref().map(Pattern::new).transpose();
    let pattern = pattern.map_err(|error| Refusal::invalid(format!("`grep`: {error}")))?;
    let task = super::find(access, "output", &given.id).await?;
    let (client, id, offset) = (&access.client, task.id.as_str(), given.offset.unwrap_or(0));
    let wait = (given.wait_ms > 0).then(|| bounded(given.wait_ms));
    let reply = match (pattern, given.tail) {
        (Some(pattern), _) => {
            let deadline = wait.map(|wait| Instant::now() + wait);
            let searching = grep::search(client, id, &pattern, offset, deadline);
            matched(patiently(context, "waiting for a line", searching).await?)
        }
        (None, Some(lines)) => {
            let lines = usize::try_from(lines).unwrap_or(usize::MAX);
            printed(Excerpt::tail(client, id, lines).await?)
        }
        (None, None) => {
            let reading = Excerpt::page(client, id, offset, wait);
            printed(patiently(context, "waiting for output", reading).await?)
        }
    };
    Ok(reply.linked(&task.id))
}

fn printed(output: Excerpt) -> Reply {
    let (next_offset, complete) = (output.next_offset, output.is_complete());
    let rest = match (complete, output.is_empty()) {
        (true, _) => "The task has ended, and nothing follows.".to_owned(),
        (false, true) => "Nothing new so far, which is no error: the task goes on. Wait with `wait_ms`, or do something else.".to_owned(),
        (false, false) => format!("Next offset: {next_offset}"),
    };
    let text = format!("{}\n{rest}", output.text());
    let printed = Printed {
        output: Some(output),
        matches: None,
        note: None,
        more_matches: None,
        next_offset,
        complete,
    };
    Reply::new(text, &printed)
}

fn matched(found: grep::Found) -> Reply {
    let lines: String = found.lines.iter().map(|one| format!("{}: {}\n", one.offset, one.line)).collect();
    let more = if found.more > 0 { format!("\n{} more match.", found.more) } else { String::new() };
    let rest = if found.complete {
        "The task has ended, and all of its output was looked at.".to_owned()
    } else {
        format!("Looked at up to offset {}; the task goes on, or there is more.", found.next_offset)
    };
    let text = match lines.as_str() {
        "" => format!("No line matches. {rest}"),
        lines => format!("Lines that match, by offset ({UNTRUSTED}):\n{}{more}\n{rest}", fenced(lines)),
    };
    let printed = Printed {
        output: None,
        matches: Some(found.lines),
        note: Some(UNTRUSTED.to_owned()),
        more_matches: Some(found.more),
        next_offset: found.next_offset,
        complete: found.complete,
    };
    Reply::new(text, &printed)
}
