//! Command lines that make no sense, and those that only ask for help.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use homing_model::{Code, Problem, slip};

use crate::cli;
use crate::console::{Console, Tint};
use crate::exit_code::{self, Manner};
use crate::failure::Failure;
use crate::habit;

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

/// The same command, with the prose of its help as paragraphs: how wide the terminal is, is known only where it is shown.
pub(crate) fn flowing(command: clap::Command) -> clap::Command {
    let prose = command.get_after_help().map(|text| paragraphs(&text.to_string()));
    let command = match prose {
        Some(prose) => command.after_help(prose),
        None => command,
    };
    command.mut_subcommands(flowing)
}

/// Lines of prose that follow each other become one; what is indented, and what ends with a colon, stays a line.
fn paragraphs(text: &str) -> String {
    let is_prose = |line: &str| !line.is_empty() && !line.starts_with(' ');
    let mut out = String::new();
    let mut before = "";
    for line in text.lines() {
        if is_prose(line) && is_prose(before) && !before.ends_with(':') {
            out.push(' ');
        } else if !out.is_empty() || !before.is_empty() {
            out.push('\n');
        }
        out.push_str(line);
        before = line;
    }
    out
}

/// Answers a line that was not parsed: with help where it asks for that, else with what is wrong.
pub(crate) fn refuse(
    error: &clap::Error,
    manner: Manner,
    arguments: &[OsString],
    console: &Console,
) -> ExitCode {
    let asked =
        matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand);
    let flowing = asked.then(|| cli::grammar().try_get_matches_from(arguments).err()).flatten();
    let error = flowing.as_ref().unwrap_or(error);
    let text = |colour| if colour { error.render().ansi().to_string() } else { error.render().to_string() };
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            return closing(&console.data(text(console.colour).as_bytes()));
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => console.note(text(false).trim_end()),
        _ if wants_json(arguments) => console.json_note(&problem(error, command_name(arguments))),
        _ => console.note(&sentence(error, command_name(arguments), console)),
    }
    ExitCode::from(exit_code::of_usage(manner))
}

/// `--json` before the command that is to be run; the line could not be parsed, so that this is a first look again.
fn wants_json(arguments: &[OsString]) -> bool {
    arguments.iter().skip(1).take_while(|word| *word != "--").any(|word| word == "--json")
}

/// The same for a program.
fn problem(error: &clap::Error, command: Option<&str>) -> Problem {
    let (first, tips, next) = parts(error, command);
    let mut problem = Problem::new(Code::InvalidRequest, first);
    problem.advice = tips.into_iter().chain([next]).collect::<Vec<_>>().join("; ");
    problem
}

/// One sentence with a code, the parser's tips, and where to read on.
fn sentence(error: &clap::Error, command: Option<&str>, console: &Console) -> String {
    let (first, tips, next) = parts(error, command);
    let head = console.tint_note(Tint::Red, "homing:");
    let mut out = format!("{head} {first} ({})", Code::InvalidRequest.code());
    for tip in tips {
        out.push_str(&format!("\n  {tip}"));
    }
    out + "\n  next: " + &next
}

fn parts(error: &clap::Error, command: Option<&str>) -> (String, Vec<String>, String) {
    let root = cli::grammar();
    let known = command.and_then(|name| root.find_subcommand(name));
    match (error.kind(), known) {
        (ErrorKind::InvalidSubcommand, _) => no_command(error, known.unwrap_or(&root)),
        (ErrorKind::MissingRequiredArgument, Some(command)) => missing(error, command.get_name()),
        (_, known) => {
            let (first, tips) = parsers_words(&error.render().to_string());
            (first, tips, known.map_or_else(everything, |command| help_of(command.get_name())))
        }
    }
}

fn help_of(command: &str) -> String {
    format!("homing {command} --help")
}

fn everything() -> String {
    "homing help --all".to_owned()
}

/// A command that does not exist, with one that does and is nearly it.
fn no_command(error: &clap::Error, above: &clap::Command) -> (String, Vec<String>, String) {
    let word = match error.get(ContextKind::InvalidSubcommand) {
        Some(ContextValue::String(word)) => word.as_str(),
        _ => "",
    };
    let path = if above.get_name() == "homing" { String::new() } else { format!("{} ", above.get_name()) };
    let first = format!("there is no command `{path}{}`", homing_model::sanitize::line(word));
    let meant = habit::meant(above.get_name(), word).or_else(|| nearest(word, above));
    let tips = match habit::absent(above.get_name(), word) {
        Some(way) => vec![way.to_owned()],
        None => meant.map(|name| format!("did you mean `homing {path}{name}`?")).into_iter().collect(),
    };
    let next = if path.is_empty() { everything() } else { help_of(above.get_name()) };
    (first, tips, next)
}

/// The command that is fewest slips of the finger away, if they are few.
fn nearest<'a>(word: &str, above: &'a clap::Command) -> Option<&'a str> {
    let names = above.get_subcommands().flat_map(clap::Command::get_name_and_visible_aliases);
    slip::nearest(word, names)
}

