//! `homing inbox`: what waits for an owner.

use std::time::Duration;

use clap::Args;
use homing_model::Notice;
use homing_model::api::{InboxAnswer, TakeRequest};
use homing_model::units;
use homing_model::units::millis;

use crate::context::Context;
use crate::failure::Failure;
use crate::{exit_code, notice, wording};

#[derive(Debug, Args)]
#[command(
    after_help = "Every task that ends leaves an entry, until it is acknowledged. Looking changes nothing.

Examples:
  homing inbox                       what has ended since you last looked
  homing inbox --ack                 the same, and it is dealt with
  homing inbox --wait 10m --ack      wait for the next result
  homing inbox --json | jq -r '.items[] | .task.id + \" \" + .status'
  homing ack t-k3m                   one of them, by the id of its task"
)]
pub(crate) struct Options {
    /// Whose inbox [default: HOMING_OWNER, the agent session, or user]
    #[arg(long, value_parser = wording::owner)]
    owner: Option<String>,
    /// If there is nothing, wait this long for something
    #[arg(long, value_name = "D", allow_hyphen_values = true, value_parser = units::duration)]
    wait: Option<Duration>,
    /// Acknowledge what was printed
    #[arg(long)]
    ack: bool,
}

/// Prints the inbox. What is acknowledged was printed first: an entry is never lost between the two.
pub(crate) fn run(options: &Options, context: &Context) -> Result<u8, Failure> {
    let owner = options.owner.clone().unwrap_or_else(|| context.owner());
    let client = context.client_for(&owner);
    context.block_on(async {
        let answer = if options.ack {
            let request = TakeRequest { wait_ms: options.wait.map(millis), ..TakeRequest::default() };
            client.take(&owner, &request).await?
        } else {
            client.inbox(&owner, options.wait).await?
        };
        print(&answer, context)?;
        if options.ack && !answer.items.is_empty() {
            let ids = answer.items.iter().map(|notice: &Notice| notice.id.to_string()).collect();
            client.acknowledge(&owner, ids).await?;
        }
        Ok(exit_code::DONE)
    })
}

fn print(answer: &InboxAnswer, context: &Context) -> Result<(), Failure> {
    if context.json {
        return context.console.json(answer);
    }
    if answer.items.is_empty() {
        context.console.note("homing: nothing waits for you");
        return Ok(());
    }
    let mut text = String::new();
    for item in &answer.items {
        text.push_str(&notice::render(item, context.now(), &context.console));
    }
    context.console.data(text.as_bytes())
}
