//! `homing help`: one command's help, the short list, or everything in groups.

use clap::Args;
use clap_complete::ArgValueCandidates;
use homing_api::{Code, Problem};

use crate::cli::command_aliases;
use crate::cli::completion;
use crate::cli::context::Context;
use crate::cli::exit_code;
use crate::cli::failure::Failure;
use crate::cli::grammar;
use crate::render::columns::wrap;

/// Everything, by what it is for.
const GROUPS: &[(&str, &[&str])] = &[
    ("Run", &["run", "exec", "ask"]),
    ("Look", &["list", "ui", "web", "show", "output", "wait", "events", "status"]),
    ("Act", &["stop", "pause", "resume", "input", "attach", "rerun", "forget"]),
    ("Be told", &["inbox", "ack", "deliveries", "redeliver"]),
    ("What others run", &["track", "heartbeat", "complete"]),
    ("Inside a task", &["progress"]),
    ("Agents", &["install", "mcp", "hook"]),
    ("The daemon", &["daemon", "gc", "doctor", "config", "token"]),
    ("This program", &["explain", "completions", "help"]),
];

/// Prose is no wider than this, however wide the terminal is.
const USUAL: usize = 100;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  homing help --all                  every command, grouped
  homing help run                    the same as `homing run --help`")]
pub(crate) struct Options {
    /// Every command, grouped
    #[arg(long, conflicts_with = "command")]
    all: bool,
    /// A command
    #[arg(add = ArgValueCandidates::new(completion::commands))]
    command: Vec<String>,
}

/// Prints what was asked for.
pub(crate) fn run(options: &Options, context: &Context) -> Result<u8, Failure> {
    let text = if options.all {
        overview(context.console.width)
    } else {
        let mut root = grammar::grammar_for(context.console.width);
        let mut command = &mut root;
        for (index, name) in options.command.iter().enumerate() {
            let above = index.checked_sub(1).and_then(|above| options.command.get(above));
            let above = above.map_or("homing", String::as_str);
            command = command.find_subcommand_mut(name).ok_or_else(|| {
                let mut problem = Problem::new(Code::InvalidRequest, format!("there is no command `{name}`"));
                let meant = command_aliases::meant(above, name)
                    .map(|meant| format!("Did you mean `homing {meant}`? "));
                problem.advice = meant.unwrap_or_default() + "`homing help --all` lists them.";
                problem
            })?;
        }
        let help =
            if options.command.is_empty() { command.render_help() } else { command.render_long_help() };
        if context.console.colour { help.ansi().to_string() } else { help.to_string() }
    };
    context.console.help(&text)?;
    Ok(exit_code::DONE)
}

/// Every command in its group.
pub(crate) fn overview(width: Option<usize>) -> String {
    let command = grammar::grammar();
    let mut out = String::new();
    listed(&mut out, "Usage: ", "homing [--home DIR] [--json] COMMAND …", width);
    for (group, names) in GROUPS {
        out.push_str(&format!("\n{group}:\n"));
        for sub in names.iter().filter_map(|name| command.find_subcommand(name)) {
            let about = sub.get_about().map(ToString::to_string).unwrap_or_default();
            let aliases: Vec<_> = sub.get_visible_aliases().collect();
            let also =
                if aliases.is_empty() { String::new() } else { format!(" (also: {})", aliases.join(", ")) };
            listed(&mut out, &format!("  {:<12} ", sub.get_name()), &format!("{about}{also}"), width);
            for below in sub.get_subcommands().filter(|below| below.get_name() != "help") {
                let about = below.get_about().map(ToString::to_string).unwrap_or_default();
                listed(&mut out, &format!("    {:<10} ", below.get_name()), &about, width);
            }
        }
    }
    for paragraph in [
        "A task is named by its id, a unique start of it, its name, or @last, the newest of its owner. Durations: 500ms, 30s, 10m, 2h, 1h30m, 7d. Sizes: 64MiB.",
        "Exit codes of run and ask with --wait or --follow, of exec and wait: the task's own, 128+n for a signal, 121 lost, 122 stopped, 123 still \
         running, 124 timed out, 125 homing failed, 126/127 could not be started. All others, run and ask \
         alone too: 0 done, 1 failed, 2 usage, 4 no such task, 69 daemon unreachable.",
    ] {
        out.push('\n');
        out.push_str(&wrap(paragraph, width.unwrap_or(USUAL).min(USUAL)).join("\n"));
        out.push('\n');
    }
    out
}

/// A name and what it is for, on as many lines as the terminal makes of it.
fn listed(out: &mut String, name: &str, about: &str, width: Option<usize>) {
    let room = width.unwrap_or(usize::MAX).saturating_sub(name.len());
    for (index, text) in wrap(about, room).iter().enumerate() {
        let name = if index == 0 { name } else { &" ".repeat(name.len()) };
        out.push_str(&format!("{name}{text}\n"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_in_exactly_one_group() {
        let mut listed: Vec<_> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        listed.sort_unstable();
        let command = grammar::grammar();
        let mut known: Vec<_> = command.get_subcommands().map(clap::Command::get_name).collect();
        known.sort_unstable();
        assert_eq!(listed, known);
        let text = overview(None);
        assert!(text.contains("(also: ps)"));
        assert!(text.contains("  run          Submit a task; print its id\n"), "{text}");
        assert!(text.contains("  exec         Run in the foreground with live output\n"));
    }

    #[test]
    fn no_line_is_longer_than_the_terminal() {
        for width in [40, 80, 120] {
            let text = overview(Some(width));
            assert!(text.lines().all(|line| crate::render::columns::of(line) <= width), "{text}");
        }
    }
}
