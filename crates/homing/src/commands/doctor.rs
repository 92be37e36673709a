//! `homing doctor`: is everything in place? Looks, never touches, never starts anything.

mod checks;
mod clock;
mod journal;
mod service;

use std::time::Duration;

use clap::Args;
use homing_api::{Code, ConfigurationInfo, DaemonInfo, Problem};
use homing_server::token;
use homing_sys::{confine, peer};
use serde::Serialize;

use crate::cli::context::Context;
use crate::cli::exit_code;
use crate::cli::failure::Failure;
use crate::daemon_control::unresponsive_daemon;
use crate::render::columns;
use crate::render::console::{Console, Tint};

/// The columns before what a check found.
const INDENT: usize = 18;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  homing doctor                      0 unless something fails
  homing doctor --json | jq '.checks[] | select(.state != \"ok\")'")]
pub(crate) struct Options {}

/// How a check came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum State {
    /// As it should be.
    Ok,
    /// It works, but something is worth knowing.
    Warn,
    /// It will not work like this.
    Fail,
}

/// One thing that was looked at.
#[derive(Debug, Serialize)]
struct Check {
    name: &'static str,
    state: State,
    detail: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    advice: Option<String>,
}

impl Check {
    fn ok(name: &'static str, detail: impl Into<String>) -> Self {
        Self { name, state: State::Ok, detail: detail.into(), advice: None }
    }

    fn warn(name: &'static str, detail: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { name, state: State::Warn, detail: detail.into(), advice: Some(advice.into()) }
    }

    fn fail(name: &'static str, detail: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { name, state: State::Fail, detail: detail.into(), advice: Some(advice.into()) }
    }
}

/// Prints every check; 1 if one failed.
pub(crate) fn run(_: &Options, context: &Context) -> Result<u8, Failure> {
    let mut list = checks::home(context);
    list.push(checks::socket(&context.home));
    let (daemon, in_force) = daemon(context)?;
    list.push(checks::configuration(context, in_force.as_ref()));
    list.push(daemon);
    list.push(listener(context)?);
    list.extend(checks::callers(peer::is_exact(), confine::is_blind_to_landlock()));
    list.push(checks::reserve(&context.home));
    list.push(ledger(context)?);
    list.push(checks::cgroup(&context.home));
    list.push(clock::clock(&context.home, context.now()));
    list.push(journal::journal(&context.home, context.now()));
    list.push(service::service(context));
    list.push(checks::lingering(&context.surroundings));
    list.extend(checks::agents(context));
    list.extend(checks::wakes(context));
    list.extend(checks::hooks(context));
    let failed = list.iter().any(|check| check.state == State::Fail);
    if context.json {
        context.console.json(&serde_json::json!({ "ok": !failed, "checks": list }))?;
    } else {
        let text: String = list.iter().map(|check| render(check, &context.console)).collect();
        context.console.data(text.as_bytes())?;
    }
    Ok(if failed { exit_code::FAILED } else { exit_code::DONE })
}

/// Whether the daemon is well, and by which configuration it goes.
fn daemon(context: &Context) -> Result<(Check, Option<ConfigurationInfo>), Failure> {
    let client = context.quiet_client();
    let asked = context
        .block_on(async { Ok(tokio::time::timeout(Duration::from_secs(5), client.status()).await) })?;
    let mut in_force = None;
    let check = match asked {
        Ok(Ok(answer)) => {
            in_force = answer.configuration;
            well(&answer.daemon)
        }
        Ok(Err(error)) if error.is_nobody_there() => {
            Check::ok("daemon", "not running; the next command that needs it starts it")
        }
        Ok(Err(error)) => {
            let problem = error.into_problem();
            Check::fail("daemon", problem.detail, problem.advice)
        }
        Err(_) => {
            let problem =
                context.block_on(async { Ok(unresponsive_daemon::problem(&context.home).await) })?;
            let advice = format!("{} daemon.log in the home may say why.", problem.advice);
            Check::fail("daemon", problem.detail, advice)
        }
    };
    Ok((check, in_force))
}

