//! `homing status`: one screen about the daemon and its tasks.

use std::collections::BTreeMap;

use clap::Args;
use homing_api::{ConfigurationInfo, ConfigurationSource, ListenerInfo, RecentFailure, StatusAnswer};
use homing_model::foreign::one_line as line;
use homing_model::notify::When;
use homing_model::operator::Policy;
use homing_model::units::show_duration;
use homing_model::{Status, Timestamp};

use crate::cli::context::Context;
use crate::cli::exit_code;
use crate::cli::failure::Failure;
use crate::render::columns;
use crate::render::console::{Console, Tint};
use crate::render::grid;

/// The columns before a value.
const INDENT: usize = 12;
/// So much is shown of a command.
const LONGEST: usize = 60;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  homing status
  homing status --json | jq .reconcile
  homing daemon status               the same question without starting a daemon")]
pub(crate) struct Options {
    /// List the daemon's background loops: their last run and last error.
    #[arg(short, long)]
    verbose: bool,
}

/// Asks the daemon, starting it if need be.
pub(crate) fn run(options: &Options, context: &Context) -> Result<u8, Failure> {
    let answer = context.block_on(async { Ok(context.client().status().await?) })?;
    print(&answer, context)?;
    if options.verbose && !context.json {
        context.console.data(loops(&answer, context.now(), &context.console).as_bytes())?;
    }
    Ok(exit_code::DONE)
}

/// Prints the answer as it was asked for.
pub(crate) fn print(answer: &StatusAnswer, context: &Context) -> Result<(), Failure> {
    if context.json {
        return context.console.json(answer);
    }
    context.console.data(render(answer, context.now(), &context.console).as_bytes())
}

fn render(answer: &StatusAnswer, now: Timestamp, console: &Console) -> String {
    let ago = |at: Timestamp| format!("{} ago", show_duration(now.millis_since(at)));
    let daemon = &answer.daemon;
    let keeper = daemon.keeper_pid.map(|pid| format!(", keeper {pid}")).unwrap_or_default();
    let mut lines = vec![
        (
            "daemon",
            format!(
                "pid {}{keeper}, version {}, started {}",
                daemon.pid,
                line(&daemon.version),
                ago(daemon.started_at)
            ),
            None,
        ),
        ("home", line(&daemon.home), None),
    ];
    if let Some(info) = &answer.configuration {
        lines.extend(configuration(info).into_iter().map(|(text, tint)| ("config", text, tint)));
    }
    let policy = answer.configuration.as_ref().and_then(|info| policy(&info.values));
    lines.extend(policy.map(|text| ("notices", text, None)));
    if let Some(why) = &daemon.degraded {
        lines.push(("degraded", line(why), Some(Tint::Red)));
    }
    let tasks = &answer.tasks;
    lines.push((
        "tasks",
        format!("{} running, {} queued, {} finished", tasks.running, tasks.queued, tasks.finished),
        None,
    ));
    lines.extend(by_status(&answer.statuses).map(|text| ("", text, None)));
    let pass = &answer.reconcile;
    let last = match pass.last_run_at {
        Some(at) => format!("last {} ({})", ago(at), show_duration(pass.last_duration_ms)),
        None => "not yet".to_owned(),
    };
    lines.push((
        "reconcile",
        format!(
            "every {}, {last}, {} passes, {} adopted, {} repaired",
            show_duration(pass.interval_ms),
            pass.passes,
            pass.adopted,
            pass.repaired
        ),
        None,
    ));
    for error in &pass.errors {
        let text = format!("{} {} ({})", error.task_id, line(&error.message), line(&error.code));
        lines.push(("", text, Some(Tint::Yellow)));
    }
    let deliveries = &answer.deliveries;
    if deliveries.pending > 0 || deliveries.dead > 0 {
        let tint = (deliveries.dead > 0).then_some(Tint::Yellow);
        lines.push(("deliveries", format!("{} pending, {} dead", deliveries.pending, deliveries.dead), tint));
    }
    if answer.inbox > 0 {
        let text = format!("{} {}", answer.inbox, if answer.inbox == 1 { "waits" } else { "wait" });
        lines.push(("inbox", text, None));
    }
    let listener = answer.listener.as_ref().and_then(listener);
    lines.extend(listener.map(|(text, tint)| ("listener", text, tint)));
    for (place, failure) in answer.failures.iter().enumerate() {
        let name = if place == 0 { "failures" } else { "" };
        lines.push((name, unlucky(failure, ago), Some(Tint::Red)));
    }
    let width = console.width.unwrap_or(usize::MAX).saturating_sub(INDENT);
    let mut out = String::new();
    for (name, value, tint) in &lines {
        for (index, part) in columns::wrap(value, width).iter().enumerate() {
            let name = console.tint(Tint::Dim, &format!("{:<10}", if index == 0 { name } else { "" }));
            let part = tint.map_or_else(|| part.clone(), |tint| console.tint(tint, part));
            out.push_str(&format!("{name}  {part}\n"));
        }
    }
    out
}

