//! The grammar of the command line, and what happens with a line that fits it.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use crate::cli::context::Context;
use crate::cli::exit_code::{self, Manner};
use crate::cli::failure::Failure;
use crate::cli::usage;
use crate::commands::{
    ack, ask, attach, complete, completions, config, daemon, deliveries, doctor, events, exec, explain,
    forget, gc, heartbeat, help, hook, inbox, input, install, list, mcp, output, pause, progress, redeliver,
    rerun, resume, run, show, status, stop, token, track, ui, wait, web,
};
use crate::options::environment::Surroundings;
use crate::options::home;
use crate::render::console::Console;

/// Runs commands in the background and brings every result home.
#[derive(Debug, Parser)]
#[command(name = "homing", version, disable_help_subcommand = true, subcommand_value_name = "COMMAND")]
#[command(
    after_help = "A task is named by its id, a unique start of it, its name, or @last: your newest. `homing \
COMMAND --help` teaches one command, `homing help --all` lists the rest.

Begin with:
  homing run -- cargo test      submit; prints the id
  homing output -f @last        watch it
  homing wait @last             its exit code"
)]
pub(crate) struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Everywhere")]
struct Global {
    /// State folder [default: HOMING_HOME, or the XDG state folder]
    #[arg(long, global = true, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    home: Option<PathBuf>,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
}

/// In the order of the short help; the hidden ones are in `help --all`.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
enum Command {
    /// Submit a task; print its id
    Run(run::Options),
    /// Run in the foreground with live output
    Exec(exec::Options),
    /// List tasks, live ones first
    #[command(visible_alias = "ps")]
    List(list::Options),
    /// Show everything about one task
    Show(show::Options),
    /// Print what a task printed
    #[command(visible_alias = "logs")]
    Output(output::Options),
    /// Wait until tasks have ended
    Wait(wait::Options),
    /// End tasks, the whole process tree
    Stop(stop::Options),
    /// Let tasks stand still, the whole process tree
    #[command(hide = true)]
    Pause(pause::Options),
    /// Let paused tasks go on
    #[command(hide = true)]
    Resume(resume::Options),
    /// Write to a task's stdin or terminal
    #[command(visible_alias = "send")]
    Input(input::Options),
    /// Attach this terminal to a task's
    #[command(hide = true)]
    Attach(attach::Options),
    /// Show what has ended and waits for you
    #[command(visible_alias = "results")]
    Inbox(inbox::Options),
    /// Ask an agent; its answer is the result
    #[command(hide = true)]
    Ask(ask::Options),
    /// Print the event log as JSON lines
    #[command(hide = true)]
    Events(events::Options),
    /// Show how the daemon and its tasks are
    Status(status::Options),
    /// Watch tasks live, and act on them
    #[command(hide = true)]
    Ui(ui::Options),
    /// Open the page of this home in a browser
    #[command(hide = true)]
    Web(web::Options),
    /// Take entries out of the inbox
    #[command(hide = true)]
    Ack(ack::Options),
    /// Show what went out, what waits, what is dead
    #[command(hide = true)]
    Deliveries(deliveries::Options),
    /// Send notices again
    #[command(hide = true)]
    Redeliver(redeliver::Options),
    /// Track what somebody else runs; print its id
    #[command(hide = true)]
    Track(track::Options),
    /// Say that a tracked task goes on
    #[command(hide = true)]
    Heartbeat(heartbeat::Options),
    /// Say how a tracked task ended
    #[command(hide = true)]
    Complete(complete::Options),
    /// Say how far this task is
    #[command(hide = true)]
    Progress(progress::Options),
    /// Run tasks again, as new ones
    #[command(hide = true)]
    Rerun(rerun::Options),
    /// Drop ended tasks and their output
    #[command(hide = true)]
    Forget(forget::Options),
    /// Drop what is past its retention
    #[command(hide = true)]
    Gc(gc::Options),
    /// Make an agent know of homing: MCP server, hooks, skill
    #[command(hide = true)]
    Install(install::Options),
    /// Tell an agent's session what has ended; called by its hooks
    #[command(hide = true)]
    Hook(hook::Options),
    /// Serve an agent over MCP, on stdin and stdout
    #[command(hide = true)]
    Mcp(mcp::Options),
    /// Start, stop or look at the daemon
    #[command(hide = true)]
    Daemon(daemon::Options),
    /// Check the home, the daemon and the system
    #[command(hide = true)]
    Doctor(doctor::Options),
    /// Show or check the configuration
    #[command(hide = true)]
    Config(config::Options),
    /// Show or replace what opens the loopback listener
    #[command(hide = true)]
    Token(token::Options),
    /// Explain a code such as HM0012
    #[command(hide = true)]
    Explain(explain::Options),
    /// Print the completion script for a shell
    #[command(hide = true)]
    Completions(completions::Options),
    /// Show help for everything or for one command
    #[command(hide = true)]
    Help(help::Options),
}

/// The whole grammar. A parse builds only the command that was called.
pub(crate) fn grammar() -> clap::Command {
    grammar_for(None)
}

/// The same, with help for a terminal of this width: clap does not find out the width of one without a height.
pub(crate) fn grammar_for(width: Option<usize>) -> clap::Command {
    let mut command = of_width(width);
    command.build();
    command
}

fn of_width(width: Option<usize>) -> clap::Command {
    match width {
        Some(width) => Cli::command().term_width(width),
        None => Cli::command(),
    }
}

fn parse(arguments: &[OsString], width: Option<usize>) -> Result<Cli, clap::Error> {
    let mut command = of_width(width);
    let mut matches = command.try_get_matches_from_mut(arguments)?;
    Cli::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))
}

