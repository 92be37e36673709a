//! `homing daemon install`: the daemon as a service of the user, from login or from boot on.
//!
//! One file is written, and only over one that this command wrote. What the service manager has to be told is told by `systemctl`; where there is none to
//! tell, that is an error before anything is written, with what to do instead.

use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

use clap::Args;
use homing_api::{Code, Problem};
use homing_sys::atomic_file;
use serde_json::json;

use super::unit::{self, Ingredients, Standing, Unit};
use crate::cli::context::Context;
use crate::cli::entry;
use crate::cli::exit_code;
use crate::cli::failure::Failure;
use crate::commands::install::diff;
use crate::render::console::Tint;

#[derive(Debug, Clone, Copy, Args)]
#[command(
    after_help = "It writes a systemd user unit, enables it and starts it. Stopping the service stops the daemon \
on purpose, and tasks run on; a daemon that dies is restarted at once by its keeper, as without \
a service. A unit that this command did not write is left alone. A home that was chosen (--home, \
HOMING_HOME) has a unit of its own.

Where there is no systemd (most containers) nothing is needed: the daemon starts with the first \
command. To have one from the start, run `homing daemon run` under whatever supervises the \
container.

Examples:
  homing daemon install --dry-run    what would be written and run
  homing daemon install
  loginctl enable-linger             from boot on, and after logout
  systemctl --user status homing
  homing daemon install --uninstall"
)]
pub(crate) struct Options {
    /// Stop it, and remove what was written
    #[arg(long)]
    uninstall: bool,
    /// Only show what would change
    #[arg(long)]
    dry_run: bool,
}

/// What is to be done.
struct Plan {
    unit: Unit,
    there: Option<String>,
    standing: Standing,
    commands: Vec<Vec<String>>,
}

/// Does it, or shows it.
pub(crate) fn run(options: Options, context: &Context) -> Result<u8, Failure> {
    let plan = plan(options, context)?;
    let manager = manager(context);
    if !options.dry_run {
        if let Err(why) = &manager {
            let mut problem = Problem::new(Code::NoServiceManager, why.detail.clone());
            if let Some(advice) = &why.advice {
                problem.advice.clone_from(advice);
            }
            return Err(problem.into());
        }
        carry_out(options, &plan)?;
    }
    let lingers = lingers(context);
    if context.json {
        context.console.json(&json!({
            "unit": plan.unit.name, "path": plan.unit.path, "uninstall": options.uninstall, "dry_run": options.dry_run,
            "changed": changes(options, &plan), "was": word(plan.standing), "diff": difference(options, &plan, context),
            "commands": plan.commands, "manager": manager.is_ok(), "lingers": lingers,
        }))?;
        return Ok(exit_code::DONE);
    }
    show(options, &plan, context)?;
    if let (true, Err(why)) = (options.dry_run, &manager) {
        context.console.note(&format!("homing: it could not be installed here: {}", why.detail));
    }
    if !options.uninstall && !options.dry_run && !lingers {
        context.console.note(
            "homing: it runs while you are logged in\n  next: `loginctl enable-linger` has it run from boot on, and after logout",
        );
    }
    Ok(exit_code::DONE)
}

/// The unit of this home as this program would write it.
pub(crate) fn wanted(context: &Context) -> Result<Unit, Problem> {
    let chosen = context.home_flag.is_some() || context.surroundings.get("HOMING_HOME").is_some();
    let program = entry::executable()?;
    unit::unit(Ingredients { program: &program, home: &context.home, chosen }, &context.surroundings)
}

/// The file as it is; none if there is none.
pub(crate) fn there(unit: &Unit) -> Result<Option<String>, Problem> {
    match std::fs::read_to_string(&unit.path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(unwritable(&unit.path, &error)),
    }
}

fn unwritable(path: &Path, error: &io::Error) -> Problem {
    let mut problem = Problem::new(Code::StorageFailed, format!("{}: {error}", path.display()));
    problem.advice = "Make it a plain file of yours, or move it away, and try again.".to_owned();
    problem
}

fn plan(options: Options, context: &Context) -> Result<Plan, Problem> {
    let unit = wanted(context)?;
    let there = there(&unit)?;
    let standing = unit::standing(there.as_deref(), &unit.text);
    if standing == Standing::Foreign {
        let detail = format!("{} is not one that `homing daemon install` wrote", unit.path.display());
        return Err(Problem::new(Code::ForeignUnit, detail));
    }
    let command = |words: &[&str]| {
        ["systemctl", "--user"].iter().chain(words).map(|word| (*word).to_owned()).collect::<Vec<_>>()
    };
    let commands = match (options.uninstall, standing) {
        (true, Standing::Absent) => Vec::new(),
        (true, _) => vec![command(&["disable", "--now", &unit.name]), command(&["daemon-reload"])],
        // What runs goes by the old one until it is started anew.
        (false, Standing::Outdated) => vec![
            command(&["daemon-reload"]),
            command(&["enable", &unit.name]),
            command(&["restart", &unit.name]),
        ],
        (false, _) => vec![command(&["daemon-reload"]), command(&["enable", "--now", &unit.name])],
    };
    Ok(Plan { unit, there, standing, commands })
}

