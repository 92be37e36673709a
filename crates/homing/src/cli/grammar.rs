//! The grammar of the command line, and what happens with a line that fits it.

use std::ffi::OsString;
use std::mem::ManuallyDrop;
use std::path::PathBuf;

use clap::{Args, CommandFactory as _, Parser, Subcommand};

use crate::cli::context::Context;
use crate::cli::exit_code::{self, Manner};
use crate::cli::failure::Failure;
use crate::cli::plain;
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
#[command(after_help = "A task is named by its id, a unique start of it, its name, or @last: your newest.\n\
    `homing COMMAND --help` teaches one command, `homing help --all` lists the rest.\n\n\
    Begin with:\n  homing run -- cargo test      submit; prints the id\n  homing output -f @last        watch it\n  \
    homing wait @last             its exit code")]
pub(crate) struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Command,
}

/// One command by itself, called as `homing NAME …`.
#[derive(Debug, Parser)]
struct Alone<O: Args> {
    #[command(flatten)]
    global: Global,
    #[command(flatten)]
    options: O,
}

#[derive(Debug, Default, Args)]
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

/// Everything that can be typed. A plain parse builds only the command that was called, which is much of what a short call costs.
pub(crate) fn grammar() -> clap::Command {
    grammar_for(None)
}

/// The same, with its help laid out for a terminal of this width.
pub(crate) fn grammar_for(width: Option<usize>) -> clap::Command {
    let mut command = Cli::command();
    // First: before it, a command that nobody called yet has no help.
    command.build();
    usage::flowing(command, width)
}

/// Parses, runs, reports; the code is the answer.
pub(crate) fn run() -> u8 {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let surroundings = Surroundings::of_this_process();
    let console = Console::of_this_process(&surroundings);
    let name = usage::command_name(&arguments).unwrap_or_default();
    let manner = Manner::of_command(name, usage::stays(&arguments));
    if usage::wants_all_help(&arguments) {
        let text = help::overview(console.width);
        return usage::closing(&console.data(console.spelt(&text).as_bytes()));
    }
    let cli = match Cli::parse_line(&arguments) {
        Ok(cli) => cli,
        Err(error) => return usage::refuse(&error, manner, &arguments, &console),
    };
    let home_flag = cli.global.home;
    let located = home::resolve(home_flag.as_deref(), &surroundings);
    let home = located.as_ref().cloned().unwrap_or_default();
    // The process ends with it: the kernel takes all of it back at once.
    let context =
        ManuallyDrop::new(Context { surroundings, console, home_flag, home, json: cli.global.json });
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

impl Cli {
    /// Parses a line. One without options needs no grammar. What else agents and scripts call all the time is tried by a grammar of that command
    /// alone: to put the whole one together takes longer than anything else before the daemon is asked. Whatever does not fit is refused, or
    /// helped with, by the whole one.
    fn parse_line(arguments: &[OsString]) -> Result<Self, clap::Error> {
        if let Some(argv) = plain::argv(arguments, "run") {
            let command = Command::Run(run::Options::plain(argv.to_vec()));
            return Ok(Self { global: Global::default(), command });
        }
        let alone = match arguments.get(1).and_then(|name| name.to_str()) {
            Some("run") => Self::alone(arguments, Command::Run),
            Some("wait") => Self::alone(arguments, Command::Wait),
            Some("output") => Self::alone(arguments, Command::Output),
            Some("show") => Self::alone(arguments, Command::Show),
            Some("list") => Self::alone(arguments, Command::List),
            Some("status") => Self::alone(arguments, Command::Status),
            Some("inbox") => Self::alone(arguments, Command::Inbox),
            Some("progress") => Self::alone(arguments, Command::Progress),
            Some("hook") => Self::alone(arguments, Command::Hook),
            _ => None,
        };
        alone.map_or_else(|| Self::try_parse_from(arguments), Ok)
    }

    fn alone<O: Args>(arguments: &[OsString], command: fn(O) -> Command) -> Option<Self> {
        let Alone { global, options } = Alone::try_parse_from(arguments.get(1..)?).ok()?;
        Some(Self { global, command: command(options) })
    }
}

impl Command {
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
            Self::Exec(options) => apart(exec::run, &options, context),
            Self::Ask(options) => apart(ask::run, &options, context),
            Self::List(options) => apart(list::run, &options, context),
            Self::Show(options) => apart(show::run, &options, context),
            Self::Output(options) => apart(output::run, &options, context),
            Self::Wait(options) => apart(wait::run, &options, context),
            Self::Stop(options) => apart(stop::run, &options, context),
            Self::Pause(options) => apart(pause::run, &options, context),
            Self::Resume(options) => apart(resume::run, &options, context),
            Self::Input(options) => apart(input::run, &options, context),
            Self::Attach(options) => apart(attach::run, &options, context),
            Self::Inbox(options) => apart(inbox::run, &options, context),
            Self::Events(options) => apart(events::run, &options, context),
            Self::Ui(options) => apart(ui::run, &options, context),
            Self::Web(options) => apart(web::run, &options, context),
            Self::Ack(options) => apart(ack::run, &options, context),
            Self::Deliveries(options) => apart(deliveries::run, &options, context),
            Self::Redeliver(options) => apart(redeliver::run, &options, context),
            Self::Track(options) => apart(track::run, &options, context),
            Self::Heartbeat(options) => apart(heartbeat::run, &options, context),
            Self::Complete(options) => apart(complete::run, &options, context),
            Self::Progress(options) => apart(progress::run, &options, context),
            Self::Status(options) => apart(status::run, &options, context),
            Self::Rerun(options) => apart(rerun::run, &options, context),
            Self::Forget(options) => apart(forget::run, &options, context),
            Self::Gc(options) => apart(gc::run, &options, context),
            Self::Install(options) => apart(install::run, &options, context),
            Self::Hook(options) => apart(hook::run, &options, context),
            Self::Mcp(options) => apart(mcp::run, &options, context),
            Self::Daemon(options) => apart(daemon::run, &options, context),
            Self::Doctor(options) => apart(doctor::run, &options, context),
            Self::Config(options) => apart(config::run, &options, context),
            Self::Token(options) => apart(token::run, &options, context),
            Self::Explain(options) => apart(explain::run, &options, context),
            Self::Completions(options) => apart(completions::run, &options, context),
            Self::Help(options) => apart(help::run, &options, context),
        }
    }
}

