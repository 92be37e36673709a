//! Command lines that make no sense, and those that only ask for help.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::ErrorKind;
use homing_model::Code;

use crate::console::{Console, Tint};
use crate::exit_code::{self, Manner};
use crate::failure::Failure;

/// The command that was meant, by a first look at the line: what follows the options of the program itself.
pub(crate) fn command_name(arguments: &[OsString]) -> Option<&str> {
    let mut words = arguments.iter().skip(1).map(|word| word.to_str().unwrap_or_default());
    while let Some(word) = words.next() {
        match word {
            "--home" => drop(words.next()),
            _ if word.starts_with('-') => {}
            _ => return Some(word),
        }
    }
    None
}

/// `homing --help --all`, in either order.
pub(crate) fn wants_all_help(arguments: &[OsString]) -> bool {
    let words: Vec<_> = arguments.iter().skip(1).filter_map(|word| word.to_str()).collect();
    matches!(words.as_slice(), ["--help" | "-h", "--all"] | ["--all", "--help" | "-h"])
}

/// The code after writing something that nobody has to read.
pub(crate) fn closing(written: &Result<(), Failure>) -> ExitCode {
    match written {
        Ok(()) | Err(Failure::ClosedOutput) => ExitCode::SUCCESS,
        Err(Failure::Problem(_)) => ExitCode::from(exit_code::FAILED),
    }
}

/// Answers a line that was not parsed: with help where it asks for that, else with what is wrong.
pub(crate) fn refuse(
    error: &clap::Error,
    manner: Manner,
    arguments: &[OsString],
    console: &Console,
) -> ExitCode {
    let text = |colour| if colour { error.render().ansi().to_string() } else { error.render().to_string() };
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            return closing(&console.data(text(console.colour).as_bytes()));
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => console.note(text(false).trim_end()),
        _ => console.note(&sentence(&text(false), command_name(arguments), console)),
    }
    ExitCode::from(exit_code::of_usage(manner))
}

/// One sentence with a code, the parser's tips, and where to read on.
fn sentence(text: &str, command: Option<&str>, console: &Console) -> String {
    let message =
        text.split("\nUsage:").next().unwrap_or(text).split("\nFor more information").next().unwrap_or(text);
    let mut lines = message.lines().filter(|line| !line.trim().is_empty());
    let first = lines.next().unwrap_or_default();
    let first = first.strip_prefix("error: ").unwrap_or(first);
    let head = console.tint_note(Tint::Red, "homing:");
    let mut out = format!("{head} {} ({})", first.trim_end_matches(':'), Code::InvalidRequest.code());
    for line in lines {
        out.push_str(&format!("\n  {}", line.trim()));
    }
    let known = command.filter(|name| {
        use clap::CommandFactory as _;
        crate::cli::Cli::command().find_subcommand(name).is_some()
    });
    match known {
        Some(name) => out.push_str(&format!("\n  next: homing {name} --help")),
        None => out.push_str("\n  next: homing help --all"),
    }
    out
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn the_command_is_found_behind_the_options() {
        assert_eq!(command_name(&words("homing --home wait run --x")), Some("run"));
        assert_eq!(command_name(&words("homing --json --home=/x exec")), Some("exec"));
        assert_eq!(command_name(&words("homing --json")), None);
    }

    #[test]
    fn a_typing_error_is_told_in_one_sentence_with_the_next_step() {
        let error = crate::cli::Cli::try_parse_from(["homing", "list", "--limmit", "3"]).unwrap_err();
        let text = sentence(&error.render().to_string(), Some("list"), &Console::plain(None));
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[0], "homing: unexpected argument '--limmit' found (HM0003)");
        assert!(lines[1].contains("--limit"), "{text}");
        assert_eq!(lines.last(), Some(&"  next: homing list --help"));
    }

    #[test]
    fn all_help_is_asked_for_in_either_order() {
        assert!(wants_all_help(&words("homing --help --all")));
        assert!(wants_all_help(&words("homing --all -h")));
        assert!(!wants_all_help(&words("homing list --all")));
    }
}
