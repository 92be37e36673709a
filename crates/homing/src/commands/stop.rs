//! `homing stop`: end tasks, whole trees of them.
//!
//! A session of an agent that stops a task of its own is told of the end by what is printed, and that is said once it is out: a command that dies or
//! cannot print before has told nobody, and the entry stays in the inbox (P5). In between nobody else tells it (P6).

use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use clap::Args;
use clap_complete::{ArgValueCandidates, ArgValueCompleter};
use homing_agents::registry::is_session;
use homing_api::{Code, StopAnswer, StopRequest};
use homing_client::{Client, Error};
use homing_model::units;
use homing_model::units::millis;
use homing_model::{Kind, Task, TaskId, unsure};
use homing_sys::process;
use tokio::task::JoinSet;

use crate::cli::completion;
use crate::cli::context::Context;
use crate::cli::exit_code;
use crate::cli::failure::Failure;
use crate::cli::usage_wording;
use crate::daemon_control::survivors;
use crate::render::symbol;

/// How many are stopped at once.
const AT_ONCE: usize = 64;

#[derive(Debug, Args)]
#[command(
    after_help = "First a polite signal, then, after the grace, the last one. Returns when everything is gone; \
with 1 if the task cannot be ended, and says who is in the way. Of a task that has ended it ends \
what was left behind.

Examples:
  homing stop @last
  homing stop --grace 30s build      more time to tidy up
  homing stop --signal INT web       as Ctrl-C would
  homing stop --grace 0s t-k3m       at once"
)]
pub(crate) struct Options {
    /// Ids, starts of ids, names, or @last
    #[arg(value_name = "ID", required = true, value_parser = usage_wording::reference, add = ArgValueCompleter::new(completion::live_tasks))]
    ids: Vec<String>,
    /// Between the polite signal and the last one [default: the task's, 5s]
    #[arg(long, value_name = "D", allow_hyphen_values = true, value_parser = units::duration)]
    grace: Option<Duration>,
    /// The polite signal [default: TERM]
    #[arg(long, value_name = "S", value_parser = usage_wording::signal, add = ArgValueCandidates::new(completion::signals))]
    signal: Option<String>,
}

/// Stops all of them at once, and tells of each in the order asked.
pub(crate) fn run(options: &Options, context: &Context) -> Result<u8, Failure> {
    let owner = context.owner();
    let request = StopRequest {
        grace_ms: options.grace.map(millis),
        signal: options.signal.clone(),
        by: Some(owner.clone()),
        wait: true,
    };
    let client = context.client_for(&owner).patient_for_task();
    let answers = context.block_on(async {
        let mut answers = Vec::new();
        for ids in options.ids.chunks(AT_ONCE) {
            answers.extend(stop_all(&client, ids, &request).await);
        }
        Ok(answers)
    })?;
    let mut code = exit_code::DONE;
    let (mut stopped, mut told) = (Vec::new(), Vec::new());
    for answer in answers {
        match answer {
            Ok((answer, left)) => {
                if answer.stopping && answer.task.kind == Kind::External {
                    let id = &answer.task.id;
                    context
                        .console
                        .note(&format!("homing: whoever runs {id} is told so at the next heartbeat"));
                }
                if answer.stopping && !answer.task.status.is_terminal() {
                    context.console.note(&in_the_way(&answer.task));
                    code = code.max(exit_code::FAILED);
                }
                told.push(sentence(&answer, left));
                stopped.push(answer);
            }
            Err(error) => context.one_failed(error, &mut code),
        }
    }
    if context.json {
        let items = serde_json::json!({ "items": stopped });
        context.console.json(&items)?;
    } else {
        for line in &told {
            context.console.line(line)?;
        }
    }
    if is_session(&owner) {
        let own = |answer: &&StopAnswer| answer.task.status.is_terminal() && answer.task.owner == owner;
        let ended: Vec<_> = stopped.iter().filter(own).map(|answer| answer.task.id.clone()).collect();
        context.block_on(async {
            mark_delivered(&client, &ended).await;
            Ok(())
        })?;
    }
    Ok(code)
}

/// They were printed, so they are delivered. Each for itself: the task that this runs in, say, may be refused.
async fn mark_delivered(client: &Client, ended: &[TaskId]) {
    for id in ended {
        // Where nobody can be reached any more the entries stay, which loses nothing.
        if client.mark_delivered(std::slice::from_ref(id)).await.is_err_and(|error| error.is_disconnect()) {
            return;
        }
    }
}

/// An answer, and how many processes a task that had ended before still had.
type Stopped = Result<(StopAnswer, usize), Error>;

