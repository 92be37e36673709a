//! `homing ack`: take entries out of the inbox.

use clap::Args;
use clap_complete::ArgValueCompleter;
use homing_api::AckAnswer;
use homing_client::{Client, Error};
use homing_model::Timestamp;

use crate::cli::completion;
use crate::cli::context::Context;
use crate::cli::exit_code;
use crate::cli::failure::Failure;
use crate::cli::usage_wording;
use crate::commands::inbox;

/// What the daemon shows at once.
const PAGE: u32 = 1_000;

#[derive(Debug, Args)]
#[command(after_help = "The result itself stays readable: `homing show`, `homing output`.

Examples:
  homing ack n-7hq                   one entry; a unique start of its id is enough
  homing ack @last                   all of a task
  homing ack --all                   whatever waits when it is asked")]
pub(crate) struct Options {
    /// Ids of notices, or of tasks: then all that is there of them
    #[arg(value_name = "ID", required_unless_present = "all", value_parser = usage_wording::reference, add = ArgValueCompleter::new(completion::tasks))]
    ids: Vec<String>,
    /// All that waits, unseen; what somebody has taken is left to them
    #[arg(long, conflicts_with = "ids")]
    all: bool,
    /// Whose inbox [default: HOMING_OWNER, the agent session, or user]
    #[arg(long, value_parser = usage_wording::owner)]
    owner: Option<String>,
}

/// Acknowledges, and tells what was there.
pub(crate) fn run(options: &Options, context: &Context) -> Result<u8, Failure> {
    let owner = options.owner.clone().unwrap_or_else(|| context.owner());
    let client = context.client_for(&owner);
    let (answer, others) = context.block_on(async {
        let answer = if options.all {
            all(&client, &owner, context.now()).await?
        } else {
            client.acknowledge(&owner, options.ids.clone()).await?
        };
        let is_in_vain = answer.acknowledged.is_empty();
        let others =
            if is_in_vain { inbox::of_others(&owner, &client, context).await } else { String::new() };
        Ok((answer, others))
    })?;
    if context.json {
        context.console.json(&answer)?;
    } else if answer.acknowledged.is_empty() {
        let nothing = if options.all { "nothing waits" } else { "nothing of that waits" };
        context.console.note(&format!("homing: {nothing} in the inbox{others}"));
    } else {
        for id in &answer.acknowledged {
            context.console.line(&format!("{id} acknowledged"))?;
        }
    }
    Ok(exit_code::DONE)
}

/// Page by page, up to what was there when it was asked: what comes meanwhile was not meant.
async fn all(client: &Client, owner: &str, asked: Timestamp) -> Result<AckAnswer, Error> {
    let mut acknowledged = Vec::new();
    let mut page = client.inbox_up_to(owner, Some(PAGE), None).await?.items;
    loop {
        let ids: Vec<_> = page.iter().map(|notice| notice.id.to_string()).collect();
        if ids.is_empty() {
            return Ok(AckAnswer { acknowledged });
        }
        let gone = client.acknowledge(owner, ids).await?.acknowledged;
        let in_vain = gone.is_empty();
        acknowledged.extend(gone);
        // A page may end early, so that only one with nothing is the last.
        if in_vain {
            return Ok(AckAnswer { acknowledged });
        }
        page = client.inbox_up_to(owner, Some(PAGE), None).await?.items;
        page.retain(|notice| notice.at <= asked);
    }
}
