//! Completion in the shell: options and commands from the grammar, tasks from the daemon.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use clap::CommandFactory as _;
use clap_complete::CompletionCandidate;
use clap_complete::engine::{PathCompleter, ValueCompleter as _};
use clap_complete::env::CompleteEnv;
use homing_agents::environment;
use homing_api::Code;
use homing_client::{Client, ListQuery};
use homing_model::{Kind, Status, Task};

use crate::cli::grammar::Cli;
use crate::options::environment::Surroundings;
use crate::options::home;
use crate::render::table;

/// By this variable the shell says that it asks.
pub(crate) const VARIABLE: &str = "HOMING_COMPLETE";

/// A shell waits while its user types: nothing is worth longer.
const PATIENCE: Duration = Duration::from_millis(300);

/// The task that was submitted last.
const LAST: &str = "@last";

/// Statuses of tasks that have not ended.
const LIVE: [Status; 5] =
    [Status::Queued, Status::Starting, Status::Running, Status::Paused, Status::Stopping];

/// Answers the shell and leaves, if it is the shell that asks.
pub(crate) fn answer_shell() {
    CompleteEnv::with_factory(grammar).var(VARIABLE).bin("homing").complete();
}

/// The grammar as a shell should offer it: every command, also those that the short help leaves out, and each by its name alone.
/// A shell offers one word of those that mean the same, and it should not be the alias.
pub(crate) fn grammar() -> clap::Command {
    let mut grammar = Cli::command();
    let names: Vec<_> = grammar.get_subcommands().map(|command| command.get_name().to_owned()).collect();
    for name in names {
        grammar = grammar.mut_subcommand(name, |command| {
            let aliases: Vec<_> = command.get_visible_aliases().map(str::to_owned).collect();
            command.hide(false).visible_alias(None::<&str>).aliases(aliases)
        });
    }
    grammar
}

/// Every command, for `help`.
pub(crate) fn commands() -> Vec<CompletionCandidate> {
    let grammar = grammar();
    let commands = grammar.get_subcommands();
    commands
        .map(|command| CompletionCandidate::new(command.get_name()).help(command.get_about().cloned()))
        .collect()
}

/// Every code, for `explain`.
pub(crate) fn codes() -> Vec<CompletionCandidate> {
    let candidate = |code: &Code| CompletionCandidate::new(code.code()).help(Some(code.title().into()));
    Code::ALL.iter().map(candidate).collect()
}

/// Every task.
pub(crate) fn tasks(current: &OsStr) -> Vec<CompletionCandidate> {
    candidates(current, &[], |_| true)
}

/// Tasks that have ended.
pub(crate) fn ended_tasks(current: &OsStr) -> Vec<CompletionCandidate> {
    let ended: Vec<_> = Status::ALL.into_iter().filter(|status| status.is_terminal()).collect();
    candidates(current, &ended, |_| true)
}

/// Tasks that take input.
pub(crate) fn tasks_with_input(current: &OsStr) -> Vec<CompletionCandidate> {
    candidates(current, &LIVE, |task| task.accepts_input)
}

/// The signals that people send.
pub(crate) fn signals() -> Vec<CompletionCandidate> {
    ["TERM", "INT", "HUP", "QUIT", "KILL", "USR1", "USR2"].into_iter().map(CompletionCandidate::new).collect()
}

/// The file behind `NAME=@`.
pub(crate) fn secret(current: &OsStr) -> Vec<CompletionCandidate> {
    let typed = current.as_bytes();
    let Some(at) = typed.windows(2).position(|pair| pair == b"=@") else { return Vec::new() };
    let (name, file) = typed.split_at(at + 2);
    let files = PathCompleter::any().complete(OsStr::from_bytes(file));
    files.into_iter().map(|candidate| candidate.add_prefix(OsStr::from_bytes(name))).collect()
}

/// Tasks that have not ended.
pub(crate) fn live_tasks(current: &OsStr) -> Vec<CompletionCandidate> {
    candidates(current, &LIVE, |_| true)
}

/// Tasks that can be paused.
pub(crate) fn running_tasks(current: &OsStr) -> Vec<CompletionCandidate> {
    candidates(current, &[Status::Starting, Status::Running], |task| task.kind != Kind::External)
}

