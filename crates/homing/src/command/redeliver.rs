//! `homing redeliver`: send notices again.

use clap::Args;

use crate::context::Context;
use crate::failure::Failure;
use crate::{exit_code, wording};

#[derive(Debug, Args)]
#[command(after_help = "A notice keeps its id however often it is sent, so that its receiver can tell.

Examples:
  homing redeliver d-7hqk29wxyz      one delivery, whatever became of it
  homing redeliver @last             all of a task
  homing redeliver dead              all that were given up")]
pub(crate) struct Options {
    /// Ids of deliveries, tasks, or `dead`
    #[arg(value_name = "ID", required = true, value_parser = wording::reference)]
    ids: Vec<String>,
}

/// Sends each again, and tells which.
pub(crate) fn run(options: &Options, context: &Context) -> Result<u8, Failure> {
    let client = context.client();
    context.block_on(async {
        let mut sent = Vec::new();
        for id in &options.ids {
            sent.extend(client.redeliver(id).await?.redelivered);
        }
        if context.json {
            context.console.json(&serde_json::json!({ "redelivered": sent }))?;
        } else if sent.is_empty() {
            context.console.note("homing: there is nothing of that to deliver");
        } else {
            for id in &sent {
                context.console.line(&format!("{id} goes out again"))?;
            }
        }
        Ok(exit_code::DONE)
    })
}
