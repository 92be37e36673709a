//! Staying with a task: live output, Ctrl-C, stdin, and leaving it to the background.
//!
//! The task never depends on this process. Whatever ends it (a hang-up, a kill, a closed terminal), the task goes on.

use std::future::{Future, pending};
use std::pin::{Pin, pin};
use std::time::Duration;

use bytes::Bytes;
use homing_client::{Chunk, Client, Error, Follow, Mode};
use homing_model::api::StopRequest;
use homing_model::{Code, Problem, Task, TaskId};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{Instant, sleep_until};

use crate::context::Context;
use crate::failure::{Failure, heard};
use crate::keyboard::{self, Endings, Keyboard};
use crate::printer::Printer;
use crate::pump::Typing;
use crate::spinner::Spinner;
use crate::{pump, size, stamp};

/// What 128+SIGINT is to a shell: this process left because of Ctrl-C.
const INTERRUPTED: u8 = 130;

/// What Ctrl-C means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnInterrupt {
    /// The task gets it; a second one stops the task; a third one leaves. Where the keys are the task's, only a signal from elsewhere is one.
    Forward,
    /// This process leaves; the task goes on.
    Leave,
}

/// How staying ended.
#[derive(Debug)]
pub(crate) enum Attended {
    /// The task ended; whether all that was printed of it was read.
    Ended(Box<Task>, bool),
    /// This process left first, with this code; the user was told.
    LeftRunning(u8),
    /// It took too long and was left to the background; the user was told.
    InBackground(TaskId),
}

/// Catches Ctrl-C from now on.
pub(crate) fn interrupts() -> Result<Signal, Failure> {
    signal(SignalKind::interrupt())
        .map_err(|error| Problem::new(Code::SystemLimit, format!("Ctrl-C cannot be caught: {error}")).into())
}

/// A task that is stayed with.
pub(crate) struct Foreground<'a> {
    pub(crate) context: &'a Context,
    pub(crate) client: &'a Client,
    pub(crate) task: TaskId,
    /// From before the submit, so that no Ctrl-C is lost.
    pub(crate) interrupts: Signal,
    pub(crate) on_interrupt: OnInterrupt,
    /// Leave it to the background after this long.
    pub(crate) background_after: Option<Duration>,
    /// Pass stdin on.
    pub(crate) pump: bool,
    /// The terminal that is typed on, if the task is to get the keys.
    pub(crate) keyboard: Option<Keyboard>,
    /// Shows the output; without one the end is waited for in silence.
    pub(crate) printer: Option<Printer>,
    /// Whether all that was printed was read.
    pub(crate) heard: bool,
}

enum Step {
    Interrupted,
    Late,
    Told(u8),
    Pumped(Result<Typing, Error>),
    Output(Option<Chunk>),
    Ended(Option<Box<Task>>),
    Turned,
}

