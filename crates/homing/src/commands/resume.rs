//! `homing resume`: let paused tasks go on.

use clap::Args;
use clap_complete::ArgValueCompleter;

use super::pause::{self, Order};
use crate::cli::completion;
use crate::cli::context::Context;
use crate::cli::failure::Failure;
use crate::cli::usage_wording;

#[derive(Debug, Args)]
#[command(after_help = "A paused task goes on where it stood; one that runs is left as it is.

Examples:
  homing resume @last
  homing resume $(homing list --status paused --json | jq -r '.items[].id')")]
pub(crate) struct Options {
    /// Ids, starts of ids, names, or @last
    #[arg(value_name = "ID", required = true, value_parser = usage_wording::reference, add = ArgValueCompleter::new(completion::paused_tasks))]
    ids: Vec<String>,
}

/// Resumes all of them at once, and tells of each in the order asked.
pub(crate) fn run(options: &Options, context: &Context) -> Result<u8, Failure> {
    pause::all(&options.ids, Order::Resume, context)
}
