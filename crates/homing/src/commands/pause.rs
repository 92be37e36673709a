//! `homing pause`: let tasks stand still, whole trees of them.

use clap::Args;
use clap_complete::ArgValueCompleter;
use homing_api::PauseAnswer;
use homing_client::{Client, Error};
use homing_model::Status;
use tokio::task::JoinSet;

use crate::cli::completion;
use crate::cli::context::Context;
use crate::cli::exit_code::{self, Manner};
use crate::cli::failure::Failure;
use crate::cli::usage_wording;
use crate::render::symbol;

/// How many are asked for at once.
const AT_ONCE: usize = 64;

#[derive(Debug, Args)]
#[command(
    after_help = "The whole process tree stands still until `homing resume`, also through crashes of the daemon. \
It keeps its memory and its files. Time that it stands still does not count against `--timeout`, \
and is no silence for `--quiet-after`. `homing stop` ends a paused task like any other; `wait` \
and `exec` wait on.

Examples:
  homing pause @last
  homing pause build && homing resume build
  homing list --status paused"
)]
pub(crate) struct Options {
    /// Ids, starts of ids, names, or @last
    #[arg(value_name = "ID", required = true, value_parser = usage_wording::reference, add = ArgValueCompleter::new(completion::running_tasks))]
    ids: Vec<String>,
}

/// Pauses all of them at once, and tells of each in the order asked.
pub(crate) fn run(options: &Options, context: &Context) -> Result<u8, Failure> {
    all(&options.ids, Order::Pause, context)
}

/// What is asked of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// Stand still.
    Pause,
    /// Go on.
    Resume,
}

/// Gives all of them the order at once, and tells of each in the order asked.
pub(crate) fn all(ids: &[String], order: Order, context: &Context) -> Result<u8, Failure> {
    let answers = context.block_on(async {
        let client = context.client();
        let mut answers = Vec::new();
        for ids in ids.chunks(AT_ONCE) {
            answers.extend(some(&client, ids, order).await);
        }
        Ok(answers)
    })?;
    let mut code = exit_code::DONE;
    let mut done = Vec::new();
    for answer in answers {
        match answer {
            Ok(answer) => done.push(answer),
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
        context.console.json(&serde_json::json!({ "items": done }))?;
    } else {
        for answer in &done {
            context.console.line(&sentence(answer, order))?;
        }
    }
    Ok(code)
}

/// Each on a connection of its own; one that panicked or was cancelled counts as unanswered.
async fn some(client: &Client, ids: &[String], order: Order) -> Vec<Result<PauseAnswer, Error>> {
    let mut asking = JoinSet::new();
    for (index, id) in ids.iter().enumerate() {
        let (client, id) = (client.clone(), id.clone());
        asking.spawn(async move {
            let answer = match order {
                Order::Pause => client.pause(&id).await,
                Order::Resume => client.resume(&id).await,
            };
            (index, answer)
        });
    }
    let mut answers: Vec<_> = ids.iter().map(|_| Err(Error::NoAnswer)).collect();
    while let Some(joined) = asking.join_next().await {
        if let Ok((index, answer)) = joined {
            answers[index] = answer;
        }
    }
    answers
}

fn sentence(answer: &PauseAnswer, order: Order) -> String {
    let PauseAnswer { changed, task } = answer;
    let id = &task.id;
    match order {
        // It may have ended since it was done; how, is what counts.
        _ if task.status.is_terminal() => format!("{id} had already ended: {}", symbol::sentence(task)),
        Order::Pause if *changed => format!("{id} paused"),
        Order::Pause if task.status == Status::Paused => format!("{id} was paused before"),
        Order::Pause => format!("{id} goes on: somebody resumed it meanwhile"),
        Order::Resume if *changed => format!("{id} goes on"),
        Order::Resume => format!("{id} was not paused"),
    }
}