/// Parses the command line, runs the command and reports what went wrong; returns the exit code.
pub(crate) fn run() -> u8 {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let surroundings = Surroundings::of_this_process();
    let console = Console::of_this_process(&surroundings);
    let cli = match parse(&arguments, console.width) {
        Ok(cli) => cli,
        Err(error) => return usage::refuse(&error, &arguments, &console),
    };
    let manner = cli.command.manner();
    let home_flag = cli.global.home;
    let located = home::resolve(home_flag.as_deref(), &surroundings);
    let home = located.as_ref().cloned().unwrap_or_default();
    let context = Context { surroundings, console, home_flag, home, json: cli.global.json };
    let result = match located {
        Err(problem) if cli.command.needs_home() => Err(Failure::from(problem)),
        Ok(_) if cli.command.names_a_task() && home::is_missing(&context.home) => {
            Err(home::missing(&context.home).into())
        }
        _ => cli.command.run(&context),
    };
    match result {
        Ok(code) => code,
        Err(Failure::ClosedOutput) => exit_code::DONE,
        Err(Failure::Problem(problem)) => {
            context.report(&problem);
            exit_code::of_problem(manner, &problem)
        }
    }
}

impl Command {
    fn manner(&self) -> Manner {
        match self {
            Self::Exec(_) | Self::Wait(_) => Manner::Task,
            Self::Run(options) if options.waits_for_end() => Manner::Task,
            Self::Ask(options) if options.waits_for_end() => Manner::Task,
            Self::Hook(_) => Manner::Hook,
            _ => Manner::Plain,
        }
    }

    fn needs_home(&self) -> bool {
        !matches!(self, Self::Explain(_) | Self::Completions(_) | Self::Help(_))
    }

    /// Whether it is about tasks that exist: where there is no home there are none.
    fn names_a_task(&self) -> bool {
        matches!(
            self,
            Self::Show(_)
                | Self::Output(_)
                | Self::Wait(_)
                | Self::Stop(_)
                | Self::Pause(_)
                | Self::Resume(_)
                | Self::Input(_)
                | Self::Attach(_)
                | Self::Rerun(_)
                | Self::Forget(_)
                | Self::Heartbeat(_)
                | Self::Complete(_)
                | Self::Ack(_)
        )
    }

    fn run(self, context: &Context) -> Result<u8, Failure> {
        match self {
            Self::Run(options) => run::run(&options, context),
            Self::Exec(options) => exec::run(&options, context),
            Self::Ask(options) => ask::run(&options, context),
            Self::List(options) => list::run(&options, context),
            Self::Show(options) => show::run(&options, context),
            Self::Output(options) => output::run(&options, context),
            Self::Wait(options) => wait::run(&options, context),
            Self::Stop(options) => stop::run(&options, context),
            Self::Pause(options) => pause::run(&options, context),
            Self::Resume(options) => resume::run(&options, context),
            Self::Input(options) => input::run(&options, context),
            Self::Attach(options) => attach::run(&options, context),
            Self::Inbox(options) => inbox::run(&options, context),
            Self::Events(options) => events::run(&options, context),
            Self::Ui(options) => ui::run(&options, context),
            Self::Web(options) => web::run(&options, context),
            Self::Ack(options) => ack::run(&options, context),
            Self::Deliveries(options) => deliveries::run(&options, context),
            Self::Redeliver(options) => redeliver::run(&options, context),
            Self::Track(options) => track::run(&options, context),
            Self::Heartbeat(options) => heartbeat::run(&options, context),
            Self::Complete(options) => complete::run(&options, context),
            Self::Progress(options) => progress::run(&options, context),
            Self::Status(options) => status::run(&options, context),
            Self::Rerun(options) => rerun::run(&options, context),
            Self::Forget(options) => forget::run(&options, context),
            Self::Gc(options) => gc::run(&options, context),
            Self::Install(options) => install::run(&options, context),
            Self::Hook(options) => hook::run(&options, context),
            Self::Mcp(options) => mcp::run(&options, context),
            Self::Daemon(options) => daemon::run(&options, context),
            Self::Doctor(options) => doctor::run(&options, context),
            Self::Config(options) => config::run(&options, context),
            Self::Token(options) => token::run(&options, context),
            Self::Explain(options) => explain::run(&options, context),
            Self::Completions(options) => completions::run(&options, context),
            Self::Help(options) => help::run(&options, context),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_grammar_holds_together() {
        Cli::command().debug_assert();
    }

    #[test]
    fn short_help_shows_ten_verbs_and_every_command_teaches_by_example() {
        let command = grammar();
        let shown: Vec<_> = command.get_subcommands().filter(|sub| !sub.is_hide_set()).collect();
        assert_eq!(shown.len(), 10);
        let all = command.get_subcommands().flat_map(|sub| std::iter::once(sub).chain(sub.get_subcommands()));
        for sub in all.filter(|sub| sub.get_name() != "help" || !sub.is_hide_set()) {
            assert!(sub.get_about().is_some(), "{} has no description", sub.get_name());
            let after = sub.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(after.contains("homing "), "{} shows no example", sub.get_name());
        }
    }

    #[test]
    fn options_end_where_the_command_begins() {
        for line in [
            &["homing", "run", "--name", "x", "--", "ls", "--json", "-c"][..],
            &["homing", "run", "--name", "x", "ls", "--json", "-c"],
        ] {
            let cli = Cli::try_parse_from(line).unwrap();
            assert!(!cli.global.json, "{line:?}");
        }
        assert!(Cli::try_parse_from(["homing", "run", "--nmae", "x", "--", "ls"]).is_err());
        assert!(Cli::try_parse_from(["homing", "run", "-c", "ls", "--", "ls"]).is_err());
        assert!(Cli::try_parse_from(["homing", "list", "--json", "--home", "/x"]).unwrap().global.json);
    }
}
