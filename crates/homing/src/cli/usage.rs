//! Command lines that make no sense, and those that only ask for help.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use homing_api::{Code, Problem};
use homing_model::slip;

use crate::cli::command_aliases;
use crate::cli::exit_code::{self, Manner};
use crate::cli::failure::Failure;
use crate::cli::grammar;
use crate::commands::help;
use crate::render::console::{Console, Tint};

/// The command that was meant, by a first look at the line: what follows the options of the program itself.
fn command_name(arguments: &[OsString]) -> Option<&str> {
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

/// Whether a task's end is to be waited for, by the same look: what follows `--` is the task's.
fn stays(arguments: &[OsString]) -> bool {
    arguments.iter().take_while(|word| *word != "--").any(|word| word == "--wait" || word == "--follow")
}

/// `homing --help --all`, in either order.
fn wants_all_help(arguments: &[OsString]) -> bool {
    let words: Vec<_> = arguments.iter().skip(1).filter_map(|word| word.to_str()).collect();
    matches!(words.as_slice(), ["--help" | "-h", "--all"] | ["--all", "--help" | "-h"])
}

/// Answers a line that was not parsed: with help where the line requests it, else with what is wrong.
pub(crate) fn refuse(error: &clap::Error, arguments: &[OsString], console: &Console) -> u8 {
    if wants_all_help(arguments) {
        return printed(&help::overview(console.width), console);
    }
    let text = |colour| if colour { error.render().ansi().to_string() } else { error.render().to_string() };
    let name = command_name(arguments);
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => return printed(&text(console.colour), console),
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => console.note(text(false).trim_end()),
        _ if wants_json(arguments) => console.json_note(&problem(error, name)),
        _ => console.note(&sentence(error, name, console)),
    }
    exit_code::of_usage(Manner::of_command(name.unwrap_or_default(), stays(arguments)))
}

/// Prints help or the version; a closed stdout is no failure.
fn printed(text: &str, console: &Console) -> u8 {
    match console.help(text) {
        Ok(()) | Err(Failure::ClosedOutput) => exit_code::DONE,
        Err(Failure::Problem(_)) => exit_code::FAILED,
    }
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
    let root = grammar::grammar();
    let known = command.and_then(|name| root.find_subcommand(name));
    match (error.kind(), known) {
        (ErrorKind::InvalidSubcommand, _) => no_command(error, known.unwrap_or(&root)),
        (ErrorKind::MissingRequiredArgument, Some(command)) => missing(error, command),
        (_, known) => {
            let (first, mut tips) = parsers_words(&error.render().to_string());
            // The parser would have a mistyped option be an argument, which is hardly ever meant.
            tips.retain(|tip| !tip.starts_with("tip: to pass '"));
            tips.extend(slip_of(error, known));
            (first, tips, known.map_or_else(everything, |command| help_of(command.get_name())))
        }
    }
}

