//! `homing show`: everything about one task.

use clap::Args;
use clap_complete::ArgValueCompleter;
use homing_model::sanitize::line;
use homing_model::units::{show_duration, show_size};
use homing_model::{Task, Timestamp};

use crate::console::{Console, Tint};
use crate::context::Context;
use crate::failure::Failure;
use crate::{completion, exit_code, symbol, table};

/// Show everything about one task
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  homing show @last
  homing show t-k3m                  a unique start of the id is enough
  homing show build --json | jq .outcome")]
pub(crate) struct Options {
    /// Id, start of one, name, or @last
    #[arg(value_name = "ID", add = ArgValueCompleter::new(completion::tasks))]
    id: String,
}

/// Prints one task.
pub(crate) fn run(options: &Options, context: &Context) -> Result<u8, Failure> {
    let task = context.block_on(async { Ok(context.client().task(&options.id).await?) })?;
    if context.json {
        context.console.json(&task)?;
    } else {
        context.console.data(render(&task, context.now(), &context.console).as_bytes())?;
    }
    Ok(exit_code::DONE)
}

fn render(task: &Task, now: Timestamp, console: &Console) -> String {
    let (status, tint) = symbol::status(task.status, console);
    let told = symbol::sentence(task);
    let told = told.strip_prefix(task.status.as_str()).unwrap_or_default();
    let mut out =
        format!("{}  {}{told}\n", console.tint(Tint::Bold, task.id.as_str()), console.tint(tint, &status));
    for (name, value) in facts(task, now) {
        out.push_str(&format!("  {}  {value}\n", console.tint(Tint::Dim, &format!("{name:<11}"))));
    }
    out
}

/// What there is to say, in order; what is absent is not said.
fn facts(task: &Task, now: Timestamp) -> Vec<(&'static str, String)> {
    let time = |at: Timestamp| format!("{at} ({} ago)", show_duration(now.millis_since(at)));
    let mut facts = Vec::new();
    let mut add = |name, value: Option<String>| facts.extend(value.map(|value| (name, value)));
    add("name", task.name.as_deref().map(line));
    add("description", task.description.as_deref().map(line));
    add("command", Some(line(&task.command)));
    add("folder", task.cwd.as_deref().map(line));
    add("owner", Some(line(&task.owner)));
    let labels: Vec<_> = task.labels.iter().map(|(name, value)| line(&format!("{name}={value}"))).collect();
    add("labels", (!labels.is_empty()).then(|| labels.join(" ")));
    add("key", task.key.as_deref().map(line));
    add("waits for", task.queued_reason.as_deref().map(line));
    add("created", Some(time(task.created_at)));
    add("started", task.started_at.map(time));
    add("ended", task.ended_at.map(time));
    add("took", table::running_time(task, now).map(show_duration));
    add("time limit", task.timeout_ms.map(show_duration));
    add("pid", task.pid.map(|pid| pid.to_string()));
    add("attempt", (task.attempt > 1).then(|| task.attempt.to_string()));
    if let Some(outcome) = &task.outcome {
        add("processor", (outcome.cpu_ms > 0).then(|| show_duration(outcome.cpu_ms)));
        add("memory", (outcome.max_rss_bytes > 0).then(|| show_size(outcome.max_rss_bytes)));
        let left: Vec<_> =
            outcome.survivors.iter().map(|left| format!("{} ({})", line(&left.name), left.pid)).collect();
        add("left behind", (!left.is_empty()).then(|| left.join(", ")));
    }
    add("output", Some(output(task)));
    add("input", task.accepts_input.then(|| "open: `homing input`".to_owned()));
    add("parent", task.parent.as_ref().map(ToString::to_string));
    add("variables", (!task.env_names.is_empty()).then(|| line(&task.env_names.join(" "))));
    facts
}

fn output(task: &Task) -> String {
    if task.forgotten {
        return "no longer kept".to_owned();
    }
    let mut text = show_size(task.output.bytes);
    if task.output.dropped > 0 {
        text.push_str(&format!(", of which {} not kept", show_size(task.output.dropped)));
    }
    if let Some(path) = &task.output.path {
        text.push_str(&format!(", {}", line(path)));
    }
    text
}

#[cfg(test)]
mod tests {
    use homing_client::fake::sample_task;

    use super::*;

    #[test]
    fn all_that_is_known_is_shown_and_nothing_that_is_not() {
        let mut json = sample_task("failed");
        json["labels"]["ci"] = "1".into();
        json["outcome"]["survivors"] = serde_json::json!([{ "pid": 7, "name": "sleep" }]);
        json["output"]["dropped"] = 4.into();
        let now = "2026-01-01T00:00:11.010Z".parse().unwrap();
        let text = render(&serde_json::from_value(json).unwrap(), now, &Console::plain(Some(80)));
        assert!(text.starts_with("t-bcdfghjkmn  ✗ failed, exit 1\n"), "{text}");
        assert!(text.contains("  took         1.0s\n"), "{text}");
        assert!(text.contains("  ended        2026-01-01T00:00:01.010Z (10.0s ago)\n"), "{text}");
        assert!(text.contains("  left behind  sleep (7)\n"), "{text}");
        assert!(
            text.contains("  output       9 B, of which 4 B not kept, /h/tasks/t-bcdfghjkmn/output.log\n"),
            "{text}"
        );
        assert!(!text.contains("attempt") && !text.contains("key"), "{text}");
    }
}
