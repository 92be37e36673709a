//! `homing daemon`: the process that serves a home.

use std::time::Duration;

use clap::{Args, Subcommand};
use homing_client::Client;
use homing_model::api::StatusAnswer;
use homing_model::environment::DEFAULT_OWNER;
use homing_model::{Code, Problem};
use tokio::time::{Instant, sleep, timeout};

use super::status;
use crate::context::Context;
use crate::failure::Failure;
use crate::{autostart, entry, exit_code, home};

/// How long a daemon may take to answer or to leave.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Debug, Args)]
#[command(
    after_help = "It starts by itself with the first command that needs it, and comes back by itself when it
dies. Stopping it leaves tasks running; what ends meanwhile is recorded. After a stop it does not
come back by itself, but the next command that needs it starts it again.

Examples:
  homing daemon status               0 if it runs, 1 if not; never starts one
  homing daemon restart              after an upgrade; tasks run on
  homing daemon stop                 until the next command needs it
  homing daemon run                  in the foreground, for service managers"
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
    #[command(after_help = "Example:
  homing daemon restart              after an upgrade, or to read config.toml anew")]
    Restart,
    /// Say whether it runs, without starting it
    #[command(after_help = "Exit codes: 0 it runs, 1 it does not.

Example:
  homing daemon status --json | jq .daemon.pid")]
    Status,
    /// Serve in the foreground
    #[command(after_help = "Example:
  homing daemon run                  as the ExecStart of a service")]
    Run,
}

/// Does one of them.
pub(crate) fn run(options: &Options, context: &Context) -> Result<u8, Failure> {
    match options.what {
        What::Run => {
            let served = entry::run_daemon_in_foreground(&context.home)?;
            let well = served == std::process::ExitCode::SUCCESS;
            return Ok(if well { exit_code::DONE } else { exit_code::FAILED });
        }
        What::Start | What::Stop | What::Restart | What::Status => {}
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
            What::Restart => {
                // Before the stop: from here it could not be started again.
                refuse_inside_task(context)?;
                leave(&client, context).await?;
                start(context).await
            }
            What::Status => look(context).await,
            What::Run => Ok(exit_code::DONE),
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
    refuse_inside_task(context)?;
    let running = ask(context).await?.is_some();
    let deadline = Instant::now() + PATIENCE;
    let answer = loop {
        if !running {
            autostart::start(&context.home, context.console).await?;
        }
        if let Some(answer) = ask(context).await? {
            break answer;
        }
        // The last daemon no longer answers, and the keeper has not heard yet that it leaves: it is asked again.
        if Instant::now() >= deadline {
            let detail = format!("a daemon was started for {}, but nobody answers", context.home.display());
            return Err(Problem::new(Code::DaemonUnreachable, detail).into());
        }
        sleep(Duration::from_millis(10)).await;
    };
    if context.json {
        context.console.json(&answer)?;
    } else {
        let how = if running { "already runs" } else { "started" };
        context.console.line(&format!("{how}, pid {}", answer.daemon.pid))?;
    }
    tell_of_broken_configuration(context);
    Ok(exit_code::DONE)
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

/// Asks it to leave and waits until it has. False if there was none.
async fn leave(client: &Client, context: &Context) -> Result<bool, Failure> {
    match client.stop_daemon().await {
        Ok(()) => {}
        Err(error) if error.is_nobody_there() => return Ok(false),
        // It may have left before it could answer.
        Err(homing_client::Error::Broken(_)) => {}
        Err(error) => return Err(error.into()),
    }
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline {
        match timeout(PATIENCE, Client::new(&context.home, DEFAULT_OWNER).healthy()).await {
            Ok(Err(error)) if error.is_nobody_there() => return Ok(true),
            _ => sleep(Duration::from_millis(10)).await,
        }
    }
    let detail = format!("the daemon of {} was asked to leave and still answers", context.home.display());
    Err(Problem::new(Code::DaemonUnreachable, detail).into())
}

async fn look(context: &Context) -> Result<u8, Failure> {
    if let Some(answer) = ask(context).await? {
        status::print(&answer, context)?;
        return Ok(exit_code::DONE);
    }
    let usable = home::check(&context.home);
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
    match timeout(PATIENCE, context.quiet_client().status()).await {
        Ok(Ok(answer)) => Ok(Some(answer)),
        Ok(Err(error)) if error.is_nobody_there() => Ok(None),
        Ok(Err(error)) => Err(error.into()),
        Err(_) => Err(homing_client::Error::NoAnswer.into()),
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
