//! `homing wait`: block until tasks have ended.

use std::time::Duration;

use clap::Args;
use clap_complete::ArgValueCompleter;
use homing_agents::registry::is_session;
use homing_api::WaitAnswer;
use homing_client::{Client, Error, Mode, Purpose};
use homing_model::units::{self, show_duration};
use homing_model::{TaskId, foreign};
use tokio::time::{Instant, timeout};

use crate::cli::completion;
use crate::cli::context::Context;
use crate::cli::exit_code;
use crate::cli::failure::{Failure, heard};
use crate::cli::usage_wording;
use crate::render::symbol;
use crate::render::table;

/// The type of the notice that tells of an end.
const COMPLETED: &str = "task.completed";

/// How much longer than the time that was given it may take to find out who is meant.
const FINDING: Duration = Duration::from_secs(10);

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  homing wait @last                  returns the task's exit code
  homing wait t-k3m t-9xw            0 if both succeeded, else the code of the first that did not
  homing wait --any a b c            the code of the one that ended first
  homing wait --timeout 30s build    123 if it still runs then
  homing wait --ack @last            and take its result out of the inbox

Waiting is looking: the end stays in your inbox until you acknowledge it (--ack, `homing ack`, \
`homing inbox --ack`), since you may be elsewhere when it comes. To an agent's session that \
waits the answer is the hand-over, and its next call acknowledges it. In a shell that does not \
name the agent's session, --owner says whose tasks they are.

Exit codes: the task's own, 128+n for a signal, 121 lost, 122 stopped, 123 still running, 124 \
timed out, 125 homing failed, 126/127 could not be started.")]
pub(crate) struct Options {
    /// Ids, starts of ids, names, or @last
    #[arg(value_name = "ID", required = true, value_parser = usage_wording::reference, add = ArgValueCompleter::new(completion::tasks))]
    ids: Vec<String>,
    /// Until one of them has ended
    #[arg(long)]
    any: bool,
    /// No longer than this; 123 if it was not enough
    #[arg(long, value_name = "D", allow_hyphen_values = true, value_parser = units::duration)]
    timeout: Option<Duration>,
    /// Acknowledge the ends of your tasks, once they are printed
    #[arg(long)]
    ack: bool,
    /// Whose tasks they are [default: HOMING_OWNER, the agent session, or user]
    #[arg(long, value_parser = usage_wording::owner)]
    owner: Option<String>,
}

/// Waits, and tells of each task.
pub(crate) fn run(options: &Options, context: &Context) -> Result<u8, Failure> {
    let owner = options.owner.clone().unwrap_or_else(|| context.owner());
    let client = context.client_for(&owner).patient_for_task();
    // What is printed delivers the ends to an agent; a person at a terminal may be elsewhere when they come.
    let delivers = !options.ack && is_session(&owner);
    let answer = context.block_on(async {
        let began = Instant::now();
        let meant = meant(&client, &options.ids);
        // To find out who is meant is part of the time, and may begin with the start of a daemon.
        let ids = match options.timeout.and_then(|limit| limit.checked_add(FINDING)) {
            Some(limit) => timeout(limit, meant).await.map_err(|_| Error::NoAnswer)??,
            None => meant.await?,
        };
        let left = options.timeout.map(|limit| limit.saturating_sub(began.elapsed()));
        let mode = if options.any { Mode::Any } else { Mode::All };
        let purpose = if delivers { Purpose::Reserve } else { Purpose::Look };
        Ok(client.wait_for(&ids, mode, left, purpose).await?)
    })?;
    let code = if options.any { exit_code::of_any(&answer) } else { exit_code::of_all(&answer) };
    let mut read = true;
    if context.json {
        read &= heard(context.console.json(&answer))?;
    }
    for task in answer.items.iter().filter(|_| !context.json) {
        let took =
            table::running_time(task, context.now()).map(|took| format!(" after {}", show_duration(took)));
        let line = format!("{} {}{}", task.id, symbol::sentence(task), took.unwrap_or_default());
        read &= heard(context.console.line(&line))?;
    }
    if !answer.done && !context.json {
        context.console.note("homing: still running, which is no error; `homing wait` again goes on waiting");
    }
    let ended: Vec<_> = answer.items.iter().filter(|task| task.status.is_terminal()).collect();
    if delivers && read && !ended.is_empty() {
        let ended: Vec<_> = ended.into_iter().map(|task| task.id.clone()).collect();
        // Where nobody can be reached any more the entries stay, which loses nothing.
        context.block_on(async {
            let _ = client.mark_delivered(&ended).await;
            Ok(())
        })?;
    }
    // What nobody read is not dealt with.
    if options.ack && read {
        context.block_on(acknowledge(context, &client, &owner, &answer))?;
    }
    Ok(code)
}

/// The tasks that these words mean.
async fn meant(client: &Client, words: &[String]) -> Result<Vec<TaskId>, Failure> {
    let mut ids = Vec::with_capacity(words.len());
    for id in words {
        ids.push(client.task(id).await.map_err(|error| usage_wording::refused("wait", id, error))?.id);
    }
    Ok(ids)
}

/// The ends that were printed are dealt with; what else was told of these tasks, or is somebody else's, is not.
async fn acknowledge(
    context: &Context,
    client: &Client,
    owner: &str,
    answer: &WaitAnswer,
) -> Result<(), Failure> {
    for task in answer.items.iter().filter(|task| task.status.is_terminal()) {
        let (id, theirs) = (&task.id, foreign::one_line(&task.owner));
        if task.owner != owner {
            context.console.note(&format!(
                "homing: {id} is not yours, so its result stays in the inbox; `homing ack --owner {theirs} {id}` takes it out"
            ));
            continue;
        }
        let notices = client.detail(id.as_str()).await?.notices;
        let ends = notices.into_iter().filter(|notice| notice.kind.as_deref() == Some(COMPLETED));
        let ends: Vec<_> = ends.map(|notice| notice.id.to_string()).collect();
        if !ends.is_empty() {
            client.acknowledge(owner, ends).await?;
        }
    }
    Ok(())
}
