//! `homing token`: what opens the loopback listener. Printed only when it is asked for.

use clap::{Args, Subcommand};
use homing_api::Problem;
use homing_server::token;

use crate::cli::context::Context;
use crate::cli::exit_code;
use crate::cli::failure::Failure;
use crate::options::home;

#[derive(Debug, Args)]
#[command(
    after_help = "A program of yours that has the token may do over the loopback listener what it may do here. \
`[listener]` in config.toml turns the listener on; `homing status` shows where it is.

Examples:
  homing token                       where it is kept
  homing token show                  the token itself
  homing token rotate                another one; whoever has the old one is shut out"
)]
pub(crate) struct Options {
    #[command(subcommand)]
    what: Option<What>,
}

#[derive(Debug, Clone, Copy, Subcommand)]
enum What {
    /// Print the file that holds it
    #[command(
        after_help = "Examples:\n  curl -H \"Authorization: Bearer $(cat \"$(homing token path)\")\" …"
    )]
    Path,
    /// Print the token
    #[command(after_help = "Examples:\n  homing token show | wl-copy")]
    Show,
    /// Make another one; the old one is worth nothing
    #[command(after_help = "Whoever came in by the old one is cut off.\n\nExamples:\n  homing token rotate")]
    Rotate,
}

/// Says where it is, prints it, or replaces it.
pub(crate) fn run(options: &Options, context: &Context) -> Result<u8, Failure> {
    if home::is_missing(&context.home) {
        return Err(home::missing(&context.home).into());
    }
    match options.what {
        None | Some(What::Path) => {
            let path = context.home.join(token::NAME);
            if context.json {
                context.console.json(&serde_json::json!({ "path": path }))?;
            } else {
                context.console.line(&path.display().to_string())?;
            }
        }
        Some(What::Show) => {
            let token = token::read_or_make(&context.home).map_err(Problem::from)?;
            if context.json {
                context.console.json(&serde_json::json!({ "token": token }))?;
            } else {
                context.console.line(&token)?;
            }
        }
        Some(What::Rotate) => {
            rotate(context)?;
            if context.json {
                context.console.json(&serde_json::json!({ "rotated": true }))?;
            } else {
                context
                    .console
                    .note("the old token is worth nothing; `homing token show` prints the new one");
            }
        }
    }
    Ok(exit_code::DONE)
}

/// By the daemon, which also shuts out whoever has the old one; where none runs, by ourselves.
fn rotate(context: &Context) -> Result<(), Failure> {
    let client = context.quiet_client();
    let asked = |client: homing_client::Client| async move {
        match client.rotate_token().await {
            Err(error) if error.is_nobody_there() => Ok(false),
            answer => answer.map(|_| true).map_err(Failure::from),
        }
    };
    if context.block_on(asked(client.clone()))? {
        return Ok(());
    }
    token::replace(&context.home).map_err(Problem::from)?;
    // One that started meanwhile may have read the old one.
    context.block_on(asked(client)).map(drop)
}