fn well(daemon: &DaemonInfo) -> Check {
    match &daemon.degraded {
        Some(why) => Check::fail(
            "daemon",
            format!("it accepts nothing new: {why}"),
            "Mend that; running tasks are not affected.",
        ),
        None if daemon.version != env!("CARGO_PKG_VERSION") => Check::warn(
            "daemon",
            format!("version {} runs, this is {}", daemon.version, env!("CARGO_PKG_VERSION")),
            "`homing daemon restart` replaces it; tasks run on.",
        ),
        None if was_replaced(daemon.pid) => Check::warn(
            "daemon",
            format!("running, pid {}, from a file that was replaced since", daemon.pid),
            "`homing daemon restart` has the new one serve; tasks run on.",
        ),
        None if daemon.keeper_pid.is_none() => Check::warn(
            "daemon",
            format!("running, pid {}, without a keeper", daemon.pid),
            "One is started by itself in a moment; if this lasts, daemon.log says why.",
        ),
        None => Check::ok("daemon", format!("running, pid {}", daemon.pid)),
    }
}

/// Whether another file is by now where the daemon's program was: an upgrade that it does not know of.
fn was_replaced(pid: u32) -> bool {
    let program = std::fs::read_link(format!("/proc/{pid}/exe"));
    program.is_ok_and(|path| path.as_os_str().as_encoded_bytes().ends_with(b" (deleted)"))
}

/// Whether the loopback listener is open, and its token nobody else's.
fn listener(context: &Context) -> Result<Check, Failure> {
    const NAME: &str = "listener";
    if let Err(error) = token::read(&context.home) {
        let problem = Problem::from(error);
        return Ok(Check::fail(NAME, problem.detail, problem.advice));
    }
    let client = context.quiet_client();
    let asked = context
        .block_on(async { Ok(tokio::time::timeout(Duration::from_secs(5), client.listener()).await) })?;
    Ok(match asked {
        Ok(Ok(listener)) => match listener.problem {
            Some(why) => Check::fail(NAME, why, Code::ListenerFailed.advice()),
            None if listener.enabled => Check::ok(
                NAME,
                format!(
                    "open at {}; {} refused{}",
                    listener.addresses.join(", "),
                    listener.refused,
                    if checks::confined_are_served(context) {
                        "; `[confined] allow` serves sandboxes that can read the token"
                    } else {
                        "; a sandbox that shares the network is refused, unless it spends a code of `homing web` before the browser does (SECURITY.md)"
                    }
                ),
            ),
            None => Check::ok(NAME, "off"),
        },
        // Whoever does not answer is told of above.
        Ok(Err(_)) | Err(_) => Check::ok(NAME, "off while no daemon answers"),
    })
}

/// Whether the ledger knows the tasks whose folders are here: one that was deleted or replaced does not, and says nothing of it.
fn ledger(context: &Context) -> Result<Check, Failure> {
    let ids = checks::latest_folders(&context.home);
    let client = context.quiet_client();
    let unknown = context.block_on(async {
        let mut unknown = 0;
        for id in &ids {
            match tokio::time::timeout(Duration::from_secs(5), client.task(id.as_str())).await {
                Ok(Err(error)) if error.code() == Some(Code::UnknownTask) => unknown += 1,
                Ok(Err(error)) if error.is_nobody_there() => return Ok(None),
                Ok(_) => {}
                Err(_) => return Ok(None),
            }
        }
        Ok(Some(unknown))
    })?;
    Ok(checks::ledger(&context.home, unknown, ids.len()))
}

fn render(check: &Check, console: &Console) -> String {
    let (word, tint) = match check.state {
        State::Ok => ("ok  ", Tint::Green),
        State::Warn => ("warn", Tint::Yellow),
        State::Fail => ("fail", Tint::Red),
    };
    let width = console.width.unwrap_or(usize::MAX).saturating_sub(INDENT);
    let mut parts = columns::wrap(&homing_model::sanitize::line(&check.detail), width);
    parts.extend(check.advice.iter().flat_map(|advice| columns::wrap(&format!("next: {advice}"), width)));
    let mut out = String::new();
    for (index, part) in parts.iter().enumerate() {
        out.push_str(&match index {
            0 => format!("{}  {:<10}  {part}\n", console.tint(tint, word), check.name),
            _ => format!("{:INDENT$}{part}\n", ""),
        });
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_says_how_it_is_and_what_to_do() {
        let console = Console::plain(Some(80));
        assert_eq!(render(&Check::ok("home", "/h"), &console), "ok    home        /h\n");
        let text = render(&Check::fail("home", "not yours", "Choose another."), &console);
        assert_eq!(render(&Check::ok("filesystem", "ext4"), &console), "ok    filesystem  ext4\n");
        let narrow =
            render(&Check::warn("home", "far too long for it", "Make it short."), &Console::plain(Some(30)));
        assert!(narrow.lines().all(|line| line.len() <= 30), "{narrow}");
        assert_eq!(text, "fail  home        not yours\n                  next: Choose another.\n");
    }
}
