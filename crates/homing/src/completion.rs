//! Completion in the shell: options and commands from the grammar, tasks from the daemon.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use clap::CommandFactory as _;
use clap_complete::CompletionCandidate;
use clap_complete::env::CompleteEnv;
use homing_client::{Client, ListQuery};
use homing_model::{Code, Status, Task, environment};

use crate::cli::Cli;
use crate::surroundings::Surroundings;
use crate::{home, table};

/// By this variable the shell says that it asks.
pub(crate) const VARIABLE: &str = "HOMING_COMPLETE";

/// A shell waits while its user types: nothing is worth longer.
const PATIENCE: Duration = Duration::from_millis(300);

/// Answers the shell and leaves, if it is the shell that asks.
pub(crate) fn answer_shell() {
    CompleteEnv::with_factory(grammar).var(VARIABLE).bin("homing").complete();
}

/// The grammar as a shell should offer it: every command, also those that the short help leaves out, and each by its name alone.
/// A shell offers one word of those that mean the same, and it should not be the alias.
fn grammar() -> clap::Command {
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
    candidates(current, &[])
}

/// Tasks that have not ended.
pub(crate) fn live_tasks(current: &OsStr) -> Vec<CompletionCandidate> {
    candidates(
        current,
        &[Status::Queued, Status::Starting, Status::Running, Status::Paused, Status::Stopping],
    )
}

/// Asks a daemon that runs, and says nothing about one that does not.
fn candidates(current: &OsStr, statuses: &[Status]) -> Vec<CompletionCandidate> {
    let Some(current) = current.to_str() else { return Vec::new() };
    let surroundings = Surroundings::of_this_process();
    let typed: Vec<_> = std::env::args_os().collect();
    let Ok(home) = home::resolve(home_flag(&typed).map(Path::new), &surroundings) else { return Vec::new() };
    let owner = environment::owner(|name| surroundings.text(name).map(str::to_owned));
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
        return Vec::new();
    };
    let query = ListQuery { statuses: statuses.to_vec(), limit: Some(200), ..ListQuery::default() };
    let asked = runtime.block_on(async {
        let client = Client::new(home, &owner);
        tokio::time::timeout(PATIENCE, client.list(&query)).await
    });
    match asked {
        Ok(Ok(page)) => page.items.iter().filter_map(|task| candidate(task, current)).collect(),
        _ => Vec::new(),
    }
}

/// The `--home` of the line that is being typed, which the shell passes on after `--`.
fn home_flag(typed: &[OsString]) -> Option<&OsStr> {
    let line = typed.iter().position(|word| word == "--").map_or(&[][..], |at| &typed[at + 1..]);
    line.iter().enumerate().find_map(|(at, word)| match word.as_bytes().strip_prefix(b"--home") {
        Some(b"") => line.get(at + 1).map(OsString::as_os_str),
        Some([b'=', path @ ..]) => Some(OsStr::from_bytes(path)),
        _ => None,
    })
}

/// The name where that was begun, else the id; with or without its `t-`.
fn candidate(task: &Task, current: &str) -> Option<CompletionCandidate> {
    let id = task.id.as_str();
    let named = task.name.as_deref().filter(|name| !current.is_empty() && name.starts_with(current));
    let word = match named {
        Some(name) => name,
        None if id.starts_with(current) => id,
        None => id.strip_prefix("t-").filter(|bare| bare.starts_with(current))?,
    };
    let help = format!("{}  {}", task.status, table::title(task));
    Some(CompletionCandidate::new(word).help(Some(help.into())))
}

#[cfg(test)]
mod tests {
    use homing_client::fake::sample_task;

    use super::*;

    fn completed(current: &str) -> Option<String> {
        let mut json = sample_task("running");
        json["name"] = "build".into();
        let task: Task = serde_json::from_value(json).unwrap();
        candidate(&task, current).map(|candidate| candidate.get_value().to_string_lossy().into_owned())
    }

    #[test]
    fn a_task_is_completed_from_its_id_or_its_name() {
        assert_eq!(completed("").as_deref(), Some("t-bcdfghjkmn"));
        assert_eq!(completed("t-bc").as_deref(), Some("t-bcdfghjkmn"));
        assert_eq!(completed("bcd").as_deref(), Some("bcdfghjkmn"));
        assert_eq!(completed("bui").as_deref(), Some("build"));
        assert_eq!(completed("x"), None);
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
}
