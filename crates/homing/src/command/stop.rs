//! `homing stop`: end tasks, whole trees of them.

use std::time::Duration;

use clap::Args;
use clap_complete::ArgValueCompleter;
use homing_client::{Client, Error};
use homing_model::api::{StopAnswer, StopRequest};
use homing_model::units;
use tokio::task::JoinSet;

use crate::context::Context;
use crate::exit_code::{self, Manner};
use crate::failure::Failure;
use crate::submission::millis;
use crate::{completion, symbol};

/// How many are stopped at once.
const AT_ONCE: usize = 64;

/// End tasks, the whole process tree
#[derive(Debug, Args)]
#[command(
    after_help = "First a polite signal, then, after the grace, the last one. Returns when everything is gone.

Examples:
  homing stop @last
  homing stop --grace 30s build      more time to tidy up
  homing stop --signal INT web       as Ctrl-C would
  homing stop --grace 0s t-k3m       at once"
)]
pub(crate) struct Options {
    /// Ids, starts of ids, names, or @last
    #[arg(value_name = "ID", required = true, add = ArgValueCompleter::new(completion::live_tasks))]
    ids: Vec<String>,
    /// Between the polite signal and the last one [default: the task's, 5s]
    #[arg(long, value_name = "D", value_parser = units::duration)]
    grace: Option<Duration>,
    /// The polite signal [default: TERM]
    #[arg(long, value_name = "S")]
    signal: Option<String>,
}

/// Stops all of them at once, and tells of each in the order asked.
pub(crate) fn run(options: &Options, context: &Context) -> Result<u8, Failure> {
    let request = StopRequest {
        grace_ms: options.grace.map(millis),
        signal: options.signal.clone(),
        by: Some(context.owner()),
        wait: true,
    };
    let answers = context.block_on(async {
        let client = context.client();
        let mut answers = Vec::new();
        for ids in options.ids.chunks(AT_ONCE) {
            answers.extend(stop_all(&client, ids, &request).await);
        }
        Ok(answers)
    })?;
    let mut code = exit_code::DONE;
    let mut stopped = Vec::new();
    for answer in answers {
        match answer {
            Ok(answer) => stopped.push(answer),
            Err(error) => {
                let problem = error.into_problem();
                context.report(&problem);
                if code == exit_code::DONE {
                    code = exit_code::of_problem(Manner::Plain, &problem);
                }
            }
        }
    }
    if context.json {
        let items = serde_json::json!({ "items": stopped });
        context.console.json(&items)?;
    } else {
        for answer in &stopped {
            context.console.line(&sentence(answer))?;
        }
    }
    Ok(code)
}

/// Each on a connection of its own; a stop that panicked or was cancelled counts as unanswered.
async fn stop_all(client: &Client, ids: &[String], request: &StopRequest) -> Vec<Result<StopAnswer, Error>> {
    let mut stopping = JoinSet::new();
    for (index, id) in ids.iter().enumerate() {
        let (client, id, request) = (client.clone(), id.clone(), request.clone());
        stopping.spawn(async move { (index, client.stop(&id, &request).await) });
    }
    let mut answers: Vec<_> = ids.iter().map(|_| Err(Error::NoAnswer)).collect();
    while let Some(joined) = stopping.join_next().await {
        if let Ok((index, answer)) = joined {
            answers[index] = answer;
        }
    }
    answers
}

fn sentence(answer: &StopAnswer) -> String {
    let task = &answer.task;
    if !answer.stopping && task.status.is_terminal() {
        return format!("{} had already ended: {}", task.id, symbol::sentence(task));
    }
    let mut text = format!("{} {}", task.id, symbol::sentence(task));
    if let Some(outcome) = &task.outcome
        && !outcome.survivors.is_empty()
    {
        let left: Vec<_> =
            outcome.survivors.iter().map(|left| format!("{} ({})", left.name, left.pid)).collect();
        text.push_str(&format!("; could not be ended: {}", homing_model::sanitize::line(&left.join(", "))));
    }
    text
}

#[cfg(test)]
mod tests {
    use homing_client::fake::{Fake, Reply, sample_task};

    use super::*;

    #[tokio::test]
    async fn many_are_stopped_at_once_and_told_in_order() {
        let home = tempfile::tempdir().unwrap();
        let fake = Fake::serve(home.path(), |request| match request.target.as_str() {
            "/v1/tasks/b/stop" => {
                Reply::problem(&homing_model::Problem::new(homing_model::Code::UnknownTask, "no task `b`"))
            }
            _ => Reply::json(
                200,
                serde_json::json!({ "stopping": true, "task": sample_task("stopped") }).to_string(),
            ),
        });
        let client = Client::new(home.path(), "u");
        let ids = ["a", "b", "c"].map(str::to_owned);
        let request = StopRequest { wait: true, ..StopRequest::default() };
        let answers = stop_all(&client, &ids, &request).await;
        assert!(answers[0].is_ok() && answers[1].is_err() && answers[2].is_ok());
        assert_eq!(fake.connections(), 3);
    }

    #[test]
    fn an_end_that_came_before_is_told_as_such() {
        let task = serde_json::from_value(sample_task("succeeded")).unwrap();
        let text = sentence(&StopAnswer { stopping: false, task });
        assert_eq!(text, "t-bcdfghjkmn had already ended: succeeded");
    }
}
