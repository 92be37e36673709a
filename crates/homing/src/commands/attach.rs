//! `homing attach`: this terminal on the one of a task.

mod detach;
mod terminal;
mod viewing;

use std::os::fd::BorrowedFd;

use clap::Args;
use clap_complete::ArgValueCompleter;
use homing_api::{Code, Problem};
use homing_client::Client;
use homing_model::shell::quote;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::isatty;

pub(crate) use self::detach::Detach;
use self::viewing::{Left, Viewing};
use super::run::told;
use crate::cli::completion;
use crate::cli::context::Context;
use crate::cli::exit_code;
use crate::cli::failure::Failure;
use crate::cli::usage_wording;
use crate::render::symbol;
use crate::terminal::keys::{self, Key};
use crate::terminal::terminal_size;

/// The usual keys to detach.
pub(crate) const DETACH_KEYS: &str = "ctrl-\\";

#[derive(Debug, Args)]
#[command(
    after_help = "The task must have been submitted with `--pty`. Every key goes to it but the detach keys; \
detaching leaves it running. Several may be attached at once: the smallest terminal decides the \
size. The screen is right at once, and again by itself when the daemon restarts.

Examples:
  homing run --pty --name edit -- vim notes.txt
  homing attach edit                               Ctrl-\\ detaches
  homing attach edit --detach-keys ctrl-p,ctrl-q   both, one after the other

Exit codes: 0 detached; at the task's end its own code, as `homing exec` returns it; 128+n for a \
signal to this command; 1, 2, 4, 69 if it could not attach."
)]
pub(crate) struct Options {
    /// Id, start of one, name, or @last
    #[arg(value_name = "ID", value_parser = usage_wording::reference, add = ArgValueCompleter::new(completion::tasks_with_input))]
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

impl DetachKeys {
    /// Looks for them.
    pub(crate) fn looked_for(&self) -> Detach {
        Detach::new(self.keys.clone())
    }
}

/// Reads the keys that detach.
pub(crate) fn detach_keys(text: &str) -> Result<DetachKeys, String> {
    Ok(DetachKeys { text: text.to_owned(), keys: keys::parse(text)? })
}

/// Attaches.
pub(crate) fn run(options: &Options, context: &Context) -> Result<u8, Failure> {
    let client = context.client();
    context.block_on_screen(attach(&client, &options.id, &options.detach_keys, context))
}

/// Takes this terminal over, shows the task's, and gives it back; the code is what a command would return. For whoever has a terminal and
/// lends it: it must be as a shell would find it, and is so again afterwards.
pub(crate) async fn attach(
    client: &Client,
    reference: &str,
    detach: &DetachKeys,
    context: &Context,
) -> Result<u8, Failure> {
    let console = &context.console;
    let (stdin, stdout) = (rustix::stdio::stdin(), rustix::stdio::stdout());
    if !isatty(stdin) || !isatty(stdout) {
        let mut problem = Problem::new(Code::NotATerminal, "stdin and stdout must be a terminal to attach");
        problem.advice = problem.advice.replace(" ID", &format!(" {}", quote(reference)));
        return Err(problem.into());
    }
    // Names may come to mean another task; the id does not.
    let task = client.task(reference).await?;
    let id = task.id.to_string();
    // A refusal comes before anything is done to the terminal.
    let size = terminal_size::of(stdout);
    let client = &context.screen_client();
    let first = client.attach(&id, size).await?;
    console.note(&format!("homing: attached to {id}; {} detaches", detach.text));
    let mut viewing = Viewing::begin(client, &id, size, detach.looked_for())?;
    let left = viewing.attend(first).await;
    let uncertain = viewing.uncertain;
    drop(viewing);
    // A terminal that takes nothing may be why somebody leaves: nobody waits for it.
    let note = |text: &str| takes_more(rustix::stdio::stderr()) && console.noted(text);
    if uncertain > 0 {
        note(&format!("homing: {uncertain} bytes that were typed may not have been read by the task"));
    }
    match left? {
        Left::Detached => {
            note(&format!(
                "homing: detached from {id}, which goes on\n  next: `homing attach {id}` comes back"
            ));
            Ok(exit_code::DONE)
        }
        Left::Ended(task) => {
            let read = note(&format!("homing: {} {}", task.id, symbol::sentence(&task)));
            if read && task.owner == context.owner() {
                told(client, &task).await;
            }
            Ok(exit_code::of_task(&task))
        }
        Left::Signalled(number) => {
            note(&format!("homing: detached from {id} by signal {number}; it goes on"));
            Ok(u8::try_from(number.saturating_add(128)).unwrap_or(exit_code::FAILED))
        }
    }
}

/// Whether something can be written without waiting.
fn takes_more(fd: BorrowedFd<'_>) -> bool {
    let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::OUT)];
    poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|ready| ready > 0)
}
