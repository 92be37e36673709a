//! `homing progress`: a task says how far it is.

use clap::Args;
use clap_complete::ArgValueCompleter;
use homing_api::ProgressRequest;

use crate::cli::completion;
use crate::cli::context::Context;
use crate::cli::exit_code;
use crate::cli::failure::Failure;

#[derive(Debug, Args)]
#[command(
    after_help = "Called from inside a task; `list`, `show` and the events carry it. Only the task's owner says it \
(HOMING_OWNER, else `user`): for a task of another owner the answer is that there is no such \
task (HM0001).

Examples:
  homing progress 40 linking
  homing progress 12.5               only the number
  homing progress - 'warming up'     only the words"
)]
pub(crate) struct Options {
    /// Of a hundred; - if it cannot be told
    #[arg(value_name = "PERCENT", value_parser = percent, allow_hyphen_values = true)]
    percent: Percent,
    /// What it is at, in a few words
    #[arg(value_name = "TEXT")]
    text: Vec<String>,
    /// Which task [default: HOMING_TASK_ID, which is set inside a task]
    #[arg(long, value_name = "ID", add = ArgValueCompleter::new(completion::live_tasks))]
    task: Option<String>,
}

/// A number, or none.
#[derive(Debug, Clone, Copy)]
struct Percent(Option<f64>);

fn percent(text: &str) -> Result<Percent, String> {
    if text == "-" {
        return Ok(Percent(None));
    }
    let number: f64 = text.trim_end_matches('%').parse().map_err(|_| "write a number from 0 to 100, or -")?;
    if (0.0..=100.0).contains(&number) {
        Ok(Percent(Some(number)))
    } else {
        Err("write a number from 0 to 100, or -".to_owned())
    }
}

/// Says it.
pub(crate) fn run(options: &Options, context: &Context) -> Result<u8, Failure> {
    let inside = || context.surroundings.text("HOMING_TASK_ID").map(str::to_owned);
    let Some(task) = options.task.clone().or_else(inside) else {
        return Err(Failure::usage(
            "HOMING_TASK_ID is not set, so no task is named",
            "Name the task with `--task ID`. In a command that `homing run` started the variable is set, unless something unset it.",
        ));
    };
    let text = options.text.join(" ");
    let request = ProgressRequest { percent: options.percent.0, text: (!text.is_empty()).then_some(text) };
    let task = context.block_on(async { Ok(context.client().progress(&task, &request).await?) })?;
    if context.json {
        let said = serde_json::json!({ "id": task.id, "status": task.status, "progress": task.progress });
        context.console.json(&said)?;
    }
    Ok(exit_code::DONE)
}
