//! `homing show`: everything about one task.

mod told;

use clap::Args;
use clap_complete::ArgValueCompleter;
use homing_api::{AttemptInfo, TaskDetail};
use homing_model::foreign::one_line as line;
use homing_model::units::{show_duration, show_size};
use homing_model::{AgentInfo, InputWait, Kind, Survivor, Task, Timestamp};

use crate::cli::completion;
use crate::cli::context::Context;
use crate::cli::exit_code;
use crate::cli::failure::Failure;
use crate::cli::usage_wording;
use crate::daemon_control::survivors::{self, Now};
use crate::render::columns;
use crate::render::console::{Console, Tint};
use crate::render::symbol;
use crate::render::table;

/// So much of a prompt is shown.
const PROMPT_LINES: usize = 10;
/// The columns before a value.
const INDENT: usize = 15;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  homing show @last
  homing show t-k3m                  a unique start of the id is enough
  homing show --verbose build        with the names of its variables
  homing show build --json | jq .outcome
  homing show @last --json | jq '.notices, .deliveries'")]
pub(crate) struct Options {
    /// Id, start of one, name, or @last
    #[arg(value_name = "ID", value_parser = usage_wording::reference, add = ArgValueCompleter::new(completion::tasks))]
    id: String,
    /// The names of its variables too
    #[arg(long, short = 'v')]
    verbose: bool,
}

/// Prints one task.
pub(crate) fn run(options: &Options, context: &Context) -> Result<u8, Failure> {
    let task = context.block_on(async { Ok(context.client().detail(&options.id).await?) })?;
    if context.json {
        context.console.json(&task)?;
    } else {
        context.console.data(render(&task, options.verbose, context.now(), &context.console).as_bytes())?;
    }
    Ok(exit_code::DONE)
}

fn render(detail: &TaskDetail, verbose: bool, now: Timestamp, console: &Console) -> String {
    let task = &detail.task;
    let (status, tint) = symbol::status(task.status, console);
    let told = symbol::sentence(task);
    let told = told.strip_prefix(task.status.as_str()).unwrap_or_default();
    let width = console.width.unwrap_or(usize::MAX);
    let head = columns::fit(&format!("{}  {status}{told}", task.id), width)
        .replacen(task.id.as_str(), &console.tint(Tint::Bold, task.id.as_str()), 1)
        .replacen(&status, &console.tint(tint, &status), 1);
    let mut out = format!("{head}\n");
    let mut add = |name: &str, value: &str| {
        let path = task.output.path.as_deref().filter(|_| name == "output");
        for (index, value) in columns::wrap(value, width.saturating_sub(INDENT)).into_iter().enumerate() {
            let value = path.map_or_else(|| value.clone(), |path| console.link(path, &value));
            let name = console.tint(Tint::Dim, &format!("{:<11}", if index == 0 { name } else { "" }));
            out.push_str(&format!("  {name}  {value}\n"));
        }
    };
    if task.kind == Kind::Hook {
        add("hook", "a command that is told of what is listed as deliveries below");
        if let Some(owner) = detail.deliveries.first().map(|delivery| line(&delivery.owner)) {
            add("owner", &owner);
        }
    }
    for (name, value) in facts(task, now) {
        add(name, &value);
    }
    let earlier = detail.attempts.iter().filter(|attempt| attempt.number != task.attempt).map(attempted);
    let notices = detail.notices.iter().map(|notice| told::notice(notice, now));
    let deliveries = detail.deliveries.iter().map(|delivery| told::delivery(delivery, now));
    let mut list = |name: &str, lines: Vec<String>| {
        for (index, text) in lines.iter().enumerate() {
            add(if index == 0 { name } else { "" }, text);
        }
    };
    list("attempts", earlier.collect());
    list("notices", notices.collect());
    list("deliveries", deliveries.collect());
    match task.env_names.len() {
        0 => {}
        _ if verbose => {
            let names: Vec<_> = task.env_names.iter().map(|name| line(name)).collect();
            add("variables", &names.join(" "));
        }
        count => add("variables", &format!("{count} (`homing show --verbose` names them)")),
    }
    out
}