/// An argument that was left out.
fn missing(error: &clap::Error, command: &str) -> (String, Vec<String>, String) {
    let what = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::Strings(names)) => names.join(" "),
        Some(ContextValue::String(name)) => name.clone(),
        _ => "more".to_owned(),
    };
    if what.starts_with("<ID>") {
        let first = format!("`homing {command}` needs the ID of a task");
        let next = format!(
            "`homing {command} @last` takes your latest, `homing list` shows them; homing {command} --help"
        );
        return (first, Vec::new(), next);
    }
    (format!("`homing {command}` needs {what}"), Vec::new(), help_of(command))
}

/// What the parser says, without its title, its usage and its pointer to the help.
fn parsers_words(text: &str) -> (String, Vec<String>) {
    let message =
        text.split("\nUsage:").next().unwrap_or(text).split("\nFor more information").next().unwrap_or(text);
    let mut lines = message.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or_default();
    let first = first.strip_prefix("error: ").unwrap_or(first).trim_end_matches(':').to_owned();
    (first, lines.map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    fn told(line: &str) -> String {
        let words = words(line);
        let error = cli::Cli::try_parse_from(&words).unwrap_err();
        sentence(&error, command_name(&words), &Console::plain(None))
    }

    #[test]
    fn a_command_that_does_not_exist_is_told_with_the_one_that_was_meant() {
        let text = "homing: there is no command `rnu` (HM0003)\n  did you mean `homing run`?\n  next: homing help --all";
        assert_eq!(told("homing rnu"), text);
        for (line, meant) in [
            ("homing statsu", "status"),
            ("homing lits", "list"),
            ("homing log", "logs"),
            ("homing kill -9 t-k3m", "stop"),
            ("homing rm x", "forget"),
            ("homing tail -n 5 x", "output -f"),
            ("homing daemon reload", "daemon restart"),
        ] {
            assert!(told(line).contains(&format!("did you mean `homing {meant}`?")), "{}", told(line));
        }
        assert!(!told("homing kubernetes").contains("did you mean"));
        for (line, way) in [
            ("homing restart x", "`homing daemon restart` restarts the daemon"),
            ("homing pause x", "`homing stop ID` ends one"),
            ("homing signal x", "`kill -s S PID`"),
        ] {
            let text = told(line);
            assert!(text.contains(way) && !text.contains("did you mean"), "{text}");
        }
        let text = told("homing daemon strat");
        assert!(
            text.contains("`daemon strat`") && text.contains("did you mean `homing daemon start`?"),
            "{text}"
        );
        assert!(text.ends_with("next: homing daemon --help"), "{text}");
    }

    #[test]
    fn a_task_that_was_not_named_is_asked_for() {
        for command in ["wait", "output", "show", "stop", "input", "forget"] {
            let text = told(&format!("homing {command}"));
            assert!(
                text.starts_with(&format!("homing: `homing {command}` needs the ID of a task (HM0003)\n"))
            );
            assert!(text.contains(&format!("`homing {command} @last`")), "{text}");
        }
        assert_eq!(
            told("homing completions"),
            "homing: `homing completions` needs <SHELL> (HM0003)\n  next: homing completions --help"
        );
    }

    #[test]
    fn the_command_is_found_behind_the_options() {
        assert_eq!(command_name(&words("homing --home wait run --x")), Some("run"));
        assert_eq!(command_name(&words("homing --json --home=/x exec")), Some("exec"));
        assert_eq!(command_name(&words("homing --json")), None);
    }

    #[test]
    fn a_typing_error_is_told_in_one_sentence_with_the_next_step() {
        let text = told("homing list --limmit 3");
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[0], "homing: unexpected argument '--limmit' found (HM0003)");
        assert!(lines[1].contains("--limit"), "{text}");
        assert_eq!(lines.last(), Some(&"  next: homing list --help"));
    }

    #[test]
    fn numbers_and_durations_that_make_no_sense_are_told_with_what_would() {
        for line in ["homing list -n 0", "homing list -n abc", "homing list -n -3"] {
            assert!(told(line).contains("write a whole number, 1 or above"), "{}", told(line));
        }
        for line in
            ["homing run --timeout -5s -- x", "homing wait --timeout -5s x", "homing stop --grace -1s x"]
        {
            assert!(told(line).contains("is not a duration: write 500ms"), "{}", told(line));
        }
    }

    #[test]
    fn prose_becomes_paragraphs_and_examples_stay_lines() {
        let text = "One\ntwo.\n\nThree:\nfour\n\nExamples:\n  a   b\n  c";
        assert_eq!(paragraphs(text), "One two.\n\nThree:\nfour\n\nExamples:\n  a   b\n  c");
        assert_eq!(paragraphs(""), "");
    }

    #[test]
    fn all_help_is_asked_for_in_either_order() {
        assert!(wants_all_help(&words("homing --help --all")));
        assert!(wants_all_help(&words("homing --all -h")));
        assert!(!wants_all_help(&words("homing list --all")));
    }
}
