//! `homing redeliver`: send notices again.

use clap::Args;
use clap_complete::ArgValueCompleter;
use homing_api::RedeliverAnswer;

use crate::cli::completion;
use crate::cli::context::Context;
use crate::cli::exit_code;
use crate::cli::failure::Failure;
use crate::cli::usage_wording;

#[derive(Debug, Args)]
#[command(
    after_help = "A notice keeps its id however often it is sent, so that its receiver can tell. The attempts go \
on being counted, and their history stays. What `[notify]` in config.toml forbids by now is not \
sent, and stays as it is. A wake that is superseded (its owner has the notice by another way) is \
sent again only by its own id.

Examples:
  homing redeliver d-7hq             one delivery, whatever became of it
  homing redeliver @last             all of a task
  homing redeliver dead              all that were given up"
)]
pub(crate) struct Options {
    /// Ids of deliveries, tasks, or `dead`
    #[arg(value_name = "ID", required = true, value_parser = usage_wording::reference, add = ArgValueCompleter::new(completion::tasks))]
    ids: Vec<String>,
}

/// Sends each again, and tells which.
pub(crate) fn run(options: &Options, context: &Context) -> Result<u8, Failure> {
    let client = context.client();
    context.block_on(async {
        let mut all = RedeliverAnswer::default();
        for id in &options.ids {
            let answer = client.redeliver(id).await?;
            all.redelivered.extend(answer.redelivered);
            all.refused.extend(answer.refused);
        }
        if context.json {
            context.console.json(&all)?;
        } else if all.redelivered.is_empty() && all.refused.is_empty() {
            context.console.note("homing: there is nothing of that to deliver");
        } else {
            for id in &all.redelivered {
                context.console.line(&format!("{id} goes out again"))?;
            }
            for one in &all.refused {
                context.console.note(&format!("homing: {} stays as it is: {}", one.id, one.reason));
            }
        }
        Ok(if all.refused.is_empty() { exit_code::DONE } else { exit_code::FAILED })
    })
}
