//! `homing run`: submit a task and print its id.

use std::os::fd::AsFd;

use clap::Args;
use homing_api::{Code, Problem};
use homing_client::{Client, Error, Submitted};
use homing_model::notify::When;
use homing_model::secret::SHORTEST_GIVEN;
use homing_model::{Kind, Secret, Spec, Status, Task, agent, foreign};
use tokio::time::timeout;

use crate::cli::context::Context;
use crate::cli::exit_code;
use crate::cli::exit_code::Manner;
use crate::cli::failure::{Failure, heard, tell_submitted, unless_closed};
use crate::cli::unread_stdin;
use crate::cli::usage_wording;
use crate::options::program;
use crate::options::submission::Submission;
use crate::options::unknown_session;
use crate::render::printer::{Printer, Sink};
use crate::render::symbol;
use crate::terminal::foreground::{Attended, Foreground};
use crate::terminal::interrupts::{ANSWER_TIMEOUT, INTERRUPTED, Interrupts, OnInterrupt};
use crate::terminal::nonblocking_stdio::{self, beside};
use crate::terminal::session_wait::{announced, meanwhile};
use crate::terminal::stdin_pump;

/// A reason why a task will not start is cut here: the name of the program may be 2 MiB long.
const MAX_WHY_CHARS: usize = 400;

#[derive(Debug, Args)]
#[command(override_usage = "homing run [OPTIONS] -- ARGV…\n       homing run [OPTIONS] -c 'SHELL LINE'")]
#[command(
    after_help = "The command runs with this shell's folder, environment, umask and limits, and goes on whatever \
happens to this shell or to the daemon. `homing wait` and `homing output` bring the result home.

Examples:
  homing run -- cargo test                       submit; prints the id
  homing run -c 'make && ./deploy.sh > log'      a shell line
  homing run --name web --on-exit kill -- npm run dev
  homing run --timeout 10m --label ci=1 --wait -- make check   exit code of make
  homing run --owner web --watch 'listening on' -- npm run dev    tells of the ready line; `homing inbox --owner web --wait 1m`
  homing run --quiet-after 5m --heartbeat 30m -- ./train   tells of silences, and what is new
  homing run --notify https://ci.example/hook --notify inbox -- make    POSTs the end, signed
  homing run --notify 'exec:./told.sh' -- make   runs it in this folder, with the notice on its input
  homing run --key nightly -- ./backup           only one at a time; joins the live one
  pg_dump db | homing run --stdin - -c 'zstd > db.zst'

Exit codes with --wait or --follow: the task's own, 128+n for a signal, 121 lost, 122 stopped, \
123 still running, 124 timed out, 125 homing failed, 126/127 could not be started. Without them: \
0 submitted, 1 failed, 2 usage, 69 no daemon."
)]
pub(crate) struct Options {
    #[command(flatten)]
    submission: Submission,
    /// Wait for the end; return its exit code
    #[arg(long)]
    wait: bool,
    /// Show the output until the end; return its exit code
    #[arg(long)]
    follow: bool,
}

impl Options {
    /// Whether the command waits for the end of the task.
    pub(crate) fn waits_for_end(&self) -> bool {
        self.wait || self.follow
    }
}

/// Submits, and stays only if asked to.
pub(crate) fn run(options: &Options, context: &Context) -> Result<u8, Failure> {
    let spec = options.submission.spec("run", context)?;
    let client = context.client_for(spec.owner.as_deref().unwrap_or_default());
    if options.waits_for_end() {
        let spec = announced(spec);
        context.block_on(beside(context, stay(options, &spec, &client, context)))
    } else if options.submission.pumps() {
        context.block_on(feed(options, &spec, &client, context))
    } else {
        context.block_on(leave(options, &spec, &client, context))
    }
}

/// Submits, and looks meanwhile for what would keep the program from starting.
async fn leave(options: &Options, spec: &Spec, client: &Client, context: &Context) -> Result<u8, Failure> {
    let look = async { program::why_not(spec) };
    let (submitted, why_not) = tokio::join!(submit(spec, client, context), look);
    let submitted = submitted?;
    let code = tell(options, &submitted, why_not, context);
    unknown_session::tell(spec, &submitted, client, context).await;
    Ok(code)
}

