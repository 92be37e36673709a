//! `homing heartbeat`: whoever runs an external task says that it goes on.

use clap::Args;
use clap_complete::ArgValueCompleter;
use homing_model::Task;
use homing_model::units::show_duration;

use crate::cli::completion;
use crate::cli::context::Context;
use crate::cli::exit_code;
use crate::cli::failure::Failure;
use crate::cli::usage_wording;

#[derive(Debug, Args)]
#[command(
    after_help = "Only for what `homing track` gave. Prints until when the lease holds. 1 if the task has ended.

Examples:
  homing heartbeat review
  while work; do homing heartbeat $id || exit; done"
)]
pub(crate) struct Options {
    /// Id, start of one, name, or @last
    #[arg(value_name = "ID", value_parser = usage_wording::reference, add = ArgValueCompleter::new(completion::live_tasks))]
    id: String,
    /// Whose task it is [default: HOMING_OWNER, the agent session, or user]
    #[arg(long, value_parser = usage_wording::owner)]
    owner: Option<String>,
}

/// Says it.
pub(crate) fn run(options: &Options, context: &Context) -> Result<u8, Failure> {
    let owner = options.owner.clone().unwrap_or_else(|| context.owner());
    let client = context.client_for(&owner).patient_for_task();
    let task = context.block_on(async { Ok(client.heartbeat(&options.id).await?) })?;
    if context.json {
        context.console.json(&task)?;
    } else {
        context.console.line(&sentence(&task))?;
    }
    Ok(exit_code::DONE)
}

fn sentence(task: &Task) -> String {
    match (task.lease_until, task.lease_ms, task.pid) {
        (Some(until), Some(lease), _) => {
            format!("{} holds until {until}, {} from now", task.id, show_duration(lease))
        }
        (_, _, Some(pid)) => format!("{} has no lease: it ends with process {pid}", task.id),
        (_, _, None) => format!("{} {}", task.id, task.status),
    }
}
