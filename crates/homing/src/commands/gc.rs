//! `homing gc`: drop what is past its retention now.

use clap::Args;
use homing_model::units::show_size;

use crate::cli::context::Context;
use crate::cli::exit_code;
use crate::cli::failure::Failure;

#[derive(Debug, Args)]
#[command(
    after_help = "The daemon does this by itself from time to time; `[retention]` in config.toml says what is kept.

Examples:
  homing gc
  homing gc --json"
)]
pub(crate) struct Options {}

/// Asks for one pass.
pub(crate) fn run(_: &Options, context: &Context) -> Result<u8, Failure> {
    let answer = context.block_on(async { Ok(context.client().gc().await?) })?;
    if context.json {
        context.console.json(&answer)?;
    } else {
        let freed = show_size(answer.bytes_freed);
        context.console.line(&format!(
            "forgot {} tasks ({freed} of output), dropped {} tombstones",
            answer.forgotten, answer.tombstones_removed
        ))?;
    }
    Ok(exit_code::DONE)
}
