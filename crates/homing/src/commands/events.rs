//! `homing events`: the event log as JSON lines.

use clap::Args;
use homing_client::{EventQuery, Record};

use crate::cli::context::Context;
use crate::cli::exit_code;
use crate::cli::failure::Failure;
use crate::cli::usage_wording;
use crate::terminal::stdout_closed::Audience;

#[derive(Debug, Args)]
#[command(
    after_help = "Where the log no longer reaches back to SEQ, -f prints one line of the type `reset` with the \
tasks as they are (`tasks`, live ones first) and the cursor to go on from (`seq`), and goes on.

Examples:
  homing events                      all that is kept
  homing events -f                   and what follows, through restarts
  homing events --after 42 --owner me
  homing events -f | jq -r 'select(.type == \"task.completed\") | .task_id'"
)]
pub(crate) struct Options {
    /// Go on for ever
    #[arg(long, short = 'f')]
    follow: bool,
    /// Only events after this one
    #[arg(long, value_name = "SEQ", default_value = "0", hide_default_value = true, allow_negative_numbers = true, value_parser = usage_wording::whole)]
    after: u64,
    /// Only of this owner
    #[arg(long, value_parser = usage_wording::owner)]
    owner: Option<String>,
}

/// Prints the log.
pub(crate) fn run(options: &Options, context: &Context) -> Result<u8, Failure> {
    let client = context.client();
    let query = EventQuery { after: options.after, owner: options.owner.clone(), kinds: Vec::new() };
    context.block_on(async {
        if !options.follow {
            let mut log = client.events(&query).await?;
            if let Some(trimmed_to) = log.trimmed_to() {
                context.console.note(&format!("homing: events up to {trimmed_to} are no longer kept"));
            }
            let mut rest = Vec::new();
            while let Some(bytes) = log.next().await? {
                rest.extend_from_slice(&bytes);
                // A piece may end anywhere; what is shown is whole lines.
                let Some(end) = rest.iter().rposition(|byte| *byte == b'\n') else { continue };
                let lines: Vec<u8> = rest.drain(..=end).collect();
                context.console.json_text(String::from_utf8_lossy(&lines[..end]).as_ref())?;
            }
            return Ok(exit_code::DONE);
        }
        let mut stream = client.patient().follow_events(query);
        let audience = Audience::new();
        loop {
            match audience.while_there(stream.next()).await? {
                Record::Event { json, .. } | Record::Reset { json, .. } => {
                    context.console.json_text(&json)?;
                }
            }
        }
    })
}
