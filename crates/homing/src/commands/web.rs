//! `homing web`: the page of this home in a browser.
//!
//! The daemon makes the address; its code is good once, for a minute, and only for the user who runs the daemon. So it may be printed, and stand in the arguments of
//! what opens the browser.

use std::process::{Command, Stdio};

use clap::Args;

use crate::cli::context::Context;
use crate::cli::exit_code;
use crate::cli::failure::Failure;

#[derive(Debug, Args)]
#[command(
    after_help = "The address signs one browser in, once, within a minute; the browser stays signed in until it is \
closed, 30 days at most, through restarts of the daemon. `homing token rotate` signs every \
browser out. The listener on this machine that serves the page stays on until `--off`.

From another machine: ssh -L PORT:127.0.0.1:PORT HOST, with the port of the printed address, \
then open that address here.

Examples:
  homing web                         print the address, and open it where a browser is
  homing web --no-open               only print it
  homing web --off                   nobody is served over HTTP any more

With --json: {\"url\": …}; with --off the listener, as `homing status --json` has it."
)]
pub(crate) struct Options {
    /// Only print the address
    #[arg(long)]
    no_open: bool,
    /// Turn the listener off, for the page and every other client
    #[arg(long, conflicts_with = "no_open")]
    off: bool,
}

/// Has an address made, prints it, and opens it where that can be done.
pub(crate) fn run(options: &Options, context: &Context) -> Result<u8, Failure> {
    if options.off {
        let listener = context.block_on(async { Ok(context.client().turn_listener_off().await?) })?;
        if context.json {
            context.console.json(&listener)?;
            return Ok(exit_code::DONE);
        }
        context.console.note("homing: nobody is served over HTTP any more, until `homing web` or `homing mcp --http` turns it on again");
        return Ok(exit_code::DONE);
    }
    let page = context.block_on(async { Ok(context.client().page().await?) })?;
    let opened = !options.no_open && !context.json && has_display(context) && open(&page.url);
    if context.json {
        context.console.json(&page)?;
        return Ok(exit_code::DONE);
    }
    context.console.line(&page.url)?;
    context.console.note(if opened {
        "opened in your browser; the address is good once, for a minute"
    } else {
        "open it in a browser on this machine; it is good once, for a minute"
    });
    Ok(exit_code::DONE)
}

/// Whether a browser would have somewhere to appear.
fn has_display(context: &Context) -> bool {
    ["WAYLAND_DISPLAY", "DISPLAY"]
        .into_iter()
        .any(|name| context.surroundings.text(name).is_some_and(|value| !value.is_empty()))
}

/// Hands the address to the desktop. What comes of it is seen on the screen; it is not waited for, since some browsers stay in the foreground.
fn open(url: &str) -> bool {
    let mut command = Command::new("xdg-open");
    command.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().is_ok()
}