/// Each on a connection of its own; a stop that panicked or was cancelled counts as unanswered.
async fn stop_all(client: &Client, ids: &[String], request: &StopRequest) -> Vec<Stopped> {
    let mut stopping = JoinSet::new();
    for (index, id) in ids.iter().enumerate() {
        let (client, id, request) = (client.clone(), id.clone(), request.clone());
        stopping.spawn(async move { (index, stop(&client, &id, &request).await) });
    }
    let mut answers: Vec<_> = ids.iter().map(|_| Err(Error::NoAnswer)).collect();
    while let Some(joined) = stopping.join_next().await {
        if let Ok((index, answer)) = joined {
            answers[index] = answer;
        }
    }
    answers
}

/// Looks before it stops: afterwards nobody can say what was left of an ended task.
async fn stop(client: &Client, id: &str, request: &StopRequest) -> Stopped {
    let task = match client.task(id).await {
        // Who may not even look is told why it may not stop.
        Err(error) if error.code() == Some(Code::NestedForeign) => {
            return Ok((client.stop_reserving(id, request).await?, 0));
        }
        looked => looked?,
    };
    let left = survivors::count(&task);
    // What is too little to stop a task by is the daemon's to refuse.
    let target = if unsure::is_little(id) { id } else { task.id.as_str() };
    let answer = client.stop_reserving(target, request).await?;
    Ok((answer, left))
}

fn sentence(answer: &StopAnswer, left: usize) -> String {
    let task = &answer.task;
    if !answer.stopping && task.status.is_terminal() {
        let left = match left {
            0 => String::new(),
            1 => "; 1 left-over process was told to end".to_owned(),
            left => format!("; {left} left-over processes were told to end"),
        };
        return format!("{} had already ended: {}{left}", task.id, symbol::sentence(task));
    }
    let mut text = format!("{} {}", task.id, symbol::sentence(task));
    if let Some(outcome) = &task.outcome
        && !outcome.survivors.is_empty()
    {
        let left: Vec<_> =
            outcome.survivors.iter().map(|left| format!("{} ({})", left.name, left.pid)).collect();
        text.push_str(&format!(
            "; could not be ended: {}",
            homing_model::foreign::one_line(&left.join(", "))
        ));
    }
    text
}

/// Why a task is still there after all the time that a stop may take.
fn in_the_way(task: &Task) -> String {
    let id = &task.id;
    let main = task.pid.and_then(process::stat).filter(|main| !main.zombie);
    let Some(main) = main else {
        return format!("homing: {id} has not ended yet\n  next: `homing wait {id}` returns when it has.");
    };
    let whose = std::fs::metadata(format!("/proc/{}", main.pid)).map(|of| of.uid());
    let whose = match whose {
        Ok(user) if user != rustix::process::geteuid().as_raw() => format!(", of user {user}"),
        Ok(_) | Err(_) => String::new(),
    };
    let (name, pid) = (homing_model::foreign::one_line(&main.name), main.pid);
    format!(
        "homing: {id} has not ended: its process {pid} ({name}{whose}) could not be ended
  next: End that yourself, with the rights that it takes. The last signal is sent to it again and again; `homing wait {id}` returns when it is gone."
    )
}

#[cfg(test)]
mod tests {
    use homing_client::fake::{Fake, Reply, sample_task};

    use super::*;

    #[tokio::test]
    async fn many_are_stopped_at_once_and_told_in_order() {
        let home = tempfile::tempdir().unwrap();
        let fake = Fake::serve(home.path(), |request| match request.target.as_str() {
            "/v1/tasks/two" => Reply::problem(&homing_api::Problem::new(Code::UnknownTask, "no task `two`")),
            "/v1/tasks/t-bcdfghjkmn/stop?reserve=true" => Reply::json(
                200,
                serde_json::json!({ "stopping": true, "task": sample_task("stopped") }).to_string(),
            ),
            _ => Reply::json(200, sample_task("running").to_string()),
        });
        let client = Client::new(home.path(), "u");
        let ids = ["one", "two", "three"].map(str::to_owned);
        let request = StopRequest { wait: true, ..StopRequest::default() };
        let answers = stop_all(&client, &ids, &request).await;
        assert!(answers[0].is_ok() && answers[1].is_err() && answers[2].is_ok());
        assert_eq!(fake.connections(), 3);
    }

    #[test]
    fn an_end_that_came_before_is_told_as_such() {
        let task = serde_json::from_value(sample_task("succeeded")).unwrap();
        let answer = StopAnswer { stopping: false, task };
        let ended = "t-bcdfghjkmn had already ended: succeeded";
        assert_eq!(sentence(&answer, 0), ended);
        assert_eq!(sentence(&answer, 1), format!("{ended}; 1 left-over process was told to end"));
        assert_eq!(sentence(&answer, 2), format!("{ended}; 2 left-over processes were told to end"));
    }
}
