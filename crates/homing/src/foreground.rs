//! Staying with a task: live output, Ctrl-C, stdin, and leaving it to the background.
//!
//! The task never depends on this process. Whatever ends it (a hang-up, a kill, a closed terminal), the task goes on.

use std::cell::Cell;
use std::future::{Future, pending};
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use homing_client::{Chunk, Client, Error, Follow, Mode};
use homing_model::api::StopRequest;
use homing_model::{Code, Problem, Task, TaskId};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{Instant, sleep_until};

use crate::context::Context;
use crate::failure::{Failure, heard};
use crate::keyboard::{self, Keyboard};
use crate::printer::Printer;
use crate::spinner::Spinner;
use crate::{pump, stamp};

/// What 128+SIGINT is to a shell: this process left because of Ctrl-C.
const INTERRUPTED: u8 = 130;

/// What Ctrl-C means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnInterrupt {
    /// The task gets it; a second one stops the task; a third one leaves.
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
    Pumped(Result<u64, Error>),
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
        let typed = Cell::new(0);
        let mut pump: Option<Pin<Box<dyn Future<Output = _>>>> = None;
        if self.keyboard.is_some() {
            pump = Some(Box::pin(async { pump::keys(client, &task, &typed).await }));
        } else if self.pump {
            pump = Some(Box::pin(async { Ok(pump::stdin(client, &task, true).await?.written) }));
        }
        let (mut pressed, mut typed_before) = (0, 0);
        // Where somebody types, the cursor is theirs.
        let typing =
            self.keyboard.is_some() || (self.pump && rustix::termios::isatty(rustix::stdio::stdin()));
        let mut spinner =
            if typing { None } else { Spinner::new(self.context, &self.task, self.printer.is_some()) };
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
                match &mut self.keyboard {
                    Some(keyboard) => keyboard.ended().await,
                    None => pending().await,
                }
            };
            let step = tokio::select! {
                biased;
                code = told => Step::Told(code),
                _ = self.interrupts.recv() => Step::Interrupted,
                () = late => Step::Late,
                step = progress(self.client, &self.task, self.printer.is_some(), &mut follow) => step?,
                result = pumped => Step::Pumped(result),
                () = turned => Step::Turned,
            };
            if let Some(spinner) = &mut spinner {
                match step {
                    Step::Turned => spinner.draw(),
                    _ => spinner.rest(),
                }
            }
            match step {
                Step::Interrupted => {
                    // Only twice in a row means that the first was not enough.
                    if typed.get() > typed_before {
                        pressed = 0;
                    }
                    typed_before = typed.get();
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
                    self.give_back();
                    return Ok(self.leave(&follow));
                }
                Step::Pumped(result) => {
                    pump = None;
                    if let Err(error) = result {
                        self.context.report(&error.into_problem());
                    }
                }
                Step::Output(Some(chunk)) => self.print(&chunk).await?,
                Step::Output(None) => self.finish_printing()?,
                Step::Ended(Some(task)) => return Ok(Attended::Ended(task, self.heard)),
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
        self.unless_closed(printed)
    }

    fn finish_printing(&mut self) -> Result<(), Failure> {
        let finished = self.printer.take().map_or(Ok(()), |mut printer| printer.finish());
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
        let end = if self.keyboard.is_some() { "\r" } else { "" };
        self.context.console.note(&format!("{text}{end}"));
    }

    fn give_back(&mut self) {
        if let Some(keyboard) = self.keyboard.take() {
            keyboard.leave(&self.context.console);
        }
    }

    fn leave(&self, follow: &Follow) -> Attended {
        let id = &self.task;
        let from = if follow.offset() > 0 { format!(" --offset {}", follow.offset()) } else { String::new() };
        self.context.console.note(&format!(
            "homing: {id} goes on in the background\n  next: `homing output -f {id}{from}` shows the rest, \
             `homing wait {id}` waits, `homing stop {id}` ends it"
        ));
        Attended::InBackground(self.task.clone())
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
