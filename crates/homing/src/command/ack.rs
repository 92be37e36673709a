//! `homing ack`: take entries out of the inbox.

use clap::Args;
use clap_complete::ArgValueCompleter;

use crate::context::Context;
use crate::failure::Failure;
use crate::{completion, exit_code, wording};

#[derive(Debug, Args)]
#[command(after_help = "The result itself stays readable: `homing show`, `homing output`.

Examples:
  homing ack n-7hq                   one entry; a unique start of its id is enough
  homing ack @last                   all of a task")]
pub(crate) struct Options {
    /// Ids of notices, or of tasks: then all that is there of them
    #[arg(value_name = "ID", required = true, value_parser = wording::reference, add = ArgValueCompleter::new(completion::tasks))]
    ids: Vec<String>,
    /// Whose inbox [default: HOMING_OWNER, the agent session, or user]
    #[arg(long, value_parser = wording::owner)]
    owner: Option<String>,
}

/// Acknowledges, and tells what was there.
pub(crate) fn run(options: &Options, context: &Context) -> Result<u8, Failure> {
    let owner = options.owner.clone().unwrap_or_else(|| context.owner());
    let client = context.client_for(&owner);
    let answer = context.block_on(async { Ok(client.acknowledge(&owner, options.ids.clone()).await?) })?;
    if context.json {
        context.console.json(&answer)?;
    } else if answer.acknowledged.is_empty() {
        context.console.note("homing: nothing of that waits in the inbox");
    } else {
        for id in &answer.acknowledged {
            context.console.line(&format!("{id} acknowledged"))?;
        }
    }
    Ok(exit_code::DONE)
}
