//! `homing inbox`: what waits for an owner.

use std::time::Duration;

use clap::Args;
use homing_client::{Client, Error};
use homing_model::Notice;
use homing_model::api::{InboxAnswer, TakeRequest};
use homing_model::units;
use homing_model::units::{millis, show_duration};

use crate::context::Context;
use crate::failure::Failure;
use crate::{exit_code, home, notice, wording};

/// As long as the daemon makes anybody wait at once.
const LONGEST_WAIT: Duration = Duration::from_secs(3_600);

#[derive(Debug, Args)]
#[command(
    after_help = "A task that ends leaves an entry, unless its end was seen as it came (`run --wait`, `exec`) or is told
elsewhere (`--notify`). It stays until it is acknowledged. Looking changes nothing.
With --wait it returns 1 if nothing came in time, and says so on stderr.

Examples:
  homing inbox                       what has ended since you last looked
  homing inbox --ack                 the same, and it is dealt with
  homing inbox --wait 10m --ack      wait for the next result
  homing inbox --json | jq -r '.items[] | .task.id + \" \" + .status'
  homing inbox --wait 5m || echo 'nothing yet'
  homing ack t-k3m                   what is there of a task
  homing ack n-7hq                   one entry; a unique start of its id is enough"
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
    if options.wait.is_none() && home::is_missing(&context.home) {
        context.note_missing_home();
        if context.json {
            context.console.json(&InboxAnswer { items: Vec::new() })?;
        }
        return Ok(exit_code::DONE);
    }
    let owner = options.owner.clone().unwrap_or_else(|| context.owner());
    let client = context.client_for(&owner);
    context.block_on(async {
        let mut left = options.wait.unwrap_or_default();
        let answer = loop {
            // The daemon holds no answer back for longer.
            let wait = left.min(LONGEST_WAIT);
            let answer = ask(&client, &owner, options.ack, wait).await?;
            left = left.saturating_sub(wait);
            if left.is_zero() || !answer.items.is_empty() {
                break answer;
            }
        };
        print(&answer, options.wait, context)?;
        if options.ack && !answer.items.is_empty() {
            let ids = answer.items.iter().map(|notice: &Notice| notice.id.to_string()).collect();
            client.acknowledge(&owner, ids).await?;
        }
        let in_vain = options.wait.is_some() && answer.items.is_empty();
        Ok(if in_vain { exit_code::FAILED } else { exit_code::DONE })
    })
}

/// One question, which a while may pass before it is answered.
async fn ask(client: &Client, owner: &str, take: bool, wait: Duration) -> Result<InboxAnswer, Error> {
    if take {
        let request = TakeRequest { wait_ms: Some(millis(wait)), ..TakeRequest::default() };
        return client.take(owner, &request).await;
    }
    client.inbox(owner, Some(wait)).await
}

fn print(answer: &InboxAnswer, waited: Option<Duration>, context: &Context) -> Result<(), Failure> {
    if answer.items.is_empty() {
        context.console.note(&match waited {
            Some(waited) => format!("homing: nothing came within {}", show_duration(millis(waited))),
            None => "homing: nothing waits for you".to_owned(),
        });
    }
    if context.json {
        return context.console.json(answer);
    }
    let mut text = String::new();
    for item in &answer.items {
        text.push_str(&notice::render(item, context.now(), &context.console));
    }
    context.console.data(text.as_bytes())
}
