//! `homing install`: makes an agent know of homing, in the agent's own configuration.
//!
//! Everything is planned before anything is written: what cannot be parsed, or has somebody else's thing where ours belongs, stops it all.
//! Nothing else in a file changes by a byte, and `--uninstall` leaves what was there before. Each file is replaced in one step; a crash
//! between two of them is mended by running the command again, either way.

mod backup;
mod change;
pub(super) mod diff;
mod edit;
mod file;
mod jsonc;
#[cfg(test)]
mod laws;
mod wiring;

use clap::Args;
use clap_complete::ArgValueCandidates;
use homing_agents::install::Scope;
use homing_agents::{Agent, registry};
use homing_api::Problem;
use serde_json::json;

use crate::cli::context::Context;
use crate::cli::exit_code;
use crate::cli::failure::Failure;
use crate::cli::shell_words;
use crate::commands::hook::misuse;
use crate::render::console::Tint;
use change::Change;

#[derive(Debug, Args)]
#[command(after_help = "It writes the MCP server, the hooks or a plugin, and a short \
skill into the agent's own configuration, and leaves everything else there as it is, to the \
byte. Beside each file that it changes it keeps NAME.homing-backup until `--uninstall`; with \
--project the backups are in homing's own home, where nobody commits them. The command that is \
written is the place where your shell finds homing, so that an upgrade there is all it takes; \
with --project it is the bare name, since others have it elsewhere.

Examples:
  homing install claude --dry-run    what would change
  homing install claude              do it; twice is once
  homing install codex --project     for everybody who works in this folder
  homing install claude --uninstall  as it was before")]
pub(crate) struct Options {
    #[arg(help = registry::listed(), value_parser = agent, add = ArgValueCandidates::new(shell_words::hosts))]
    agent: &'static dyn Agent,
    /// Show what would change, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Take it out again
    #[arg(long)]
    uninstall: bool,
    /// In this folder, for everybody who works in it, instead of for you everywhere
    #[arg(long)]
    project: bool,
}

fn agent(text: &str) -> Result<&'static dyn Agent, String> {
    registry::known(text).map_err(|error| {
        format!("{error}; any other takes `homing mcp` as an MCP server, see docs/agents/index.md")
    })
}

/// Changes it, and tells which files; or shows what would change.
pub(crate) fn run(options: &Options, context: &Context) -> Result<u8, Failure> {
    let scope = if options.project { Scope::Project } else { Scope::User };
    let wiring = wiring::wiring(options.agent, scope, context)?;
    let changes = if options.uninstall { change::uninstall(&wiring)? } else { change::install(&wiring)? };
    if options.dry_run {
        if !context.json {
            show(&changes, context)?;
        }
    } else {
        let mut done = Vec::new();
        let outcome = changes.iter().try_for_each(|change| {
            change::carry_out(change, &wiring, options.project).map(|()| done.push(change))
        });
        // Also where another one failed: these were written.
        let told = if context.json { Ok(()) } else { tell(&done, context) };
        outcome?;
        misuse::forget(&context.home);
        told?;
    }
    if context.json {
        show_json(options, &changes, context)?;
    }
    if !context.json {
        for text in changes.iter().filter_map(|change| left(options, change)) {
            context.console.note(&text);
        }
        context.console.note(&summary(options, &changes, wiring.note));
    }
    Ok(exit_code::DONE)
}

fn show(changes: &[Change], context: &Context) -> Result<(), Failure> {
    for change in changes.iter().filter(|change| change.is_one()) {
        let head = format!("{} ({})", change.path.display(), what(change));
        let head = context.console.tint(Tint::Bold, &homing_model::sanitize::line(&head));
        context.console.line(&format!("{head}\n{}", lines(change, context)))?;
    }
    Ok(())
}

/// One line for each file that was changed.
fn tell(done: &[&Change], context: &Context) -> Result<(), Failure> {
    for change in done.iter().filter(|change| change.is_one()) {
        let verb = if change.to.is_some() { "wrote" } else { "removed" };
        let path = homing_model::sanitize::line(&change.path.display().to_string());
        context.console.line(&format!("{verb} {path}"))?;
    }
    Ok(())
}

fn lines(change: &Change, context: &Context) -> String {
    diff::render(
        change.from.as_deref().unwrap_or_default(),
        change.to.as_deref().unwrap_or_default(),
        &context.console,
    )
}

fn show_json(options: &Options, changes: &[Change], context: &Context) -> Result<(), Failure> {
    let left: Vec<_> = changes
        .iter()
        .filter_map(|change| Some(json!({ "path": change.path, "entry": change.left.as_ref()? })))
        .collect();
    let changes: Vec<_> = changes
        .iter()
        .filter(|change| change.is_one())
        .map(|change| json!({ "path": change.path, "action": what(change), "diff": lines(change, context) }))
        .collect();
    context.console.json(&json!({
        "agent": options.agent.name(), "uninstall": options.uninstall, "dry_run": options.dry_run, "changes": changes,
        "left": left,
    }))
}

/// What is said of a server that calls homing but is not ours.
fn left(options: &Options, change: &Change) -> Option<String> {
    let name = change.left.as_ref()?;
    let path = homing_model::sanitize::line(&change.path.display().to_string());
    Some(if options.uninstall {
        format!("homing: `{name}` stays in {path}: nothing shows that `homing install` wrote it")
    } else {
        format!("homing: `{name}` in {path} calls homing already; it is left as it is")
    })
}

fn what(change: &Change) -> &'static str {
    match (&change.from, &change.to) {
        (None, _) => "create",
        (Some(_), Some(_)) => "change",
        (Some(_), None) => "remove",
    }
}

fn summary(options: &Options, changes: &[Change], note: &str) -> String {
    let title = options.agent.title();
    let changed = changes.iter().any(Change::is_one);
    match (options.uninstall, changed, options.dry_run) {
        (_, true, true) => "homing: nothing was changed; without --dry-run it is".to_owned(),
        (false, true, false) => format!("homing: {title} knows of homing now\n  next: {note}"),
        (true, true, false) if changes.iter().all(|change| change.restored) => {
            format!("homing: what homing wrote for {title} is gone; its files are as they were")
        }
        (true, true, false) => format!("homing: what homing wrote for {title} is gone"),
        (false, false, _) => format!("homing: {title} knows of homing already; nothing to change"),
        (true, false, _) => {
            format!("homing: nothing is there that homing wrote for {title}; nothing to change")
        }
    }
}

/// How far an agent is set up, for the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// As this release would do it.
    Installed,
    /// In part, or as another release or another place of the program would have it.
    Outdated,
    /// Not at all.
    Absent,
}

/// Looks, and changes nothing.
pub(crate) fn state(agent: &dyn Agent, context: &Context) -> Result<State, Problem> {
    let wiring = wiring::wiring(agent, Scope::User, context)?;
    if !change::install(&wiring)?.iter().any(Change::is_one) {
        return Ok(State::Installed);
    }
    let traces = change::uninstall(&wiring)?.iter().any(Change::is_one);
    Ok(if traces { State::Outdated } else { State::Absent })
}