/// The same as pairs of a label and a text, for the panel.
pub(crate) fn told(detail: &TaskDetail, now: Timestamp) -> Vec<(String, String)> {
    let task = &detail.task;
    let mut all = vec![("id", task.id.to_string()), ("status", symbol::sentence(task))];
    all.extend(facts(task, now));
    let mut list = |name: &'static str, lines: Vec<String>| {
        all.extend(lines.into_iter().enumerate().map(|(at, text)| (if at == 0 { name } else { "" }, text)));
    };
    list("attempts", detail.attempts.iter().map(attempted).collect());
    list("notices", detail.notices.iter().map(|notice| told::notice(notice, now)).collect());
    list("deliveries", detail.deliveries.iter().map(|delivery| told::delivery(delivery, now)).collect());
    all.into_iter().map(|(label, text)| (label.to_owned(), text)).collect()
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
    if let Some(agent) = &task.agent {
        add("agent", Some(line(&agent.name)));
        add("session", agent.session_id.as_deref().map(line));
        add("continues", agent.continues.as_ref().map(ToString::to_string));
        let asked = agent.prompt.iter().flat_map(|prompt| prompt.trim().lines()).take(PROMPT_LINES);
        for (index, text) in asked.enumerate() {
            add(if index == 0 { "asked" } else { "" }, Some(line(text)));
        }
        add("spent", spent(agent));
    }
    add("owner", Some(line(&task.owner)).filter(|_| task.kind != Kind::Hook));
    let labels: Vec<_> = task.labels.iter().map(|(name, value)| line(&format!("{name}={value}"))).collect();
    add("labels", (!labels.is_empty()).then(|| labels.join(" ")));
    add("key", task.key.as_deref().map(line));
    add("waits for", task.queued_reason.as_deref().map(line));
    add(
        "waits",
        match task.input_wait {
            InputWait::Yes => Some("for input: `homing input`".to_owned()),
            InputWait::Maybe => Some("perhaps for input: `homing attach` or `homing input`".to_owned()),
            InputWait::No => None,
        },
    );
    add("quiet since", task.quiet_since.map(time));
    add("progress", task.progress.as_ref().map(symbol::progress));
    add("created", Some(time(task.created_at)));
    add("started", task.started_at.map(time));
    add("ended", task.ended_at.map(time));
    add("took", table::running_time(task, now).map(show_duration));
    add("time limit", task.timeout_ms.map(show_duration));
    add("lease", lease(task));
    add("heard of", task.heard_at.map(time));
    for pattern in &task.watch {
        let off = if task.watch_off.contains(pattern) { " (off: it matched too often)" } else { "" };
        add("watches for", Some(format!("{}{off}", line(pattern))));
    }
    add("quiet alarm", task.quiet_after_ms.map(|after| format!("after {}", show_duration(after))));
    add("heartbeat", task.heartbeat_ms.map(|every| format!("every {}", show_duration(every))));
    add("pid", task.pid.map(|pid| pid.to_string()));
    add("attempt", (task.attempt > 1).then(|| task.attempt.to_string()));
    if let Some(outcome) = &task.outcome {
        add("processor", (outcome.cpu_ms > 0).then(|| show_duration(outcome.cpu_ms)));
        add("memory", (outcome.max_rss_bytes > 0).then(|| show_size(outcome.max_rss_bytes)));
        let left: Vec<_> = outcome.survivors.iter().map(|left| left_behind(task, left)).collect();
        add("left behind", (!left.is_empty()).then(|| left.join(", ")));
    }
    for (index, text) in task.answer.iter().flat_map(|answer| answer.lines()).enumerate() {
        add(if index == 0 { "answer" } else { "" }, Some(line(text)));
    }
    add("output", Some(output(task)).filter(|_| task.kind != Kind::External));
    add("input", task.accepts_input.then(|| "open: `homing input`".to_owned()));
    add("tells", (!task.forgotten && task.kind != Kind::Hook).then(|| told::policy(&task.notify)));
    add("parent", task.parent.as_ref().map(ToString::to_string));
    facts
}

