//! `homing complete`: somebody says how an external task ended.

use std::io::Read;

use clap::Args;
use clap_complete::ArgValueCompleter;
use homing_api::{CompleteAnswer, CompleteRequest};
use homing_model::answer::LONGEST;

use crate::cli::completion;
use crate::cli::context::Context;
use crate::cli::exit_code;
use crate::cli::failure::Failure;
use crate::cli::usage_wording;
use crate::render::symbol;

#[derive(Debug, Args)]
#[command(
    after_help = "Only for what `homing track` gave. The first completion counts; a later one says so, changes \
nothing, and returns 0 too, as `homing stop` does. Another owner's task is told as unknown.

Examples:
  homing complete @last --answer 'two findings'
  homing complete review --failed --answer 'out of memory'
  ./review.sh | homing complete review --answer -"
)]
pub(crate) struct Options {
    /// Id, start of one, name, or @last
    #[arg(value_name = "ID", value_parser = usage_wording::reference, add = ArgValueCompleter::new(completion::live_tasks))]
    id: String,
    /// What came of it, at most 256KiB; - reads it from stdin
    #[arg(long, value_name = "T", allow_hyphen_values = true)]
    answer: Option<String>,
    /// It did not succeed; the answer says why
    #[arg(long)]
    failed: bool,
    /// Whose task it is [default: HOMING_OWNER, the agent session, or user]
    #[arg(long, value_parser = usage_wording::owner)]
    owner: Option<String>,
}

/// Completes it, and tells what became of that.
pub(crate) fn run(options: &Options, context: &Context) -> Result<u8, Failure> {
    let answer = match options.answer.as_deref() {
        Some("-") => Some(stdin()?),
        other => other.map(str::to_owned),
    };
    if answer.as_ref().is_some_and(|answer| answer.len() > LONGEST) {
        return Err(Failure::usage(
            "the answer is longer than 256KiB",
            "Put it into a file and answer with its name.",
        ));
    }
    let owner = options.owner.clone().unwrap_or_else(|| context.owner());
    let client = context.client_for(&owner).patient_for_task();
    let request = CompleteRequest { answer, failed: options.failed, owner: None };
    let answer = context.block_on(async { Ok(client.complete(&options.id, &request).await?) })?;
    if !answer.completed {
        context.console.note("homing: it had already ended; this completion changed nothing");
    }
    if context.json {
        context.console.json(&answer)?;
    } else {
        context.console.line(&sentence(&answer))?;
    }
    Ok(exit_code::DONE)
}

fn sentence(answer: &CompleteAnswer) -> String {
    let (id, ended) = (&answer.task.id, symbol::sentence(&answer.task));
    if answer.completed { format!("{id} {ended}") } else { format!("{id} had already ended: {ended}") }
}

fn stdin() -> Result<String, Failure> {
    let mut bytes = Vec::new();
    // One more than is taken, so that too much is seen as that.
    let most = u64::try_from(LONGEST).unwrap_or(u64::MAX).saturating_add(1);
    std::io::stdin().lock().take(most).read_to_end(&mut bytes).map_err(|error| {
        Failure::usage(
            format!("the answer cannot be read from stdin: {error}"),
            "Give it as `--answer TEXT`.",
        )
    })?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