/// Submits, and passes the input on.
async fn feed(options: &Options, spec: &Spec, client: &Client, context: &Context) -> Result<u8, Failure> {
    let mut interrupts = Interrupts::catch()?;
    let submitted = tokio::select! {
        submitted = submit(spec, client, context) => submitted?,
        () = interrupts.next() => {
            context.console.note(
                "homing: interrupted before the daemon answered; `homing list` shows whether it was submitted",
            );
            return Ok(INTERRUPTED);
        }
    };
    let client = &client.patient();
    let code = tell(options, &submitted, program::why_not(spec), context);
    let pump = async {
        if submitted.joined {
            return Ok(code);
        }
        let id = &submitted.task.id;
        let tell = |problem: &Problem| context.report(problem);
        tokio::select! {
            pumped = stdin_pump::whole(client, id, &tell) => {
                pumped.map(|whole| if whole { code } else { code.max(exit_code::FAILED) }).map_err(Failure::from)
            }
            () = interrupts.next() => {
                context.console.note(&format!(
                    "homing: {id} goes on, with as much of the input as was read; `homing input {id} --eof` ends that, `homing stop {id}` the task"
                ));
                Ok(INTERRUPTED)
            }
        }
    };
    tokio::join!(pump, unknown_session::tell(spec, &submitted, client, context)).0
}

/// Prints what was submitted, and what speaks against it; the code is that of the print. It runs, wherever its id went.
fn tell(options: &Options, submitted: &Submitted, why_not: Option<String>, context: &Context) -> u8 {
    // Who stays hears it from the task itself.
    if let Some(why) = why_not.filter(|_| !submitted.joined) {
        let id = &submitted.task.id;
        let why = foreign::line(&why, MAX_WHY_CHARS);
        context.console.note(&format!(
            "homing: it will probably not start: {why}; `homing wait {id}` says whether it did"
        ));
    }
    let mut code = exit_code::DONE;
    if let Err(Failure::Problem(problem)) = tell_submitted(&submitted.task, context) {
        context.report(&problem);
        code = exit_code::of_problem(Manner::Plain, &problem);
    }
    tell_unread(options, submitted, context);
    code
}

/// Says that there is input which nobody takes, where nothing was said of it.
fn tell_unread(options: &Options, submitted: &Submitted, context: &Context) {
    if options.submission.says_no_stdin()
        && !submitted.joined
        && unread_stdin::is_there(std::io::stdin().as_fd())
    {
        context.console.note(
            "homing: there is something on the input of this command, and the task gets none of it\n  next: `--stdin -` passes it on, `--stdin none` says that it is not meant",
        );
    }
}

async fn stay(options: &Options, spec: &Spec, client: &Client, context: &Context) -> Result<u8, Failure> {
    let mut interrupts = Interrupts::catch()?;
    let submitting = submit(spec, client, context);
    let submitted = interrupts.heard_beside(OnInterrupt::Leave, submitting).await?;
    let client = &client.patient();
    let id = submitted.task.id.clone();
    tell_unread(options, &submitted, context);
    // With --follow, stdout belongs to the output.
    let mut read = true;
    match (options.follow, context.json) {
        (true, _) => context.console.note(&format!("homing: {id}")),
        (false, false) => {
            read = heard(context.console.line(id.as_str())).map_err(|failure| failure.naming(&id))?;
        }
        (false, true) => {}
    }
    let sink = if context.json { Sink::Stderr } else { Sink::Stdout };
    let attended = Foreground {
        context,
        client,
        task: id,
        interrupts,
        on_interrupt: OnInterrupt::Leave,
        background_after: None,
        pump: options.submission.pumps() && !submitted.joined,
        keyboard: None,
        printer: options.follow.then(|| Printer::new(context.console, sink, false)),
        heard: read,
    };
    let ends = async {
        let (attended, ()) =
            tokio::join!(attended.attend(), unknown_session::tell(spec, &submitted, client, context));
        conclude(attended?, client, context, !options.follow).await
    };
    meanwhile(client, spec, &submitted.task.id, Box::pin(ends)).await
}

/// An idempotency key that nobody had before.
pub(crate) fn fresh_key() -> Option<String> {
    let key = getrandom::u64().and_then(|high| Ok((high, getrandom::u64()?))).ok();
    key.map(|(high, low)| format!("{high:016x}{low:016x}"))
}

/// Submits under a fresh idempotency key, so that a daemon that dies in the middle costs nothing and doubles nothing.
pub(crate) async fn submit(spec: &Spec, client: &Client, context: &Context) -> Result<Submitted, Failure> {
    let submitted = client.submit(spec, fresh_key().as_deref()).await.map_err(refused)?;
    tell_difference(spec, &submitted, context);
    Ok(submitted)
}

