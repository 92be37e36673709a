//! `homing deliveries`: what went out, what waits, what is dead.

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap_complete::ArgValueCompleter;
use homing_api::Page;
use homing_client::{Client, DeliveryQuery, Error};
use homing_model::foreign::one_line as line;
use homing_model::units::show_duration;
use homing_model::{Delivery, DeliveryState, Timestamp};

use crate::cli::completion;
use crate::cli::context::Context;
use crate::cli::exit_code;
use crate::cli::failure::Failure;
use crate::cli::usage_wording;
use crate::options::home;
use crate::render::columns::fit;
use crate::render::console::{Console, Tint};
use crate::render::grid;
use crate::render::grid::{Cell, MEDIUM, NARROW};
use crate::render::table::show_age;

/// Shown, unless somebody wants more.
const SCREEN: u32 = 100;
/// What the daemon gives at once.
const PAGE: u32 = 1_000;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  homing deliveries                  the latest
  homing deliveries --state dead     what could not be delivered, and why
  homing deliveries --owner me -n 5  the last few of one owner
  homing deliveries --task @last --json | jq '.items[].history'
  homing redeliver dead              try them all again")]
pub(crate) struct Options {
    /// Only in this state
    #[arg(long, value_name = "S", value_parser = states())]
    state: Option<DeliveryState>,
    /// Only of this task
    #[arg(long, value_name = "ID", value_parser = usage_wording::reference, add = ArgValueCompleter::new(completion::tasks))]
    task: Option<String>,
    /// Only of this owner
    #[arg(long, value_parser = usage_wording::owner)]
    owner: Option<String>,
    /// At most so many
    #[arg(long, short = 'n', value_name = "N", default_value_t = SCREEN, allow_negative_numbers = true, value_parser = usage_wording::count)]
    limit: u32,
}

fn states() -> impl TypedValueParser<Value = DeliveryState> {
    PossibleValuesParser::new(DeliveryState::ALL.map(DeliveryState::as_str))
        .try_map(|word| word.parse::<DeliveryState>())
}

/// Prints them, newest first.
pub(crate) fn run(options: &Options, context: &Context) -> Result<u8, Failure> {
    if home::is_missing(&context.home) {
        context.note_missing_home();
        if context.json {
            context.console.json(&Page::<Delivery> { items: Vec::new(), next_cursor: None })?;
        }
        return Ok(exit_code::DONE);
    }
    let query = DeliveryQuery {
        state: options.state,
        task: options.task.clone(),
        owner: options.owner.clone(),
        limit: Some(options.limit),
        cursor: None,
    };
    let page = context.block_on(async { Ok(fetch(&context.client(), query, options.limit).await?) })?;
    if context.json {
        context.console.json(&page)?;
        return Ok(exit_code::DONE);
    }
    if page.items.is_empty() {
        let filtered = options.state.is_some() || options.task.is_some() || options.owner.is_some();
        context.console.note(if filtered {
            "homing: no such deliveries"
        } else {
            "homing: no deliveries; `homing run --notify URL …` makes some"
        });
        return Ok(exit_code::DONE);
    }
    context.console.data(render(&page.items, context.now(), &context.console).as_bytes())?;
    if page.next_cursor.is_some() {
        let shown = page.items.len();
        context.console.note(&format!(
            "homing: only the newest {shown} are shown; `--limit N` shows as many, `--state`, `--task` and `--owner` narrow them down"
        ));
    }
    Ok(exit_code::DONE)
}

/// Pages until there are enough.
async fn fetch(client: &Client, mut query: DeliveryQuery, limit: u32) -> Result<Page<Delivery>, Error> {
    let mut items: Vec<Delivery> = Vec::new();
    loop {
        let have = u32::try_from(items.len()).unwrap_or(u32::MAX);
        query.limit = Some(limit.saturating_sub(have).clamp(1, PAGE));
        let page = client.deliveries(&query).await?;
        items.extend(page.items);
        // A page of damaged rows is empty, and not the last.
        if page.next_cursor.is_none() || items.len() as u64 >= u64::from(limit) {
            return Ok(Page { items, next_cursor: page.next_cursor });
        }
        query.cursor = page.next_cursor;
    }
}

