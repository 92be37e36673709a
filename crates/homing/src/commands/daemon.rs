//! `homing daemon`: the process that serves a home.

pub(crate) mod install;
mod renewal;
mod service;
pub(crate) mod unit;

use std::time::Duration;

use clap::{Args, Subcommand};
use homing_api::{Code, Problem, StatusAnswer};
use homing_client::Client;
use homing_model::environment::DEFAULT_OWNER;
use homing_sys::process::{self, Process};
use tokio::time::{Instant, sleep, timeout};

use super::status;
use crate::cli::context::Context;
use crate::cli::entry;
use crate::cli::exit_code;
use crate::cli::failure::Failure;
use crate::daemon_control::autostart;
use crate::daemon_control::unresponsive_daemon;
use crate::options::home;

/// How long a daemon may take to answer or to leave.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Debug, Args)]
#[command(
    after_help = "It starts by itself with the first command that needs it, and comes back by itself when it dies. \
Stopping it leaves tasks running; what ends meanwhile is recorded. After a stop it does not come \
back by itself, but the next command that needs it starts it again.

Examples:
  homing daemon status               0 if it runs, 1 if not; never starts one
  homing daemon restart              after an upgrade; tasks run on
  homing daemon stop                 until the next command needs it
  homing daemon run                  in the foreground, for whoever wants to look at it
  homing daemon install              as a service of the user, by systemd"
)]
pub(crate) struct Options {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Clone, Copy, Subcommand)]
enum What {
    /// Start it if it does not run
    #[command(after_help = "Example:
  homing daemon start                says why, if it cannot")]
    Start,
    /// Stop it; tasks run on
    #[command(after_help = "It does not come back by itself; the next command that needs it starts it again.

Example:
  homing daemon stop && homing daemon status")]
    Stop,
    /// Stop and start it; tasks run on
    #[command(
        after_help = "The next one is this program, whichever the last one was. A changed config.toml needs no restart.

Example:
  homing daemon restart              after an upgrade"
    )]
    Restart,
    /// Say whether it runs, without starting it
    #[command(after_help = "Exit codes: 0 it runs, 1 it does not.

Example:
  homing daemon status --json | jq .running")]
    Status,
    /// Serve in the foreground
    #[command(
        after_help = "It serves until Ctrl-C, which is a stop on purpose. With --service it watches over a daemon in \
the background instead, which its keeper restarts at once when it dies: for service managers, \
which then restart nothing but this watch. It ends well when the daemon is stopped, and stops it \
when it is told to end.

HOMING_LOG says what is logged: a level, or levels by module, such as info,homing_store=debug.

Examples:
  homing daemon run
  homing daemon run --service        as the ExecStart of a service; `daemon install` writes one"
    )]
    Run(Run),
    /// Install it as a service of the user
    Install(install::Options),
}

#[derive(Debug, Clone, Copy, Args)]
struct Run {
    /// Watch over a daemon in the background, for a service manager
    #[arg(long)]
    service: bool,
}

/// Does one of them.
pub(crate) fn run(options: &Options, context: &Context) -> Result<u8, Failure> {
    match options.what {
        What::Install(options) => return install::run(options, context),
        What::Run(Run { service: false }) => {
            return Ok(entry::run_daemon_in_foreground(&context.home)?);
        }
        What::Run(_) | What::Start | What::Stop | What::Restart | What::Status => {}
    }
    let client = context.quiet_client();
    context.block_on(async {
        match options.what {
            What::Start => start(context).await,
            What::Stop => {
                let was = stop(&client, context).await?;
                let text = if was {
                    "stopped until a command needs it; tasks run on"
                } else {
                    "no daemon was running; none comes back until a command needs it"
                };
                say(context, &serde_json::json!({ "running": false, "was_running": was }), text)
            }
            What::Restart => renewal::run(context).await,
            What::Status => look(context).await,
            What::Run(_) => service::run(context).await,
            What::Install(_) => Ok(exit_code::DONE),
        }
    })
}

fn refuse_inside_task(context: &Context) -> Result<(), Failure> {
    if entry::inside_task() {
        let detail = format!("no daemon is started for {} from inside a task", context.home.display());
        return Err(Problem::new(Code::NestedStart, detail).into());
    }
    Ok(())
}

async fn start(context: &Context) -> Result<u8, Failure> {
    let running = ask(context).await?;
    let how = if running.is_some() { "already runs" } else { "started" };
    let answer = match running {
        Some(answer) => answer,
        None => {
            refuse_inside_task(context)?;
            begin(context).await?
        }
    };
    if context.json {
        context.console.json(&running_now(&answer))?;
    } else {
        context.console.line(&format!("{how}, pid {}", answer.daemon.pid))?;
    }
    tell_of_broken_configuration(context);
    Ok(exit_code::DONE)
}

/// Its status, with the word that it runs: so whoever asks looks at one field, whatever the answer.
fn running_now(answer: &StatusAnswer) -> serde_json::Value {
    let mut value = serde_json::to_value(answer).unwrap_or_default();
    if let Some(fields) = value.as_object_mut() {
        fields.insert("running".to_owned(), true.into());
    }
    value
}