/// Runs a command in a frame of its own: in one for them all, the largest would be everybody's, and each page of it is paid for.
#[inline(never)]
fn apart<O>(
    run: fn(&O, &Context) -> Result<u8, Failure>,
    options: &O,
    context: &Context,
) -> Result<u8, Failure> {
    run(options, context)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

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
    fn a_line_means_the_same_by_the_grammar_of_its_command_alone() {
        for line in [
            "run -- ls",
            "run --json --home /x ls --json",
            "run -c ls --name=x --timeout 5m --label a=b --notify inbox --wait",
            "run --follow --pty -- sh -c --help",
            "run",
            "run --nonsense",
            "run --help",
            "run --version",
            "run --json --json -- ls",
            "wait @last --json",
            "wait --any a b --timeout 0s",
            "wait",
            "output -f @last --stdout",
            "output x --tail 5 --home /x",
            "show x",
            "show",
            "list --json --status running",
            "list --limit",
            "status --home /x",
            "status x",
            "inbox --wait 5s --ack",
            "progress 40 linking",
            "progress",
            "hook claude stop",
            "hook",
            "--json run -- ls",
            "ps",
            "nonsense",
            "",
        ] {
            let arguments: Vec<OsString> =
                std::iter::once("homing").chain(line.split_whitespace()).map(OsString::from).collect();
            let told = |parsed: Result<Cli, clap::Error>| parsed.map_err(|error| error.to_string());
            let (alone, whole) = (told(Cli::parse_line(&arguments)), told(Cli::try_parse_from(&arguments)));
            assert_eq!(format!("{alone:?}"), format!("{whole:?}"), "{line}");
        }
    }

    proptest! {
        #[test]
        fn a_line_means_the_same_without_a_grammar(
            words in prop::collection::vec(
                prop::sample::select(vec!["--", "-", "ls", "-l", "--json", "--wait", "--name", "x", "", "-c", "run", "--help", "a=b"]),
                0..6,
            )
        ) {
            let arguments: Vec<OsString> = ["homing", "run"].iter().chain(&words).map(OsString::from).collect();
            let told = |parsed: Result<Cli, clap::Error>| parsed.map_err(|error| error.to_string());
            let (short, whole) = (told(Cli::parse_line(&arguments)), told(Cli::try_parse_from(&arguments)));
            prop_assert_eq!(format!("{short:?}"), format!("{whole:?}"));
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