/// A line for each, and one below it where there is something to explain.
fn render(deliveries: &[Delivery], now: Timestamp, console: &Console) -> String {
    let width = console.width.unwrap_or(usize::MAX);
    let mut heads = vec!["ID", "STATE"];
    if width >= MEDIUM {
        heads.extend(["TYPE", "TASK", "AGE", "TRIES"]);
    } else if width >= NARROW {
        heads.push("AGE");
    }
    heads.push("TARGET");
    let rows = deliveries.iter().map(|delivery| row(delivery, now, width)).collect();
    let mut lines = grid::lines(&heads, rows, console).into_iter();
    let mut out = lines.next().unwrap_or_default() + "\n";
    for (line, delivery) in lines.zip(deliveries) {
        out.push_str(&format!("{line}\n"));
        if let Some(why) = why(delivery, now) {
            out.push_str(&format!("{}\n", console.tint(Tint::Dim, &fit(&format!("  {why}"), width))));
        }
    }
    out
}

fn row(delivery: &Delivery, now: Timestamp, width: usize) -> Vec<Cell> {
    let tint = match delivery.state {
        DeliveryState::Pending => Tint::Yellow,
        DeliveryState::Delivered => Tint::Green,
        DeliveryState::Superseded => Tint::Dim,
        DeliveryState::Dead => Tint::Red,
    };
    let age = show_age(now.millis_since(delivery.created_at));
    let mut cells = vec![(delivery.id.to_string(), None), (delivery.state.to_string(), Some(tint))];
    if width >= MEDIUM {
        let kind = delivery.notice_type.as_deref().unwrap_or("-");
        cells.push((line(kind.strip_prefix("task.").unwrap_or(kind)), None));
        cells.push((delivery.task_id.to_string(), None));
        cells.push((age, None));
        cells.push((delivery.attempts.to_string(), None));
    } else if width >= NARROW {
        cells.push((age, None));
    }
    cells.push((line(&delivery.target), None));
    cells
}

/// When it is tried next, what went wrong last, and where to read more.
fn why(delivery: &Delivery, now: Timestamp) -> Option<String> {
    // What woke somebody says how.
    if delivery.state == DeliveryState::Delivered && !delivery.target.starts_with("wake") {
        return None;
    }
    let next = delivery.next_at.filter(|at| *at > now);
    let next = next.map(|at| format!("next in {}", show_duration(at.millis_since(now))));
    let last = delivery.history.last().map(|tried| tried.result.as_str());
    let reason = delivery.reason.as_deref().or(last).map(line);
    let told = match (next, reason) {
        (Some(next), Some(reason)) => format!("{next}: {reason}"),
        (next, reason) => next.or(reason)?,
    };
    let hook = delivery.hook.as_ref();
    let printed = hook.map(|hook| format!("; `homing output {hook}` shows what it printed"));
    Some(told + &printed.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::columns::of;

    fn deliveries() -> Vec<Delivery> {
        let of = |state: &str, json: serde_json::Value| {
            let mut whole = serde_json::json!({ "id": "d-2222222222", "notice_id": "n-2222222222", "task_id": "t-bcdfghjkmn",
                "notice_type": "task.completed", "owner": "me", "target": "https://x.example/a/long/path", "state": state,
                "attempts": 1, "created_at": "2026-01-01T00:00:00.000Z", "next_at": null, "ended_at": null, "reason": null,
                "history": [{ "at": "2026-01-01T00:00:00.000Z", "took_ms": 1, "result": "refused" }] });
            whole.as_object_mut().unwrap().extend(json.as_object().cloned().unwrap());
            serde_json::from_value(whole).unwrap()
        };
        vec![
            of("delivered", serde_json::json!({})),
            of("pending", serde_json::json!({ "next_at": "2026-01-01T00:01:00.000Z" })),
            of(
                "dead",
                serde_json::json!({ "reason": "given up", "hook": "t-2222222222", "notice_type": null }),
            ),
        ]
    }

    fn text(width: Option<usize>) -> String {
        render(&deliveries(), "2026-01-01T00:00:30.000Z".parse().unwrap(), &Console::plain(width))
    }

    #[test]
    fn each_says_what_it_is_about_how_old_it_is_and_what_went_wrong() {
        let text = text(None);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[0], "ID            STATE      TYPE       TASK          AGE  TRIES  TARGET");
        assert_eq!(
            lines[1],
            "d-2222222222  delivered  completed  t-bcdfghjkmn  30s  1      https://x.example/a/long/path"
        );
        assert_eq!(lines[3], "  next in 30.0s: refused");
        assert!(lines[4].starts_with("d-2222222222  dead       -  "), "{text}");
        assert_eq!(lines[5], "  given up; `homing output t-2222222222` shows what it printed");
    }

    #[test]
    fn no_line_is_longer_than_the_terminal() {
        for width in [10, 20, 40, 60, 80, 200] {
            let text = text(Some(width));
            assert!(text.lines().all(|line| of(line) <= width), "{text}");
        }
        assert!(
            text(Some(40)).contains("\nd-2222222222  delivered  https://x.exam…\n"),
            "{}",
            text(Some(40))
        );
    }
}