/// A table of the background loops. The last column holds the error of a loop that failed or ended.
fn loops(answer: &StatusAnswer, now: Timestamp, console: &Console) -> String {
    let ago = |at: Timestamp| format!("{} ago", show_duration(now.millis_since(at)));
    let rows = answer.background.iter().map(|entry| {
        let period = entry.period_ms.map_or_else(|| "event".to_owned(), show_duration);
        let last = entry.last_run_at.map_or_else(|| "-".to_owned(), ago);
        let error = entry
            .last_error
            .as_deref()
            .map(|error| format!("{}: {}", entry.last_error_at.map(ago).unwrap_or_default(), line(error)));
        let (about, tint) = match (error, entry.running) {
            (Some(error), _) => (error, Some(Tint::Red)),
            (None, false) => ("ended; restart the daemon".to_owned(), Some(Tint::Red)),
            (None, true) => (line(&entry.purpose), None),
        };
        let plain = |text: String| (text, None);
        vec![
            plain(line(&entry.name)),
            plain(period),
            plain(entry.runs.to_string()),
            plain(last),
            (about, tint),
        ]
    });
    let lines = grid::lines(&["LOOP", "EVERY", "RUNS", "LAST RUN", "PURPOSE"], rows.collect(), console);
    format!("\n{}\n", lines.join("\n"))
}

/// Tasks by status, in the order of a life, where that says more than the line above.
fn by_status(statuses: &BTreeMap<String, u64>) -> Option<String> {
    let known = Status::ALL.iter().filter_map(|status| {
        let (name, count) = (status.to_string(), statuses.get(status.as_str())?);
        Some(format!("{count} {name}"))
    });
    let said: Vec<_> = known.collect();
    (!said.is_empty()).then(|| said.join(", "))
}

/// A task that did not end well, on one line if there is room.
fn unlucky(failure: &RecentFailure, ago: impl Fn(Timestamp) -> String) -> String {
    let when = failure.ended_at.map(|at| format!(", {}", ago(at))).unwrap_or_default();
    let why = failure.reason.as_deref().map(|why| format!(" ({})", line(why))).unwrap_or_default();
    let title: String = line(&failure.title).chars().take(LONGEST).collect();
    format!("{} {}{why}{when}: {title}", failure.task_id, failure.status)
}

/// Where the loopback listener is, if it is on or should be.
fn listener(info: &ListenerInfo) -> Option<(String, Option<Tint>)> {
    if let Some(why) = &info.problem {
        return Some((line(why), Some(Tint::Red)));
    }
    let refused = match info.failed_auth {
        0 => String::new(),
        count => format!(", {count} without the token"),
    };
    info.enabled.then(|| (format!("{}; {} refused{refused}", info.addresses.join(", "), info.refused), None))
}