/// What somebody meant who forgot a quote, or looks for a task where there is none.
fn slip_of(error: &clap::Error, command: Option<&clap::Command>) -> Option<String> {
    let name = command?.get_name();
    let about = |kind: ContextKind, word: &str| match error.get(kind) {
        Some(ContextValue::String(text)) => text.contains(word),
        Some(ContextValue::Strings(texts)) => texts.iter().any(|text| text.contains(word)),
        _ => false,
    };
    let (line, argv) = ("-c <LINE>", "ARGV");
    let is_split = [(line, argv), (argv, line)]
        .iter()
        .any(|(one, other)| about(ContextKind::InvalidArg, one) && about(ContextKind::PriorArg, other));
    match error.kind() {
        ErrorKind::ArgumentConflict if is_split => {
            Some(format!("a shell line is one argument, in quotes: `homing {name} -c 'LINE'`"))
        }
        ErrorKind::UnknownArgument if matches!(name, "run" | "exec") => Some(format!(
            "options of a program stand behind it: `homing {name} -- PROGRAM -x`; a shell line is one argument, in quotes: `homing {name} -c 'LINE'`"
        )),
        ErrorKind::UnknownArgument if name == "status" && !about(ContextKind::InvalidArg, "-") => {
            Some("it is about the home; `homing show ID` is about a task".to_owned())
        }
        _ => None,
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
    let meant = command_aliases::meant(above.get_name(), word).or_else(|| nearest(word, above));
    let tips = match command_aliases::absent(above.get_name(), word) {
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
fn missing(error: &clap::Error, above: &clap::Command) -> (String, Vec<String>, String) {
    let command = &path(error, above);
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
    let words = words_for(&what, above);
    let words = if words.is_empty() { String::new() } else { format!(": {}", words.join(", ")) };
    (format!("`homing {command}` needs {what}{words}"), Vec::new(), help_of(command))
}

/// The command that lacks something, with those above it: `config explain`.
fn path(error: &clap::Error, above: &clap::Command) -> String {
    let text = error.render().to_string();
    let usage = text.split("Usage: homing ").nth(1).unwrap_or_default();
    let is_command = |word: &&str| word.starts_with(|c: char| c.is_ascii_lowercase());
    let words: Vec<_> = usage.split_whitespace().take_while(is_command).collect();
    if words.first() == Some(&above.get_name()) { words.join(" ") } else { above.get_name().to_owned() }
}

/// What can be written for an argument, where that is a few words.
fn words_for(argument: &str, command: &clap::Command) -> Vec<String> {
    let name = argument.trim_matches(['<', '>']);
    let named = |argument: &&clap::Arg| {
        argument.get_value_names().is_some_and(|names| names.iter().any(|known| known == name))
            || argument.get_id().as_str().eq_ignore_ascii_case(name)
    };
    let found = command.get_arguments().find(named);
    if found.is_some() && name == "AGENT" {
        return homing_agents::registry::names().map(str::to_owned).collect();
    }
    let words = found.map(clap::Arg::get_possible_values).unwrap_or_default();
    words.iter().filter(|word| !word.is_hide_set()).map(|word| word.get_name().to_owned()).collect()
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
    use crate::render::columns;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    fn told(line: &str) -> String {
        let words = words(line);
        let error = grammar::Cli::try_parse_from(&words).unwrap_err();
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
            ("homing suspend x", "pause"),
            ("homing unpause x", "resume"),
            ("homing daemon reload", "daemon restart"),
            ("homing config get log.level", "config explain"),
        ] {
            assert!(told(line).contains(&format!("did you mean `homing {meant}`?")), "{}", told(line));
        }
        assert!(!told("homing kubernetes").contains("did you mean"));
        for (line, way) in [
            ("homing restart x", "`homing daemon restart` restarts the daemon"),
            ("homing signal x", "`kill -s S PID`"),
            ("homing config set log.level debug", "`homing config path` prints the file to edit"),
            ("homing config show", "`homing config` shows what is in force"),
            ("homing run -c echo hello world", "in quotes: `homing run -c 'LINE'`"),
            ("homing status web", "`homing show ID` is about a task"),
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
        for command in ["wait", "output", "show", "stop", "pause", "resume", "input", "forget"] {
            let text = told(&format!("homing {command}"));
            assert!(
                text.starts_with(&format!("homing: `homing {command}` needs the ID of a task (HM0003)\n"))
            );
            assert!(text.contains(&format!("`homing {command} @last`")), "{text}");
        }
    }

    #[test]
    fn a_word_that_was_left_out_is_told_with_those_that_there_are() {
        assert_eq!(
            told("homing completions"),
            "homing: `homing completions` needs <SHELL>: bash, zsh, fish, elvish, powershell (HM0003)\n  next: homing completions --help"
        );
        assert_eq!(
            told("homing install"),
            "homing: `homing install` needs <AGENT>: claude, codex, opencode, gemini, qwen (HM0003)\n  next: homing install --help"
        );
        assert_eq!(
            told("homing config explain"),
            "homing: `homing config explain` needs <KEY> (HM0003)\n  next: homing config explain --help"
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
    fn no_line_of_any_help_is_longer_than_a_narrow_terminal() {
        for width in [40, 60] {
            let mut all = vec![grammar::grammar()];
            while let Some(command) = all.pop() {
                all.extend(command.get_subcommands().cloned());
                let text = command.term_width(width).render_help().to_string();
                let lines = columns::lines(&text, width);
                let is_long = |line: &&String| columns::of(line) > width && line.trim().contains(' ');
                let long: Vec<_> = lines.iter().filter(is_long).collect();
                assert!(long.is_empty(), "{width}: {long:#?}");
            }
        }
    }

    #[test]
    fn all_help_is_asked_for_in_either_order() {
        assert!(wants_all_help(&words("homing --help --all")));
        assert!(wants_all_help(&words("homing --all -h")));
        assert!(!wants_all_help(&words("homing list --all")));
    }
}
