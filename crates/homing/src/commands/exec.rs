//! `homing exec`: run in the foreground, with a way out to the background.

use std::time::Duration;

use clap::Args;
use homing_model::units;

use super::attach::{DETACH_KEYS, DetachKeys, detach_keys};
use super::run::{conclude, submit};
use homing_model::Stdin;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::cli::context::Context;
use crate::cli::failure::Failure;
use crate::options::submission::Submission;
use crate::options::unknown_session;
use crate::render::printer::{Printer, Sink};
use crate::terminal::foreground::Foreground;
use crate::terminal::interactive;
use crate::terminal::interrupts::{Interrupts, OnInterrupt};
use crate::terminal::keyboard::Keyboard;
use crate::terminal::nonblocking_stdio::beside;
use crate::terminal::session_wait::{announced, meanwhile};
use crate::terminal::stdin_pump::is_piped;

#[derive(Debug, Args)]
#[command(override_usage = "homing exec [OPTIONS] -- ARGV…\n       homing exec [OPTIONS] -c 'SHELL LINE'")]
#[command(
    after_help = "Like running the command itself, but it outlives this process: past --bg-after, or when the \
terminal closes, it goes on in the background. Ctrl-C goes to the task, a second one stops it. \
With --pty it gets the keyboard too, or what is piped in; `--stdin none` keeps that from it. \
Then every key is the program's, Ctrl-C as often as it is pressed; the detach keys leave it \
running.

Examples:
  homing exec -- cargo build                     as if typed, but safe from hang-ups
  homing exec --bg-after 30s -- make             past 30 s: tells the id, returns 123
  homing exec -c 'seq 3 | sort -r'
  homing exec --pty -- python3                   type into it, as if run here

Exit codes: the task's own, 128+n for a signal, 121 lost, 122 stopped, 123 went to the \
background, 124 timed out, 125 homing failed, 126/127 could not be started. With --json the \
output goes to stderr and the task, once ended or in the background, to stdout. Without it the \
id of a task in the background is told on stderr."
)]
pub(crate) struct Options {
    /// Leave it to the background after this long
    #[arg(long, value_name = "D", allow_hyphen_values = true, value_parser = units::duration)]
    bg_after: Option<Duration>,
    /// With --pty: keys that leave it to the background, one after the other
    #[arg(long, value_name = "KEYS", default_value = DETACH_KEYS, value_parser = detach_keys)]
    detach_keys: DetachKeys,
    #[command(flatten)]
    submission: Submission,
}

/// Submits and stays.
pub(crate) fn run(options: &Options, context: &Context) -> Result<u8, Failure> {
    let spec = announced(options.submission.spec("exec", context)?);
    let client = context.client_for(spec.owner.as_deref().unwrap_or_default());
    let sink = match (context.json, spec.pty) {
        (true, _) => Sink::Stderr,
        (false, true) => Sink::Stdout,
        (false, false) => sink(context),
    };
    // A task with a terminal of its own gets what is typed or piped in here, as the command itself would; `--stdin none` keeps it.
    let (mine, keys) = (spec.pty && options.submission.says_no_stdin(), Keyboard::is_here());
    let piped = is_piped(rustix::stdio::stdin());
    if spec.stdin == Stdin::None && !spec.pty && input_waits() {
        context.console.note("homing: the command gets no input; `--stdin -` passes on what is piped in");
    } else if let Some(hint) = interactive::hint("exec", &spec) {
        context.console.note(&hint);
    }
    context.block_on(beside(context, async {
        let mut interrupts = Interrupts::catch()?;
        let submitting = submit(&spec, &client, context);
        let submitted = interrupts.heard_beside(OnInterrupt::Forward, submitting).await?;
        let client = client.patient();
        let foreground = Foreground {
            context,
            client: &client,
            task: submitted.task.id.clone(),
            interrupts,
            on_interrupt: OnInterrupt::Forward,
            background_after: options.bg_after,
            pump: (options.submission.pumps() || (mine && piped)) && !submitted.joined,
            keyboard: if mine && !submitted.joined {
                Keyboard::take(options.detach_keys.looked_for())
            } else {
                None
            },
            // Who types into a program wants to see it as it is: it moves the cursor, and its questions to the terminal are answered.
            printer: Some(Printer::new(context.console, sink, mine && keys)),
            heard: true,
        };
        let ends = async {
            let (attended, ()) =
                tokio::join!(foreground.attend(), unknown_session::tell(&spec, &submitted, &client, context));
            conclude(attended?, &client, context, false).await
        };
        meanwhile(&client, &spec, &submitted.task.id, Box::pin(ends)).await
    }))
}

/// Whether something was piped into this process, or a file given, that the command would not see.
fn input_waits() -> bool {
    let stdin = rustix::stdio::stdin();
    if !is_piped(stdin) {
        return false;
    }
    let mut fds = [PollFd::from_borrowed_fd(stdin, PollFlags::IN)];
    let looked = poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }));
    looked.is_ok() && fds.iter().all(|fd| fd.revents().contains(PollFlags::IN))
}

/// Both streams in order where a person reads them or they end in one file; apart where a program takes them apart.
fn sink(context: &Context) -> Sink {
    let file = |fd| rustix::fs::fstat(fd).map(|stat| (stat.st_dev, stat.st_ino)).ok();
    let same = file(rustix::stdio::stdout()) == file(rustix::stdio::stderr());
    if context.console.terminal || same { Sink::Stdout } else { Sink::Split }
}
