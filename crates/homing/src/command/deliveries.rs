//! `homing deliveries`: what went out, what waits, what is dead.

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap_complete::ArgValueCompleter;
use homing_model::sanitize::line;
use homing_model::units::show_duration;
use homing_model::{Delivery, DeliveryState, Timestamp};

use crate::columns::fit;
use crate::console::{Console, Tint};
use crate::context::Context;
use crate::failure::Failure;
use crate::{completion, exit_code, wording};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  homing deliveries                  the latest
  homing deliveries --state dead     what could not be delivered, and why
  homing deliveries --task @last --json | jq '.items[].history'
  homing redeliver dead              try them all again")]
pub(crate) struct Options {
    /// Only in this state
    #[arg(long, value_name = "S", value_parser = states())]
    state: Option<DeliveryState>,
    /// Only of this task
    #[arg(long, value_name = "ID", value_parser = wording::reference, add = ArgValueCompleter::new(completion::tasks))]
    task: Option<String>,
}

fn states() -> impl TypedValueParser<Value = DeliveryState> {
    PossibleValuesParser::new(DeliveryState::ALL.map(DeliveryState::as_str))
        .try_map(|word| word.parse::<DeliveryState>())
}

/// Prints them, newest first.
pub(crate) fn run(options: &Options, context: &Context) -> Result<u8, Failure> {
    let client = context.client();
    let page = context
        .block_on(async { Ok(client.deliveries(options.state, options.task.as_deref(), None).await?) })?;
    if context.json {
        context.console.json(&page)?;
        return Ok(exit_code::DONE);
    }
    if page.items.is_empty() {
        context.console.note("homing: no deliveries; `homing run --notify URL …` makes some");
    }
    for delivery in &page.items {
        context.console.data(render(delivery, context.now(), &context.console).as_bytes())?;
    }
    if page.next_cursor.is_some() {
        context.console.note("homing: there are more; `--task ID` or `--state` narrows them down");
    }
    Ok(exit_code::DONE)
}

fn render(delivery: &Delivery, now: Timestamp, console: &Console) -> String {
    let tint = match delivery.state {
        DeliveryState::Pending => Tint::Yellow,
        DeliveryState::Delivered => Tint::Green,
        DeliveryState::Dead => Tint::Red,
    };
    let tries = match delivery.attempts {
        1 => "1 attempt".to_owned(),
        count => format!("{count} attempts"),
    };
    let next = delivery.next_at.filter(|at| *at > now);
    let next = next.map(|at| format!(", next in {}", show_duration(at.millis_since(now))));
    let width = console.width.unwrap_or(usize::MAX);
    let state = delivery.state.as_str();
    let head = format!(
        "{}  {state}  {}  {}  ({tries}{})",
        delivery.id,
        delivery.task_id,
        line(&delivery.target),
        next.unwrap_or_default()
    );
    let head = fit(&head, width).replacen(state, &console.tint(tint, state), 1);
    let last = delivery.history.last().map(|tried| tried.result.as_str());
    let woken = delivery.target.starts_with("wake");
    let why =
        delivery.reason.as_deref().or(last).filter(|_| woken || delivery.state != DeliveryState::Delivered);
    let printed =
        delivery.hook.as_ref().map(|hook| format!("; `homing output {hook}` shows what it printed"));
    let why = why.map(|why| format!("  {}{}", line(why), printed.unwrap_or_default()));
    let why = why.map(|why| console.tint(Tint::Dim, &fit(&why, width)) + "\n");
    format!("{head}\n{}", why.unwrap_or_default())
}