/// What an agent took, by its own account.
fn spent(agent: &AgentInfo) -> Option<String> {
    let turns =
        agent.turns.map(|turns| if turns == 1 { "1 turn".to_owned() } else { format!("{turns} turns") });
    let tokens = agent.tokens.map(|tokens| {
        format!("{} tokens in ({} cached), {} out", tokens.input, tokens.cached, tokens.output)
    });
    let cost = agent.cost_usd.map(|cost| format!("{cost:.4} USD"));
    let parts: Vec<String> = [turns, tokens, cost].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// An earlier attempt, in a line.
fn attempted(attempt: &AttemptInfo) -> String {
    let took = attempt.duration_ms.map(|took| format!(" after {}", show_duration(took)));
    format!("{}: {}{}", attempt.number, attempt.status, took.unwrap_or_default())
}

/// A process that outlived the task, and what has become of it.
fn left_behind(task: &Task, left: &Survivor) -> String {
    let (name, now) = match survivors::look(&task.id, left) {
        Now::Runs(name) => (name, "still runs"),
        Now::MayRun => (left.name.clone(), "may still run"),
        Now::Gone => (left.name.clone(), "gone by now"),
    };
    format!("{} (pid {}, {now})", line(&name), left.pid)
}

/// How long somebody who runs a task may be silent, and until when that is.
fn lease(task: &Task) -> Option<String> {
    let lease = show_duration(task.lease_ms?);
    Some(task.lease_until.map_or_else(|| lease.clone(), |until| format!("{lease}, until {until}")))
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
        json["outcome"]["survivors"] = serde_json::json!([{ "pid": u32::MAX, "name": "sleep" }]);
        json["output"]["dropped"] = 4.into();
        let now = "2026-01-01T00:00:11.010Z".parse().unwrap();
        let text = render(&serde_json::from_value(json).unwrap(), false, now, &Console::plain(Some(80)));
        assert!(text.starts_with("t-bcdfghjkmn  ✗ failed, exit 1\n"), "{text}");
        assert!(text.contains("  took         1.0s\n"), "{text}");
        assert!(text.contains("  ended        2026-01-01T00:00:01.010Z (10.0s ago)\n"), "{text}");
        assert!(text.contains("  left behind  sleep (pid 4294967295, gone by now)\n"), "{text}");
        assert!(
            text.contains("  output       9 B, of which 4 B not kept, /h/tasks/t-bcdfghjkmn/output.log\n"),
            "{text}"
        );
        assert!(!text.contains("attempt") && !text.contains("key"), "{text}");
    }

    #[test]
    fn an_agent_is_shown_with_what_it_was_asked_and_what_it_took() {
        let mut json = sample_task("succeeded");
        json["kind"] = "agent".into();
        json["answer"] = "Because.\nOf that.".into();
        json["agent"] = serde_json::json!({
            "name": "claude", "session_id": "s-1", "prompt": "why?\u{1b}[2J\nand how", "turns": 3, "cost_usd": 0.12345,
            "tokens": { "input": 10, "cached": 4, "output": 2 }, "continue": "t-2222222222",
        });
        let detail: TaskDetail = serde_json::from_value(json).unwrap();
        let text = render(&detail, false, detail.task.created_at, &Console::plain(Some(80)));
        for part in [
            "  agent        claude\n  session      s-1\n  continues    t-2222222222\n",
            "               and how\n  spent        3 turns, 10 tokens in (4 cached), 2 out, 0.1235 USD\n",
            "  answer       Because.\n               Of that.\n",
        ] {
            assert!(text.contains(part), "{text}");
        }
        assert!(!text.contains('\u{1b}'));
    }

    #[test]
    fn a_narrow_terminal_shows_all_of_it_on_more_lines() {
        let mut json = sample_task("failed");
        json["command"] = "make --with=an-argument-that-is-longer-than-a-line all".into();
        let detail: TaskDetail = serde_json::from_value(json).unwrap();
        for width in [20, 40, 80] {
            let text = render(&detail, false, detail.task.created_at, &Console::plain(Some(width)));
            assert!(text.lines().all(|line| columns::of(line) <= width), "{text}");
            let squashed: String = text.split_whitespace().collect();
            assert!(squashed.contains("make--with=an-argument-that-is-longer-than-a-lineall"), "{text}");
        }
    }

    #[test]
    fn a_hook_is_shown_as_one_with_whose_notices_it_was_given() {
        let mut json = sample_task("succeeded");
        (json["kind"], json["owner"]) = ("hook".into(), "".into());
        json["deliveries"] = serde_json::json!([{ "id": "d-2222222222", "notice_id": "n-2222222222", "task_id": "t-2222222222",
            "owner": "ann", "target": "exec:true", "state": "delivered", "attempts": 1, "created_at": "2026-01-01T00:00:00.000Z",
            "next_at": null, "ended_at": null, "reason": null, "history": [] }]);
        let detail: TaskDetail = serde_json::from_value(json).unwrap();
        let text = render(&detail, false, detail.task.created_at, &Console::plain(Some(80)));
        assert!(
            text.contains("\n  hook         a command") && text.contains("\n  owner        ann\n"),
            "{text}"
        );
        assert_eq!(text.matches("owner").count(), 1, "{text}");
    }

    #[test]
    fn variables_are_counted_and_named_only_on_demand_within_the_terminal() {
        let mut json = sample_task("running");
        json["env_names"] = (0..40).map(|n| format!("VARIABLE_{n}")).collect::<Vec<_>>().into();
        let detail: TaskDetail = serde_json::from_value(json).unwrap();
        let text = |verbose| render(&detail, verbose, detail.task.created_at, &Console::plain(Some(60)));
        assert!(text(false).ends_with("  variables    40 (`homing show --verbose` names them)\n"));
        let text = text(true);
        assert!(text.lines().all(|line| columns::of(line) <= 60), "{text}");
        assert!(text.contains("  variables    VARIABLE_0 VARIABLE_1 VARIABLE_2 VARIABLE_3\n"), "{text}");
        assert!(text.contains("\n               VARIABLE_4 "), "{text}");
    }
}