/// Tasks that can go on.
pub(crate) fn paused_tasks(current: &OsStr) -> Vec<CompletionCandidate> {
    candidates(current, &[Status::Paused], |_| true)
}

/// Asks a daemon that runs, and says nothing about one that does not.
fn candidates(current: &OsStr, statuses: &[Status], wanted: fn(&Task) -> bool) -> Vec<CompletionCandidate> {
    let Some(typed) = current.to_str() else { return Vec::new() };
    let current = unquoted(typed);
    let current = current.as_ref();
    let surroundings = Surroundings::of_this_process();
    let is_safe = safe_names(typed, surroundings.text(VARIABLE));
    let typed: Vec<_> = std::env::args_os().collect();
    let Ok(home) = home::resolve(home_flag(&typed).map(Path::new), &surroundings) else { return Vec::new() };
    let owner = environment::owner(|name| surroundings.text(name).map(str::to_owned));
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
        return Vec::new();
    };
    // Which task that is, is for whoever presses the key to know.
    let last =
        LAST.starts_with(current).then(|| CompletionCandidate::new(LAST).help(Some("your last task".into())));
    let query = ListQuery { statuses: statuses.to_vec(), limit: Some(200), ..ListQuery::default() };
    let asked = runtime.block_on(async {
        let client = Client::new(home, &owner);
        tokio::time::timeout(PATIENCE, client.list(&query)).await
    });
    match asked {
        Ok(Ok(page)) => {
            let tasks = page.items.iter().filter(|task| wanted(task));
            let words: Vec<_> = tasks.flat_map(|task| words(task, current, is_safe)).collect();
            // Where there is no task, there is no last one.
            let last = last.filter(|_| !current.is_empty() || !words.is_empty());
            words.into_iter().chain(last).collect()
        }
        _ => Vec::new(),
    }
}

/// The `--home` of the line that is being typed, which the shell passes on after `--`.
pub(crate) fn home_flag(typed: &[OsString]) -> Option<&OsStr> {
    let line = typed.iter().position(|word| word == "--").map_or(&[][..], |at| &typed[at + 1..]);
    line.iter().enumerate().find_map(|(at, word)| match word.as_bytes().strip_prefix(b"--home") {
        Some(b"") => line.get(at + 1).map(OsString::as_os_str),
        Some([b'=', path @ ..]) => Some(OsStr::from_bytes(path)),
        _ => None,
    })
}

/// What was typed, without what the shell is to take away: it passes on a word that is not whole as it stands.
fn unquoted(typed: &str) -> Cow<'_, str> {
    let typed = typed.strip_prefix(['\'', '"']).unwrap_or(typed);
    if !typed.contains('\\') {
        return Cow::Borrowed(typed);
    }
    let mut characters = typed.chars();
    let next = || characters.next().and_then(|c| if c == '\\' { characters.next() } else { Some(c) });
    Cow::Owned(std::iter::from_fn(next).collect())
}

/// Which names may be offered. Any task chooses its name, and what a shell expands is executed.
/// Within quotes that were begun no shell is sure to escape a name; fish passes its words on without
/// quotes, and so does bash, whose script looks itself.
fn safe_names(typed: &str, shell: Option<&str>) -> fn(&str) -> bool {
    match shell {
        None | Some("bash" | "zsh") if !typed.starts_with(['\'', '"']) => |_| true,
        None | Some("bash" | "zsh" | "fish") => is_inert,
        // PowerShell's script inserts the word as it is.
        Some(_) => is_plain,
    }
}

/// Whether a name means itself in every shell, without quotes.
fn is_plain(name: &str) -> bool {
    name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-'))
}

/// Whether a name means itself also within quotes.
fn is_inert(name: &str) -> bool {
    !name.contains(|c: char| c.is_control() || "$`\\\"'!".contains(c))
}

