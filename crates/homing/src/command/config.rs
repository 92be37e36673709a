//! `homing config`: the effective configuration, and whether the file is sound.

use clap::Args;

use crate::context::Context;
use crate::failure::Failure;
use crate::{entry, exit_code, home};

#[derive(Debug, Args)]
#[command(
    after_help = "config.toml is in the home where one was chosen (--home, HOMING_HOME), else in the XDG
configuration folder. The daemon is never asked, nor started.

Examples:
  homing config                      what is in effect, and from where
  homing config --check              0 if the file is sound
  $EDITOR \"$(homing config --path)\""
)]
pub(crate) struct Options {
    /// Only say whether the file is sound
    #[arg(long, conflicts_with = "path")]
    check: bool,
    /// Only print where it is
    #[arg(long)]
    path: bool,
}

/// Reads the file as the daemon would.
pub(crate) fn run(options: &Options, context: &Context) -> Result<u8, Failure> {
    let path = home::configuration(context.home_flag.as_deref(), &context.surroundings)?;
    let shown = path.display().to_string();
    if options.path {
        if context.json {
            context.console.json(&serde_json::json!({ "path": shown }))?;
        } else {
            context.console.line(&shown)?;
        }
        return Ok(exit_code::DONE);
    }
    let effective = entry::effective_configuration(&path)?;
    let exists = path.exists();
    if context.json {
        context
            .console
            .json(&serde_json::json!({ "path": shown, "exists": exists, "configuration": effective }))?;
    } else if options.check {
        let what = if exists { "is sound" } else { "is not there, which is fine: the defaults apply" };
        context.console.line(&format!("{shown} {what}"))?;
    } else {
        context.console.line(&format!(
            "# {shown}{}",
            if exists { "" } else { " (not there: these are the defaults)" }
        ))?;
        context.console.data(effective.as_bytes())?;
    }
    Ok(exit_code::DONE)
}