fn changes(options: Options, plan: &Plan) -> bool {
    if options.uninstall {
        plan.standing != Standing::Absent
    } else {
        plan.there.as_deref() != Some(&plan.unit.text)
    }
}

const fn word(standing: Standing) -> &'static str {
    match standing {
        Standing::Absent => "absent",
        Standing::Current => "current",
        Standing::Outdated => "outdated",
        Standing::Foreign => "foreign",
    }
}

fn carry_out(options: Options, plan: &Plan) -> Result<(), Problem> {
    let path = &plan.unit.path;
    if options.uninstall {
        // It is stopped by its name while the manager still knows it; only then the file goes.
        for (place, command) in plan.commands.iter().enumerate() {
            if place == 1 {
                std::fs::remove_file(path).map_err(|error| unwritable(path, &error))?;
            }
            tell(command)?;
        }
        return Ok(());
    }
    if changes(options, plan) {
        let written = std::fs::create_dir_all(path.parent().unwrap_or(path))
            .and_then(|()| atomic_file::replace_content(path, plan.unit.text.as_bytes(), 0o644));
        written.map_err(|error| unwritable(path, &error))?;
    }
    plan.commands.iter().try_for_each(|command| tell(command))
}

/// Runs `systemctl`; what it says of a failure is told.
fn tell(words: &[String]) -> Result<(), Problem> {
    let shown = words.join(" ");
    let failed = |why: String| {
        let mut problem = Problem::new(Code::NoServiceManager, format!("`{shown}` failed: {why}"));
        problem.advice = "The unit stays written. `systemctl --user status` and `journalctl --user -e` say more; then try again.".to_owned();
        problem
    };
    let Some((program, arguments)) = words.split_first() else { return Ok(()) };
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output();
    let output = output.map_err(|error| failed(error.to_string()))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(failed(said.lines().next().unwrap_or("it did not say why").to_owned()))
}

fn difference(options: Options, plan: &Plan, context: &Context) -> String {
    let to = if options.uninstall { "" } else { &plan.unit.text };
    diff::render(plan.there.as_deref().unwrap_or_default(), to, &context.console)
}

fn show(options: Options, plan: &Plan, context: &Context) -> Result<(), Failure> {
    let path = homing_model::sanitize::line(&plan.unit.path.display().to_string());
    if !changes(options, plan) {
        let text = if options.uninstall { "is not there; nothing to change" } else { "is as it should be" };
        context.console.line(&format!("{path} {text}"))?;
    } else {
        let what = match (options.uninstall, plan.standing) {
            (true, _) => "remove",
            (false, Standing::Absent) => "create",
            (false, _) => "change",
        };
        let head = context.console.tint(Tint::Bold, &format!("{path} ({what})"));
        context.console.line(&format!("{head}\n{}", difference(options, plan, context)))?;
    }
    for command in &plan.commands {
        context.console.line(&format!(
            "{} {}",
            if options.dry_run { "would run" } else { "ran" },
            command.join(" ")
        ))?;
    }
    if options.dry_run {
        context.console.note("homing: nothing was changed; without --dry-run it is");
    }
    Ok(())
}

/// Why no service can be installed.
pub(crate) struct NoManager {
    pub(crate) detail: String,
    advice: Option<String>,
}

/// Whether the user's service manager is there to be told.
pub(crate) fn manager(context: &Context) -> Result<(), NoManager> {
    let private =
        context.surroundings.get("XDG_RUNTIME_DIR").map(|folder| Path::new(folder).join("systemd/private"));
    if private.is_some_and(|socket| socket.exists()) {
        return Ok(());
    }
    if !Path::new("/run/systemd/system").exists() {
        return Err(NoManager { detail: "no systemd runs here".to_owned(), advice: None });
    }
    Err(NoManager {
        detail: "systemd runs here, but no service manager of this user".to_owned(),
        advice: Some(
            "Log in as this user (not by `su` or `sudo`), or `loginctl enable-linger` and set XDG_RUNTIME_DIR to /run/user/UID; then try again."
                .to_owned(),
        ),
    })
}

/// Whether the user's services run without a login.
pub(crate) fn lingers(context: &Context) -> bool {
    let user = context.surroundings.text("USER").or_else(|| context.surroundings.text("LOGNAME"));
    user.is_some_and(|user| Path::new("/var/lib/systemd/linger").join(user).exists())
}