/// What the operator does not let notices do, if anything.
fn policy(values: &serde_json::Value) -> Option<String> {
    let policy: Policy = serde_json::from_value(values.get("notify")?.clone()).ok()?;
    let closed: Vec<_> = policy.closed().iter().map(ToString::to_string).collect();
    let closed = (!closed.is_empty()).then(|| format!("no {}", closed.join(", ")));
    let most = match policy.on {
        When::Always => None,
        When::Failure => Some("of failures only"),
        When::Never => Some("nobody is told"),
    };
    let said: Vec<_> = closed.into_iter().chain(most.map(str::to_owned)).collect();
    (!said.is_empty()).then(|| format!("{} ([notify] in config.toml)", said.join("; ")))
}

/// Where the configuration in force comes from, and what keeps the file from being it.
fn configuration(info: &ConfigurationInfo) -> Vec<(String, Option<Tint>)> {
    let path = line(&info.path);
    let mut texts: Vec<_> = info.variables.iter().map(|said| (line(said), Some(Tint::Yellow))).collect();
    let text = match (&info.problem, info.source) {
        (Some(why), ConfigurationSource::LastGood) => {
            format!("broken, the last good one is in force: {}", line(why))
        }
        (Some(why), _) => format!("broken, what was read before is in force: {}", line(why)),
        (None, _) if info.changed => {
            format!("{path} has changed since; `homing config reload` takes it over")
        }
        (None, ConfigurationSource::LastGood) => {
            format!("{path} was broken and is sound again; `homing config reload` takes it over")
        }
        (None, ConfigurationSource::File) => return [vec![(path, None)], texts].concat(),
        (None, ConfigurationSource::Defaults) => {
            return [vec![("defaults".to_owned(), None)], texts].concat();
        }
    };
    texts.insert(0, (text, Some(Tint::Yellow)));
    texts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(last_run_at: Option<&str>, pending: u64) -> StatusAnswer {
        serde_json::from_value(serde_json::json!({
            "daemon": { "pid": 7, "keeper_pid": 6, "version": "0.1.0", "started_at": "2026-01-01T00:00:00.000Z",
                        "home": "/h", "degraded": "the disk is full" },
            "tasks": { "queued": 0, "running": 2, "finished": 9 },
            "reconcile": { "interval_ms": 10000, "last_run_at": last_run_at, "last_duration_ms": 3,
                           "passes": 5, "adopted": 1, "repaired": 0,
                           "errors": [{ "task_id": "t-bcdfghjkmn", "code": "HM0013", "message": "bad row" }] },
            "deliveries": { "pending": pending, "dead": 0 }
        }))
        .unwrap()
    }

    fn shown(answer: &StatusAnswer) -> String {
        render(answer, "2026-01-01T00:01:00.000Z".parse().unwrap(), &Console::plain(Some(80)))
    }

    #[test]
    fn one_screen_says_who_serves_and_what_went_wrong() {
        let text = shown(&answer(Some("2026-01-01T00:00:50.000Z"), 0));
        assert!(
            text.starts_with("daemon      pid 7, keeper 6, version 0.1.0, started 1m 00s ago\n"),
            "{text}"
        );
        assert!(text.contains("degraded    the disk is full\n"), "{text}");
        assert!(
            text.contains("reconcile   every 10.0s, last 10.0s ago (3ms), 5 passes, 1 adopted, 0 repaired\n"),
            "{text}"
        );
        assert!(text.contains("            t-bcdfghjkmn bad row (HM0013)\n"), "{text}");
    }

    #[test]
    fn what_there_is_of_each_status_and_what_went_wrong_lately_fit_a_narrow_terminal() {
        let mut with = answer(None, 0);
        with.statuses = [("failed".to_owned(), 2), ("running".to_owned(), 1)].into();
        with.inbox = 3;
        let failure = serde_json::json!({ "task_id": "t-bcdfghjkmn", "title": "make \u{1b}[31mall", "owner": "user",
            "status": "failed", "reason": "exit code 2", "ended_at": "2026-01-01T00:00:30.000Z" });
        with.failures = vec![serde_json::from_value(failure).unwrap()];
        let text = shown(&with);
        assert!(text.contains("\n            1 running, 2 failed\n"), "{text}");
        assert!(text.contains("\ninbox       3 wait\n"), "{text}");
        assert!(text.contains("failures    t-bcdfghjkmn failed (exit code 2), 30.0s ago: make "), "{text}");
        assert!(!text.contains('\u{1b}'), "{text}");
        let narrow = render(&with, "2026-01-01T00:01:00.000Z".parse().unwrap(), &Console::plain(Some(40)));
        assert!(narrow.lines().all(|line| line.chars().count() <= 40), "{narrow}");
    }

    #[test]
    fn a_configuration_that_is_not_in_force_is_told() {
        let mut with = answer(None, 0);
        let mut told = |source: &str, problem: Option<&str>, changed: bool| {
            let info = serde_json::json!({ "path": "/h/config.toml", "source": source, "problem": problem,
                "changed": changed, "variables": [], "values": {} });
            with.configuration = Some(serde_json::from_value(info).unwrap());
            let text = shown(&with);
            text.lines().find_map(|line| line.strip_prefix("config      ")).unwrap_or_default().to_owned()
        };
        assert_eq!(told("file", None, false), "/h/config.toml");
        assert_eq!(told("defaults", None, false), "defaults");
        assert!(told("file", None, true).starts_with("/h/config.toml has changed since"));
        let broken = told("last_good", Some("/h/config.toml, line 2: x"), false);
        assert_eq!(broken, "broken, the last good one is in force: /h/config.toml, line 2: x");
        assert!(told("file", Some("line 2: x"), false).contains("read before is in force: line 2: x"));
    }

    #[test]
    fn what_the_operator_forbids_is_told() {
        let of = |values: serde_json::Value| policy(&serde_json::json!({ "notify": values }));
        assert_eq!(of(serde_json::json!({})), None);
        assert_eq!(
            of(serde_json::json!({ "forbid": ["exec"], "on": "failure" })).as_deref(),
            Some("no exec; of failures only ([notify] in config.toml)")
        );
    }

    #[test]
    fn where_the_listener_is_is_told_while_it_is_on() {
        let mut info = ListenerInfo::default();
        assert_eq!(listener(&info), None);
        info =
            ListenerInfo { enabled: true, addresses: vec!["http://127.0.0.1:8".into()], refused: 3, ..info };
        assert_eq!(listener(&info).unwrap().0, "http://127.0.0.1:8; 3 refused");
        info.failed_auth = 2;
        assert_eq!(listener(&info).unwrap().0, "http://127.0.0.1:8; 3 refused, 2 without the token");
        info.problem = Some("no".into());
        assert_eq!(listener(&info).unwrap().0, "no");
    }

    #[test]
    fn verbose_lists_loops_with_their_last_error() {
        let mut with = answer(None, 0);
        let entry = |name: &str, error: Option<&str>, running| {
            serde_json::json!({ "name": name, "purpose": "checks", "running": running, "period_ms": 10_000,
                "runs": 3, "last_run_at": "2026-01-01T00:00:55.000Z", "last_error": error,
                "last_error_at": error.map(|_| "2026-01-01T00:00:50.000Z") })
        };
        let entries = [entry("a", None, true), entry("b", Some("disk full"), true), entry("c", None, false)];
        with.background = entries.map(|entry| serde_json::from_value(entry).unwrap()).into();
        let text = loops(&with, "2026-01-01T00:01:00.000Z".parse().unwrap(), &Console::plain(Some(80)));
        let lines: Vec<_> = text.lines().skip(1).collect();
        assert_eq!(lines[1], "a     10.0s  3     5.0s ago  checks");
        assert_eq!(lines[2], "b     10.0s  3     5.0s ago  10.0s ago: disk full");
        assert_eq!(lines[3], "c     10.0s  3     5.0s ago  ended; restart the daemon");
    }

    #[test]
    fn what_has_not_happened_is_not_counted() {
        let text = shown(&answer(None, 0));
        assert!(text.contains("every 10.0s, not yet, 5 passes"), "{text}");
        assert!(!text.contains("deliveries"), "{text}");
        assert!(shown(&answer(None, 1)).contains("deliveries  1 pending, 0 dead\n"));
    }
}
