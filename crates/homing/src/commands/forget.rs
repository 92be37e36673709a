//! `homing forget`: drop ended tasks.

use clap::Args;
use clap_complete::ArgValueCompleter;

use crate::cli::completion;
use crate::cli::context::Context;
use crate::cli::exit_code;
use crate::cli::failure::Failure;
use crate::cli::usage_wording;

#[derive(Debug, Args)]
#[command(after_help = "The outcome stays: an id that was issued is always answered.

Examples:
  homing forget @last
  homing forget $(homing list --all --status failed --json | jq -r '.items[].id')")]
pub(crate) struct Options {
    /// Ids, starts of ids, names, or @last
    #[arg(value_name = "ID", required = true, value_parser = usage_wording::reference, add = ArgValueCompleter::new(completion::ended_tasks))]
    ids: Vec<String>,
}

/// Forgets one after the other; one that cannot be forgotten does not keep the others.
pub(crate) fn run(options: &Options, context: &Context) -> Result<u8, Failure> {
    let client = context.client();
    context.block_on(async {
        let mut code = exit_code::DONE;
        let mut forgotten = Vec::new();
        for id in &options.ids {
            match client.forget(id).await {
                Ok(task) => forgotten.push(task),
                Err(error) => context.one_failed(error, &mut code),
            }
        }
        if context.json {
            context.console.json(&serde_json::json!({ "items": forgotten }))?;
        } else {
            for task in &forgotten {
                context.console.line(&format!("{} forgotten", task.id))?;
            }
        }
        Ok(code)
    })
}