/// Has one started, and waits until it answers.
async fn begin(context: &Context) -> Result<StatusAnswer, Failure> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        autostart::start(&context.home, context.console).await?;
        if let Some(answer) = ask(context).await? {
            return Ok(answer);
        }
        // The last daemon no longer answers, and the keeper has not heard yet that it leaves: it is asked again.
        if Instant::now() >= deadline {
            let detail = format!("a daemon was started for {}, but nobody answers", context.home.display());
            return Err(Problem::new(Code::DaemonUnreachable, detail).into());
        }
        sleep(Duration::from_millis(10)).await;
    }
}

/// A daemon that starts in spite of a broken file goes by the last good one, which nobody would notice.
fn tell_of_broken_configuration(context: &Context) {
    let path = home::configuration(context.home_flag.as_deref(), &context.surroundings);
    if let Err(mut problem) = path.and_then(|path| entry::effective_configuration(&path)) {
        problem.detail =
            format!("the configuration is broken, the last good one is in force: {}", problem.detail);
        context.report(&problem);
    }
}

/// Stops it, and whichever may be on its way: one that died is started again by the keeper, after a pause. False if there was none.
async fn stop(client: &Client, context: &Context) -> Result<bool, Failure> {
    if leave(client, context).await? {
        return Ok(true);
    }
    match std::fs::write(context.home.join(home::STOPPED), b"") {
        Ok(()) => {}
        // There is no home, and so nothing that could start a daemon for it.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(home::unusable(&context.home, &error).into()),
    }
    // One that looked for the mark before it was there listens by now.
    leave(client, context).await
}

/// Asks it to leave and waits until it has, to the last of it: whoever stopped it may remove or copy the home. False if there was none.
async fn leave(client: &Client, context: &Context) -> Result<bool, Failure> {
    let daemon = client.listener_pid().await.and_then(process::stat);
    match timeout(PATIENCE, client.stop_daemon()).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) if error.is_nobody_there() => return Ok(false),
        // It may have left before it could answer.
        Ok(Err(homing_client::Error::Broken(_))) => {}
        Ok(Err(error)) => return Err(error.into()),
        Err(_) => return Err(unresponsive_daemon::problem(&context.home).await.into()),
    }
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline {
        match timeout(PATIENCE, Client::new(&context.home, DEFAULT_OWNER).healthy()).await {
            Ok(Err(error)) if error.is_nobody_there() && daemon.as_ref().is_none_or(is_over) => {
                return Ok(true);
            }
            // It has left, and whoever asked for one meanwhile has another.
            Ok(Ok(())) if daemon.as_ref().is_some_and(|daemon| !lives(daemon)) => return Ok(true),
            _ => sleep(Duration::from_millis(10)).await,
        }
    }
    let detail = format!("the daemon of {} was asked to leave and still answers", context.home.display());
    Err(Problem::new(Code::DaemonUnreachable, detail).into())
}

/// Whether it is still the process that it was, and not only waited for.
fn lives(one: &Process) -> bool {
    process::stat(one.pid).is_some_and(|now| now.start == one.start && !now.zombie)
}

/// Whether a process is gone, and the keeper that it was the child of as well, unless that has other children to keep.
fn is_over(daemon: &Process) -> bool {
    if lives(daemon) {
        return false;
    }
    let keeper = process::stat(daemon.parent).filter(|keeper| keeper.name == "homing-keeper");
    // A kernel that does not tell of children leaves it open.
    let keeps = |pid: u32| {
        std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).map_or(true, |children| {
            let mut pids = children.split_whitespace().filter_map(|pid| pid.parse().ok());
            pids.any(|pid| process::stat(pid).is_some_and(|child| !child.zombie))
        })
    };
    keeper.is_none_or(|keeper| !lives(&keeper) || keeps(keeper.pid))
}

async fn look(context: &Context) -> Result<u8, Failure> {
    let usable = home::check(&context.home);
    let answer = if usable.is_ok() { ask(context).await? } else { None };
    match answer {
        Some(answer) if context.json => {
            context.console.json(&running_now(&answer))?;
            return Ok(exit_code::DONE);
        }
        Some(answer) => {
            status::print(&answer, context)?;
            return Ok(exit_code::DONE);
        }
        None => {}
    }
    let stopped = autostart::is_stopped(&context.home);
    let why = match &usable {
        Err(_) => "not running, and cannot run in this home",
        Ok(()) if stopped => {
            "stopped; it does not come back by itself, but the next command that needs it starts it again"
        }
        Ok(()) => "not running; the next command that needs it starts it",
    };
    say(
        context,
        &serde_json::json!({ "running": false, "stopped": stopped, "home": context.home.display().to_string() }),
        why,
    )?;
    usable?;
    Ok(exit_code::FAILED)
}

/// The status, or none if nobody is there. One that does not answer is an error. By a client of its own each time: one that has talked to a
/// daemon before waits for seconds until that is back.
async fn ask(context: &Context) -> Result<Option<StatusAnswer>, Failure> {
    match timeout(PATIENCE, context.quiet_client().nameless().status()).await {
        Ok(Ok(answer)) => Ok(Some(answer)),
        Ok(Err(error)) if error.is_nobody_there() => Ok(None),
        Ok(Err(error)) => Err(error.into()),
        Err(_) => Err(unresponsive_daemon::problem(&context.home).await.into()),
    }
}

fn say(context: &Context, json: &serde_json::Value, text: &str) -> Result<u8, Failure> {
    if context.json {
        context.console.json(json)?;
    } else {
        context.console.line(text)?;
    }
    Ok(exit_code::DONE)
}
