//! `homing input`: write to a task's stdin or terminal.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::os::unix::ffi::OsStringExt;
use std::pin::pin;
use std::time::Duration;

use bytes::Bytes;
use clap::Args;
use clap_complete::ArgValueCompleter;
use homing_api::{Code, InputAnswer, Problem};
use homing_client::Error;
use homing_model::unsure;
use tokio::time::sleep;

use crate::cli::completion;
use crate::cli::context::Context;
use crate::cli::exit_code;
use crate::cli::failure::Failure;
use crate::cli::usage_wording;
use crate::terminal::keys;
use crate::terminal::stdin_pump;

/// Whoever only meant the end may have been given a pipe that never does: after this long they are told what is waited for.
const NOTICEABLE: Duration = Duration::from_secs(1);
const WAITING: &str =
    "homing: the input is closed once this command's own stdin has ended; with `< /dev/null` that is at once";

#[derive(Debug, Args)]
#[command(
    after_help = "The task must have been submitted with `--stdin pipe` or `--pty`. Without TEXT, --enter and \
--keys, what is piped in or redirected to this command is passed on, up to its end; a task that \
takes none of it, or not all, is told as an error.

Examples:
  homing input @last yes --enter     a line
  homing input t-k3m --eof           no more input
  homing input edit --keys esc,:,w,enter   keys, for what reads a terminal
  homing input repl < script.py      a whole file
  make data | homing input t-k3m --eof   all of it, then no more"
)]
pub(crate) struct Options {
    /// Id, start of one, name, or @last
    #[arg(value_name = "ID", value_parser = usage_wording::reference, add = ArgValueCompleter::new(completion::tasks_with_input))]
    id: String,
    /// What to write
    #[arg(value_name = "TEXT", allow_hyphen_values = true)]
    text: Option<OsString>,
    /// End it with a line feed
    #[arg(long)]
    enter: bool,
    /// Close the input afterwards
    #[arg(long)]
    eof: bool,
    /// Keys to press, as a terminal sends them: ctrl-c, up, f5, alt-x; after TEXT, commas between
    #[arg(long, value_name = "KEYS", value_parser = pressed, conflicts_with = "enter")]
    keys: Option<Pressed>,
}

/// What keys send.
#[derive(Debug, Clone)]
struct Pressed(Vec<u8>);

fn pressed(text: &str) -> Result<Pressed, String> {
    Ok(Pressed(keys::parse(text)?.into_iter().flat_map(|key| key.bytes).collect()))
}

/// Sends the text, or stdin.
pub(crate) fn run(options: &Options, context: &Context) -> Result<u8, Failure> {
    let nothing = options.text.is_none() && options.keys.is_none() && !options.enter && !options.eof;
    if nothing && std::io::stdin().is_terminal() {
        return Err(Failure::usage(
            "there is nothing to send",
            "Give a TEXT, `--enter`, `--keys` or `--eof`, or redirect stdin.",
        ));
    }
    // Whoever pipes something in and asks for the end wants both.
    let piped = options.text.is_none()
        && options.keys.is_none()
        && !options.enter
        && stdin_pump::is_piped(rustix::stdio::stdin());
    let client = context.client().patient_for_task();
    let answer = context.block_on(async {
        if nothing || (options.eof && piped) {
            let look = client.task(&options.id).await;
            let task = look.map_err(|error| usage_wording::refused("input", &options.id, error))?;
            unsure::certain(&options.id, &task.id, task.name.as_deref()).map_err(Problem::from)?;
            let id = task.id;
            let mut sending = pin!(stdin_pump::stdin(&client, &id, options.eof));
            let sent = tokio::select! {
                sent = &mut sending => sent,
                () = sleep(NOTICEABLE), if options.eof => {
                    context.console.note(WAITING);
                    sending.await
                }
            };
            let sent = sent?;
            if let Some(error) = sent.refused {
                return Err(not_all(sent.written, error).into());
            }
            return Ok(InputAnswer { written: sent.written });
        }
        let mut bytes = options.text.clone().unwrap_or_default().into_vec();
        if options.enter {
            bytes.push(b'\n');
        }
        if let Some(Pressed(keys)) = &options.keys {
            bytes.extend_from_slice(keys);
        }
        let whole = bytes.len() as u64;
        let bytes = Bytes::from(bytes);
        let answer = match &options.keys {
            Some(_) => client.press(&options.id, bytes, options.eof).await?,
            None => client.input(&options.id, bytes, options.eof).await?,
        };
        if answer.written < whole {
            let detail = format!("the task took {} of {whole} bytes", answer.written);
            return Err(Problem::new(Code::InputNotRead, detail).into());
        }
        Ok(answer)
    })?;
    if context.json {
        context.console.json(&answer)?;
    }
    Ok(exit_code::DONE)
}

/// A task that took none of it, or not all.
fn not_all(written: u64, error: Error) -> Problem {
    let mut problem = error.into_problem();
    if written > 0 {
        problem.detail = format!("the task took only {written} bytes of the input: {}", problem.detail);
    }
    problem
}