impl Foreground<'_> {
    /// Stays until the task has ended, or there is a reason to leave.
    pub(crate) async fn attend(mut self) -> Result<Attended, Failure> {
        let deadline = self.background_after.and_then(|after| Instant::now().checked_add(after));
        let mut follow = self.client.follow(&self.task, 0, None);
        let (client, task) = (self.client, self.task.clone());
        let mut pump: Option<Pin<Box<dyn Future<Output = _>>>> = None;
        let detach = self.keyboard.as_mut().and_then(|keyboard| keyboard.detach.take());
        if let Some(mut detach) = detach {
            let task = &task;
            pump = Some(Box::pin(async move { pump::keys(client, task, &mut detach).await }));
        } else if self.pump {
            pump = Some(Box::pin(async { pump::stdin(client, &task, true).await.map(|_| Typing::Over) }));
        }
        let mut pressed = 0;
        // Where somebody types, the cursor is theirs.
        let typing =
            self.keyboard.is_some() || (self.pump && rustix::termios::isatty(rustix::stdio::stdin()));
        let mut spinner =
            if typing { None } else { Spinner::new(self.context, &self.task, self.printer.is_some()) };
        // A line that stands on the terminal is taken away before this process is.
        let mut endings = spinner.as_ref().and_then(|_| Endings::catch());
        let mut resizing = pin!(follow_size(client, &task, self.keyboard.is_some()));
        loop {
            let within = self.printer.as_ref().is_some_and(Printer::is_within_line);
            let turned = async {
                match &mut spinner {
                    Some(spinner) if !within => spinner.turn().await,
                    Some(_) | None => pending().await,
                }
            };
            let late = async {
                match deadline {
                    Some(deadline) => sleep_until(deadline).await,
                    None => pending().await,
                }
            };
            let pumped = async {
                match &mut pump {
                    Some(pump) => pump.await,
                    None => pending().await,
                }
            };
            let told = async {
                match (&mut self.keyboard, &mut endings) {
                    (Some(keyboard), _) => keyboard.ended().await,
                    (None, Some(endings)) => endings.next().await,
                    (None, None) => pending().await,
                }
            };
            let step = tokio::select! {
                biased;
                code = told => Step::Told(code),
                _ = self.interrupts.recv() => Step::Interrupted,
                () = late => Step::Late,
                step = progress(self.client, &self.task, self.printer.is_some(), &mut follow) => step?,
                result = pumped => Step::Pumped(result),
                () = &mut resizing => Step::Turned,
                () = turned => Step::Turned,
            };
            if let Some(spinner) = &mut spinner {
                match step {
                    Step::Turned => spinner.draw(),
                    Step::Told(_) => spinner.clear(),
                    _ => spinner.rest(),
                }
            }
            match step {
                Step::Interrupted => {
                    pressed += 1;
                    if let Some(code) = self.interrupted(pressed).await {
                        self.give_back();
                        return Ok(Attended::LeftRunning(code));
                    }
                }
                Step::Told(code) => {
                    self.give_back();
                    return Ok(Attended::LeftRunning(code));
                }
                Step::Late => {
                    let attachable = self.keyboard.is_some();
                    self.give_back();
                    return Ok(self.leave(&follow, attachable));
                }
                Step::Pumped(Ok(Typing::Detached)) => {
                    self.give_back();
                    return Ok(self.leave(&follow, true));
                }
                Step::Pumped(result) => {
                    pump = None;
                    if let Err(error) = result {
                        self.context.report(&error.into_problem());
                    }
                }
                Step::Output(Some(chunk)) => self.print(&chunk).await?,
                Step::Output(None) => self.finish_printing()?,
                Step::Ended(Some(task)) => {
                    // A program that ended by itself has left the screen as it wants it; one that was ended could not.
                    if task.outcome.as_ref().is_none_or(|outcome| outcome.exit_code.is_none()) {
                        self.give_back();
                    }
                    return Ok(Attended::Ended(task, self.heard));
                }
                Step::Ended(None) | Step::Turned => {}
            }
        }
    }

    async fn print(&mut self, chunk: &Chunk) -> Result<(), Failure> {
        let Some(printer) = &mut self.printer else { return Ok(()) };
        // Where the source of some bytes cannot be told they are still shown: as stdout.
        let spans = match printer.needs_spans() {
            true => stamp::spans(self.client, &self.task, chunk).await.unwrap_or_default(),
            false => Vec::new(),
        };
        let printed = printer.print(chunk, &spans);
        if let Some(keyboard) = &mut self.keyboard {
            keyboard.shown(&chunk.bytes);
        }
        self.unless_closed(printed)
    }

    fn finish_printing(&mut self) -> Result<(), Failure> {
        let Some(mut printer) = self.printer.take() else { return Ok(()) };
        let finished = printer.finish();
        self.heard &= printer.is_heard();
        self.unless_closed(finished)
    }

    /// When nobody reads stdout any more the task's end is still waited for, in silence: its code is the answer.
    fn unless_closed(&mut self, result: Result<(), Failure>) -> Result<(), Failure> {
        if !heard(result)? {
            (self.printer, self.heard) = (None, false);
        }
        Ok(())
    }

    async fn interrupted(&self, pressed: u32) -> Option<u8> {
        let id = &self.task;
        let console = &self.context.console;
        let result = match (self.on_interrupt, pressed) {
            // The task's terminal knows best who is meant by it.
            (OnInterrupt::Forward, 1) if self.keyboard.is_some() => {
                let key = Bytes::from_static(keyboard::INTERRUPT);
                self.client.input(id.as_str(), key, false).await.map(|_| "sent Ctrl-C to")
            }
            (OnInterrupt::Forward, 1) => {
                self.client.signal(id.as_str(), "INT").await.map(|_| "sent SIGINT to")
            }
            (OnInterrupt::Forward, 2) => {
                let request = StopRequest { by: Some(self.context.owner()), ..StopRequest::default() };
                self.client.stop(id.as_str(), &request).await.map(|_| "stopping")
            }
            (OnInterrupt::Forward, _) => {
                self.note(&format!(
                    "homing: {id} is still being stopped; `homing wait {id}` waits for its end"
                ));
                return Some(INTERRUPTED);
            }
            (OnInterrupt::Leave, _) => {
                console.note(&format!("homing: {id} goes on; `homing stop {id}` ends it"));
                return Some(INTERRUPTED);
            }
        };
        match result {
            Ok(done) if console.stderr_terminal => {
                let hint = if pressed == 1 { "; once more stops it" } else { "" };
                self.note(&format!("homing: {done} {id}{hint}"));
            }
            Ok(_) => {}
            // It ended by itself: the end is about to be told anyway.
            Err(error) if error.code() == Some(Code::TaskEnded) => {}
            Err(error) => self.context.report(&error.into_problem()),
        }
        None
    }

    /// A terminal that is the task's does not end lines by itself.
    fn note(&self, text: &str) {
        let console = &self.context.console;
        if self.keyboard.is_some() { console.raw_note(text) } else { console.note(text) }
    }

    fn give_back(&mut self) {
        if let Some(keyboard) = self.keyboard.take() {
            keyboard.leave(&self.context.console);
        }
    }

    fn leave(&self, follow: &Follow, attachable: bool) -> Attended {
        let id = &self.task;
        let back = match follow.offset() {
            _ if attachable => format!("`homing attach {id}` comes back"),
            0 => format!("`homing output -f {id}` shows the rest"),
            offset => format!("`homing output -f {id} --offset {offset}` shows the rest"),
        };
        self.context.console.note(&format!(
            "homing: {id} goes on in the background\n  next: {back}, `homing wait {id}` waits, `homing stop {id}` ends it"
        ));
        Attended::InBackground(self.task.clone())
    }
}

/// Gives the task's terminal the size of this one, now and whenever that changes; where the keys are not the task's, never.
async fn follow_size(client: &Client, task: &TaskId, ours: bool) {
    let window = signal(SignalKind::window_change()).ok().filter(|_| ours);
    let (Some(mut window), mut told) = (window, None) else { return pending().await };
    // The task was submitted with the size that it was then.
    loop {
        let now = size::of_this_terminal();
        if let Some(size) = now.filter(|_| now != told) {
            told = now;
            // A task that is over needs none, and a daemon that is away is asked again with the next change.
            if client.resize(task.as_str(), size).await.is_err() {
                told = None;
            }
        }
        if window.recv().await.is_none() {
            return pending().await;
        }
    }
}

/// The next output, or the end. Dropping it half-way loses nothing.
async fn progress(client: &Client, task: &TaskId, shows: bool, follow: &mut Follow) -> Result<Step, Error> {
    if shows {
        return follow.next().await.map(Step::Output);
    }
    let answer = client.wait(std::slice::from_ref(task), Mode::All, None).await?;
    Ok(Step::Ended(answer.items.into_iter().find(|task| task.status.is_terminal()).map(Box::new)))
}