/// The name where that was begun, else the id, with or without its `t-`; both where nothing was typed yet.
/// A name that is not safe is left out.
fn words(task: &Task, current: &str, is_safe: fn(&str) -> bool) -> Vec<CompletionCandidate> {
    let id = task.id.as_str();
    let named = task.name.as_deref().filter(|name| name.starts_with(current));
    let named = named.filter(|name| is_safe(name));
    let by_id = match named {
        Some(_) if !current.is_empty() => None,
        _ if id.starts_with(current) => Some(id),
        _ => id.strip_prefix("t-").filter(|bare| bare.starts_with(current)),
    };
    let help = format!("{}  {}", task.status, table::title(task));
    let candidate = |word: &str| CompletionCandidate::new(word).help(Some(help.clone().into()));
    named.into_iter().chain(by_id).map(candidate).collect()
}

#[cfg(test)]
mod tests {
    use homing_client::fake::sample_task;

    use super::*;

    fn completed(current: &str) -> Vec<String> {
        let mut json = sample_task("running");
        json["name"] = "build".into();
        let task: Task = serde_json::from_value(json).unwrap();
        let words = words(&task, current, |_| true);
        words.iter().map(|candidate| candidate.get_value().to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn a_task_is_completed_from_its_id_or_its_name() {
        assert_eq!(completed(""), ["build", "t-bcdfghjkmn"]);
        assert_eq!(completed("t-bc"), ["t-bcdfghjkmn"]);
        assert_eq!(completed("bcd"), ["bcdfghjkmn"]);
        assert_eq!(completed("bui"), ["build"]);
        assert!(completed("x").is_empty());
    }

    #[test]
    fn p11_within_quotes_no_name_is_offered_that_a_shell_would_expand() {
        let mut json = sample_task("running");
        for (name, inert) in [
            ("build all, really (100%)", true),
            ("$(touch x)", false),
            ("`touch x`", false),
            ("a\"; touch x; \"", false),
            ("a'; touch x; '", false),
            ("a!x", false),
            ("a\\", false),
        ] {
            json["name"] = name.into();
            let task: Task = serde_json::from_value(json.clone()).unwrap();
            let cases = [
                ("\"", Some("bash"), inert),
                ("'a", Some("zsh"), inert),
                ("a", Some("bash"), true),
                ("a", Some("fish"), inert),
                ("a", Some("powershell"), false),
                ("a", Some("elvish"), false),
            ];
            for (typed, shell, both) in cases {
                let offered = words(&task, "", safe_names(typed, shell)).len();
                assert_eq!(offered, 1 + usize::from(both), "{name} {typed} {shell:?}");
            }
        }
        json["name"] = "build-2.test_x".into();
        let task: Task = serde_json::from_value(json).unwrap();
        assert_eq!(words(&task, "", safe_names("", Some("powershell"))).len(), 2);
    }

    #[test]
    fn every_argument_that_is_an_id_is_completed() {
        let mut grammar = grammar();
        grammar.build();
        let mut found = 0;
        for command in grammar.get_subcommands() {
            let is_id = |argument: &&clap::Arg| {
                argument.get_value_names().is_some_and(|names| names.iter().any(|name| name == "ID"))
            };
            for argument in command.get_arguments().filter(is_id) {
                found += 1;
                let completed = argument.get::<clap_complete::ArgValueCompleter>().is_some();
                assert!(completed, "{} {}", command.get_name(), argument.get_id());
            }
        }
        assert!(found >= 13, "{found}");
    }

    #[test]
    fn the_home_of_the_line_being_typed_is_asked() {
        let flag = |line: &str| {
            let typed: Vec<_> = line.split(' ').map(OsString::from).collect();
            home_flag(&typed).map(|path| path.to_string_lossy().into_owned())
        };
        assert_eq!(flag("homing -- homing --home /x show t-").as_deref(), Some("/x"));
        assert_eq!(flag("homing -- homing show --home=/x t-").as_deref(), Some("/x"));
        assert_eq!(flag("homing -- homing show t-"), None);
    }
    #[test]
    fn what_is_typed_is_compared_as_the_shell_will_read_it() {
        for (typed, read) in [
            ("my", "my"),
            (r"my\ b", "my b"),
            ("\"my b", "my b"),
            ("'my b", "my b"),
            (r"a\\b", r"a\b"),
            (r"a\", "a"),
            ("", ""),
        ] {
            assert_eq!(unquoted(typed), read, "{typed}");
        }
    }
}
