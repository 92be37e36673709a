//! `homing attach`: this terminal on the one of a task.

mod detach;
mod terminal;
mod viewing;

use clap::Args;
use clap_complete::ArgValueCompleter;
use homing_client::Client;
use homing_model::attach::TerminalSize;
use homing_model::{Code, Problem};
use rustix::termios::{isatty, tcgetwinsize};

use self::detach::Detach;
use self::viewing::{Left, Viewing};
use crate::console::Console;
use crate::context::Context;
use crate::failure::Failure;
use crate::keys::{self, Key};
use crate::{completion, exit_code, symbol, wording};

/// The usual keys to detach.
pub(crate) const DETACH_KEYS: &str = "ctrl-\\";

#[derive(Debug, Args)]
#[command(
    after_help = "The task must have been submitted with `--pty`. Every key goes to it but the detach keys; detaching
leaves it running. Several may be attached at once: the smallest terminal decides the size. The
screen is right at once, and again by itself when the daemon restarts.

Examples:
  homing run --pty --name edit -- vim notes.txt
  homing attach edit                               Ctrl-\\ detaches
  homing attach edit --detach-keys ctrl-p,ctrl-q   both, one after the other

Exit codes: 0 detached; at the task's end its own code, as `homing exec` returns it; 128+n for a
signal to this command; 1, 2, 4, 69 if it could not attach."
)]
pub(crate) struct Options {
    /// Id, start of one, name, or @last
    #[arg(value_name = "ID", value_parser = wording::reference, add = ArgValueCompleter::new(completion::tasks_with_input))]
    id: String,
    /// Keys that detach, one after the other
    #[arg(long, value_name = "KEYS", default_value = DETACH_KEYS, value_parser = detach_keys)]
    detach_keys: DetachKeys,
}

/// Keys that detach, as they were written.
#[derive(Debug, Clone)]
pub(crate) struct DetachKeys {
    text: String,
    keys: Vec<Key>,
}

/// Reads the keys that detach.
pub(crate) fn detach_keys(text: &str) -> Result<DetachKeys, String> {
    Ok(DetachKeys { text: text.to_owned(), keys: keys::parse(text)? })
}

/// Attaches.
pub(crate) fn run(options: &Options, context: &Context) -> Result<u8, Failure> {
    let client = context.client();
    context.block_on(attach(&client, &options.id, &options.detach_keys, &context.console))
}

/// Takes this terminal over, shows the task's, and gives it back; the code is what a command would return. For whoever has a terminal and
/// lends it: it must be as a shell would find it, and is so again afterwards.
pub(crate) async fn attach(
    client: &Client,
    reference: &str,
    detach: &DetachKeys,
    console: &Console,
) -> Result<u8, Failure> {
    let (stdin, stdout) = (rustix::stdio::stdin(), rustix::stdio::stdout());
    if !isatty(stdin) || !isatty(stdout) {
        return Err(Problem::new(Code::NotATerminal, "stdin and stdout must be a terminal to attach").into());
    }
    // Names may come to mean another task; the id does not.
    let task = client.task(reference).await?;
    let id = task.id.to_string();
    let size = tcgetwinsize(stdout).ok().filter(|size| size.ws_col > 0 && size.ws_row > 0);
    let size = size.map(|size| TerminalSize { cols: size.ws_col.min(1000), rows: size.ws_row.min(500) });
    // A refusal comes before anything is done to the terminal.
    let first = client.attach(&id, size).await?;
    console.note(&format!("homing: attached to {id}; {} detaches", detach.text));
    let mut viewing = Viewing::begin(client, &id, Detach::new(detach.keys.clone()))?;
    let left = viewing.attend(first).await;
    let uncertain = viewing.uncertain;
    drop(viewing);
    if uncertain > 0 {
        console
            .note(&format!("homing: {uncertain} bytes that were typed may not have been read by the task"));
    }
    match left? {
        Left::Detached => {
            console.note(&format!(
                "homing: detached from {id}, which goes on\n  next: `homing attach {id}` comes back"
            ));
            Ok(exit_code::DONE)
        }
        Left::Ended(task) => {
            console.note(&format!("homing: {} {}", task.id, symbol::sentence(&task)));
            Ok(exit_code::of_task(&task))
        }
        Left::Signalled(number) => {
            console.note(&format!("homing: detached from {id} by signal {number}; it goes on"));
            Ok(u8::try_from(number.saturating_add(128)).unwrap_or(exit_code::FAILED))
        }
    }
}