fn refused(error: Error) -> Failure {
    match error.code() {
        Some(Code::TooLarge) => usage_wording::too_large().into(),
        _ => error.into(),
    }
}

/// Says how what was submitted differs from what was asked for.
fn tell_difference(spec: &Spec, submitted: &Submitted, context: &Context) {
    for (name, secret) in &spec.secrets {
        if let Secret::Value(value) = secret
            && (1..SHORTEST_GIVEN).contains(&value.as_bytes().len())
        {
            context.console.note(&format!(
                "homing: the secret `{name}` has fewer than {SHORTEST_GIVEN} bytes and is not masked in output and notices"
            ));
        }
    }
    if submitted.joined && spec.key.is_some() {
        context.console.note(&joined(spec, &submitted.task));
    } else if let Some(less) = told_less(spec, &submitted.task) {
        context.console.note(&less);
    }
}

/// That the operator has less told than was asked for.
pub(crate) fn told_less(spec: &Spec, task: &Task) -> Option<String> {
    let asked = spec.notify.as_ref()?;
    let told = match task.notify.on {
        granted if granted == asked.on => return None,
        When::Never => "nobody is told of its end",
        When::Failure => "only a failure is told",
        When::Always => return None,
    };
    Some(format!("homing: {told}: `[notify] on` in config.toml allows no more"))
}

/// That nothing was started, and how what runs differs from what was asked for.
fn joined(spec: &Spec, task: &Task) -> String {
    let id = &task.id;
    let mut text = format!("homing: joined {id}, which is live with this key");
    let cwd = spec.cwd.as_ref().map(|cwd| cwd.as_os_str().to_string_lossy());
    let mut differs = false;
    let ours = match &task.agent {
        // Who is asked where nobody was named, the daemon knows.
        Some(theirs) if spec.kind == Kind::Agent => {
            agent::command_line(&theirs.name, spec.prompt.as_deref().unwrap_or_default())
        }
        Some(_) | None => spec.command_line(),
    };
    if task.command != ours {
        differs = true;
        text.push_str(&format!("; its command differs: {}", foreign::one_line(&task.command)));
    } else if let (Some(theirs), Some(ours)) = (&task.cwd, cwd)
        && *theirs != ours
    {
        differs = true;
        text.push_str(&format!("; its folder differs: {}", foreign::one_line(theirs)));
    }
    if spec.name.is_some() && task.name != spec.name {
        differs = true;
        let theirs = task.name.as_deref().map_or_else(|| "none".to_owned(), foreign::one_line);
        text.push_str(&format!("; its name differs: {theirs}"));
    }
    if !differs {
        return text;
    }
    text + "\n  next: `--on-duplicate refuse` refuses instead; another `--key` starts another task"
}

/// The code of a task that was stayed with; an end that the code alone does not explain is told, and a failure that nobody has seen printed.
/// Whoever stayed, and read it, was told by it.
pub(crate) async fn conclude(
    attended: Attended,
    client: &Client,
    context: &Context,
    unseen: bool,
) -> Result<u8, Failure> {
    let (task, mut read): (Task, bool) = match attended {
        Attended::LeftRunning(code) => return Ok(code),
        Attended::InBackground(id) => {
            if context.json {
                // It runs, whether it can be asked about or not: the code must say so.
                let asked = timeout(ANSWER_TIMEOUT, client.task(id.as_str())).await;
                match asked.unwrap_or(Err(Error::NoAnswer)) {
                    Ok(task) => unless_closed(context.console.json(&task))?,
                    Err(error) => context.report(&error.into_problem()),
                }
            }
            return Ok(exit_code::STILL_RUNNING);
        }
        Attended::Ended(task, read) => (*task, read),
    };
    if context.json {
        read &= heard(context.console.json(&task))?;
    } else if !matches!(task.status, Status::Succeeded | Status::Failed)
        || killed(&task)
        || (unseen && task.status == Status::Failed)
    {
        read &= context.console.noted(&format!("homing: {} {}", task.id, symbol::sentence(&task)));
    }
    // Who did not take it was not told.
    if nonblocking_stdio::taken().await && read {
        told(client, &task).await;
    }
    Ok(exit_code::of_task(&task))
}

/// The owner, in whose name the client speaks, saw the end: it counts as told.
pub(crate) async fn told(client: &Client, task: &Task) {
    // Where nobody can be reached any more the entry stays, which loses nothing.
    let _ = client.mark_delivered(std::slice::from_ref(&task.id)).await;
}

fn killed(task: &Task) -> bool {
    task.outcome.as_ref().is_some_and(|outcome| outcome.signal.is_some())
}
