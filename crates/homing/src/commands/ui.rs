//! `homing ui`: the tasks of this home, live, on the whole terminal.
//!
//! Only what this release can do is offered: what has no command of its own (`attach`, `rerun`, `pause`) is not there.

use std::io::{self, IsTerminal as _};
use std::process::Command;

use clap::{Args, ValueEnum};
use homing_api::{Code, Problem};
use homing_client::ListQuery;
use homing_tui::live::{self, Left, Setup};
use homing_tui::{Abilities, Background, Effect, Options as Panel, Theme};
use rustix::process::Signal;

use super::show;
use crate::cli::context::Context;
use crate::cli::entry;
use crate::cli::exit_code;
use crate::cli::failure::Failure;
use crate::cli::grammar;

#[derive(Debug, Args)]
#[command(
    after_help = "`?` shows the keys, `q` leaves; tasks run on. It reconnects by itself when the daemon restarts. \
Light or dark is told by COLORFGBG, if that is set; NO_COLOR turns colours off.

Examples:
  homing ui
  homing ui --filter ci              only tasks with `ci` in their name, command, owner or id
  homing ui --theme light"
)]
pub(crate) struct Options {
    /// Only tasks with all these words somewhere in them
    #[arg(long, value_name = "WORDS", default_value = "", hide_default_value = true)]
    filter: String,
    /// The ground of the terminal [default: COLORFGBG, or dark]
    #[arg(long, value_name = "GROUND", value_enum)]
    theme: Option<Ground>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Ground {
    /// Bright letters on it
    Dark,
    /// Dark letters on it
    Light,
}

/// Shows the panel until somebody leaves it.
pub(crate) fn run(options: &Options, context: &Context) -> Result<u8, Failure> {
    refuse(context)?;
    let owner = context.owner();
    // What keeps a daemon from being asked is told as ever, not in a corner of the panel.
    let look = ListQuery { limit: Some(1), ..ListQuery::default() };
    context.block_on(async { Ok(context.client().nameless().list(&look).await?) })?;
    let program = entry::executable()?;
    let (home, clock) = (context.home.clone(), context.clock());
    let setup = Setup {
        client: context.screen_client(),
        options: Panel { theme: theme(options, context), abilities: abilities(), owner, may_quit: true },
        filter: options.filter.clone(),
        clock: Box::new(clock),
        describe: show::told,
        commands: Box::new(move |effect| {
            let (verb, task) = verb(effect)?;
            let mut command = Command::new(&program);
            command.arg("--home").arg(&home).args([verb, "--", task]);
            Some(command)
        }),
    };
    let left = context.block_on_screen(async {
        live::run(setup).await.map_err(|error| {
            let code = match &error {
                live::Error::Terminal(_) => Code::NotATerminal,
                live::Error::Broken(_) => Code::Internal,
            };
            Problem::new(code, error.to_string()).into()
        })
    })?;
    Ok(code(left))
}

/// An interrupt is what the interrupt key would be: the usual way out.
fn code(left: Left) -> u8 {
    let number = match left {
        Left::Quit => return exit_code::DONE,
        Left::Signalled(number) if number == Signal::INT.as_raw() => return exit_code::DONE,
        Left::Signalled(number) => number,
        Left::HungUp => Signal::HUP.as_raw(),
    };
    u8::try_from(number.saturating_add(128)).unwrap_or(exit_code::FAILED)
}

/// Where nothing can be drawn, it is said what shows the same.
fn refuse(context: &Context) -> Result<(), Failure> {
    let why = if context.json {
        return Err(Failure::usage(
            "the panel has no JSON",
            "`homing list --json` has the tasks, `homing events -f` what happens.",
        ));
    } else if !context.console.terminal || !io::stdin().is_terminal() {
        "the panel needs a terminal, for input and output"
    } else if context.surroundings.text("TERM") == Some("dumb") {
        "the panel cannot be drawn on a dumb terminal"
    } else {
        return Ok(());
    };
    let mut problem = Problem::new(Code::NotATerminal, why);
    problem.advice =
        "Run `homing ui` in a terminal; `homing list` and `homing output -f ID` show the same as text, \
                      `homing events -f` as JSON."
            .to_owned();
    Err(problem.into())
}

fn theme(options: &Options, context: &Context) -> Theme {
    let told = context.surroundings.text("COLORFGBG").and_then(Background::from_colorfgbg);
    let background = match options.theme {
        Some(Ground::Dark) => Background::Dark,
        Some(Ground::Light) => Background::Light,
        None => told.unwrap_or_default(),
    };
    Theme { background, colour: context.console.colour, symbols: context.console.symbols }
}

/// The command that does it.
fn verb(effect: &Effect) -> Option<(&'static str, &str)> {
    match effect {
        Effect::Attach(task) => Some(("attach", task)),
        Effect::Rerun(task) => Some(("rerun", task)),
        Effect::Pause(task) => Some(("pause", task)),
        Effect::Resume(task) => Some(("resume", task)),
        Effect::Quit | Effect::Stop(_) | Effect::Acknowledge { .. } | Effect::Copy(_) => None,
    }
}

/// What there are commands for.
fn abilities() -> Abilities {
    let grammar = grammar::grammar();
    let has = |name: &str| grammar.find_subcommand(name).is_some();
    Abilities {
        stop: true,
        acknowledge: true,
        copy: true,
        attach: has("attach"),
        rerun: has("rerun"),
        pause: has("pause") && has("resume"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_has_a_command_is_offered() {
        let grammar = grammar::grammar();
        let can = abilities();
        for (effect, offered) in [
            (Effect::Attach("t".into()), can.attach),
            (Effect::Rerun("t".into()), can.rerun),
            (Effect::Pause("t".into()), can.pause),
            (Effect::Resume("t".into()), can.pause),
        ] {
            let (verb, _) = verb(&effect).unwrap();
            assert!(!offered || grammar.find_subcommand(verb).is_some(), "{verb}");
        }
        assert!(can.stop && can.acknowledge && can.copy);
    }
}
