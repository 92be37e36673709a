//! Staying with a task: live output, Ctrl-C, stdin, and leaving it to the background.
//!
//! The task never depends on this process. Whatever ends it (a hang-up, a kill, a closed terminal), the task goes on.
//! What is printed is queued by `nonblocking_stdio`, and output is fetched once all before it was written.

use std::time::Duration;

use bytes::Bytes;
use homing_api::{Code, Problem, StopRequest};
use homing_client::{Chunk, Client, Error, Span};
use homing_model::{Task, TaskId};

use crate::cli::context::Context;
use crate::cli::failure::{Failure, heard};
use crate::render::printer::Printer;
use crate::render::terminal_snapshot::Glimpse;
use crate::terminal::foreground_loop::{ForegroundLoop, Work};
use crate::terminal::interrupts::{INTERRUPTED, Interrupts, OnInterrupt};
use crate::terminal::keyboard::{self, Keyboard};
use crate::terminal::nonblocking_stdio;
use crate::terminal::terminal_size;

/// The exit code of a process whose terminal is gone: 128 + SIGHUP.
const HUNG_UP: u8 = 129;

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

/// A task that is stayed with.
pub(crate) struct Foreground<'a> {
    pub(crate) context: &'a Context,
    pub(crate) client: &'a Client,
    pub(crate) task: TaskId,
    /// From before the submit, so that no Ctrl-C is lost.
    pub(crate) interrupts: Interrupts,
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

/// What became of an interrupt.
pub(super) enum Passed {
    /// Done, in these words.
    Done(&'static str),
    /// The task had ended before.
    Ended,
}

impl<'a> Foreground<'a> {
    /// Stays until the task has ended, or there is a reason to leave.
    pub(crate) async fn attend(self) -> Result<Attended, Failure> {
        let task = self.task.clone();
        ForegroundLoop::new(self, &task).run().await
    }

    pub(super) fn ended(&mut self, task: Box<Task>) -> Attended {
        // A program that ended by itself has left the screen as it wants it; one that was ended could not.
        if task.outcome.as_ref().is_none_or(|outcome| outcome.exit_code.is_none()) {
            self.give_back();
        }
        Attended::Ended(task, self.heard && nonblocking_stdio::is_whole())
    }

    pub(super) fn print(&mut self, chunk: &Chunk, spans: &[Span]) -> Result<Option<Attended>, Failure> {
        let Some(printer) = &mut self.printer else { return Ok(None) };
        let printed = printer.print(chunk, spans);
        if let Some(keyboard) = &mut self.keyboard {
            keyboard.shown(&chunk.bytes);
        }
        self.unless_closed(printed)
    }

    /// Whether this terminal shows that of the task, and so can be shown it anew.
    pub(super) fn repaints(&self) -> bool {
        self.context.console.terminal && !self.context.json && self.printer.is_some()
    }

    /// Shows the screen, or a part of it, to whoever was away from it.
    pub(super) fn show(&mut self, seen: &Glimpse) -> Result<Option<Attended>, Failure> {
        let room;
        let bytes = match seen {
            Glimpse::Bytes(bytes) => &bytes[..],
            Glimpse::Room => {
                let rows = terminal_size::of_this_terminal().map_or(24, |size| size.rows);
                room = "\r\n".repeat(usize::from(rows));
                room.as_bytes()
            }
            Glimpse::Ended(_) => return Ok(None),
        };
        if let Some(keyboard) = &mut self.keyboard {
            keyboard.shown(bytes);
        }
        let printed = self.context.console.data(bytes);
        self.unless_closed(printed)
    }

    pub(super) fn finish_printing(&mut self) -> Result<(), Failure> {
        let Some(mut printer) = self.printer.take() else { return Ok(()) };
        let finished = printer.finish();
        self.heard &= printer.is_heard();
        self.unless_closed(finished).map(drop)
    }

    /// When nobody reads stdout any more the task's end is still waited for, in silence: its code is the answer. A terminal that is gone ends it,
    /// and so does an error, with the id of what goes on.
    fn unless_closed(&mut self, result: Result<(), Failure>) -> Result<Option<Attended>, Failure> {
        if self.context.console.terminal
            && nonblocking_stdio::broken().as_ref().is_some_and(nonblocking_stdio::is_hang_up)
        {
            return Ok(Some(self.part_with(HUNG_UP)));
        }
        if !heard(result).map_err(|failure| failure.naming(&self.task))? {
            (self.printer, self.heard) = (None, false);
        }
        Ok(None)
    }

    pub(super) fn closed(&mut self) -> Result<Option<Attended>, Failure> {
        let result = nonblocking_stdio::broken().map_or(Ok(()), |error| Err(Failure::writing(&error)));
        self.unless_closed(result)
    }

    /// Passes a Ctrl-C on, or leaves by it.
    pub(super) fn interrupted(&mut self, id: &'a TaskId) -> Result<Work<'a, Passed>, Attended> {
        let client = self.client;
        let typed = self.keyboard.is_some();
        match (self.on_interrupt, self.interrupts.pressed) {
            (OnInterrupt::Forward, 1) => Ok(Box::pin(async move {
                // The task's terminal knows best who is meant by it.
                if typed {
                    let key = Bytes::from_static(keyboard::INTERRUPT);
                    return client
                        .input(id.as_str(), key, false)
                        .await
                        .map(|_| Passed::Done("sent Ctrl-C to"));
                }
                client.signal(id.as_str(), "INT").await.map(|_| Passed::Done("sent SIGINT to"))
            })),
            (OnInterrupt::Forward, 2) => {
                let request = StopRequest { by: Some(self.context.owner()), ..StopRequest::default() };
                Ok(Box::pin(async move {
                    let answer = client.stop(id.as_str(), &request).await?;
                    Ok(if answer.stopping { Passed::Done("stopping") } else { Passed::Ended })
                }))
            }
            (OnInterrupt::Forward, _) => {
                self.hurry();
                self.last_note(&format!(
                    "homing: {id} is still being stopped; `homing wait {id}` waits for its end"
                ));
                Err(Attended::LeftRunning(INTERRUPTED))
            }
            (OnInterrupt::Leave, _) => {
                self.hurry();
                self.last_note(&format!("homing: {id} goes on; `homing stop {id}` ends it"));
                Err(Attended::LeftRunning(INTERRUPTED))
            }
        }
    }

    pub(super) fn passed(&mut self, result: Result<Passed, Error>) -> Option<Attended> {
        let (id, pressed) = (&self.task, self.interrupts.pressed);
        match result {
            Ok(Passed::Done(done)) if self.context.console.stderr_terminal => {
                let hint = if pressed == 1 { "; once more stops it" } else { "" };
                self.note(&format!("homing: {done} {id}{hint}"));
            }
            Ok(Passed::Done(_)) => {}
            // The end is about to be told anyway, unless whoever reads does not.
            Ok(Passed::Ended) if pressed > 1 && !nonblocking_stdio::is_settled() => {
                let text = format!(
                    "homing: {id} has ended; not all of its output was read; `homing output {id}` has it"
                );
                self.hurry();
                self.last_note(&text);
                return Some(Attended::LeftRunning(INTERRUPTED));
            }
            Ok(Passed::Ended) => {}
            Err(error) if error.code() == Some(Code::TaskEnded) => return self.passed(Ok(Passed::Ended)),
            Err(error) => self.context.report(&error.into_problem()),
        }
        None
    }

    /// Says that a Ctrl-C is not answered; an error if the user has insisted.
    pub(super) fn not_answered(&mut self) -> Result<(), Failure> {
        let task = &self.task;
        if self.interrupts.pressed < 2 {
            self.note(&format!(
                "homing: nobody has answered yet; once more stops {task}, or leaves if that is not answered either"
            ));
            return Ok(());
        }
        let problem = no_answer(task);
        self.hurry();
        Err(problem.into())
    }

    /// A terminal that is the task's does not end lines by itself.
    fn note(&self, text: &str) {
        let console = &self.context.console;
        if self.keyboard.is_some() { console.raw_note(text) } else { console.note(text) }
    }

    /// Gives everything back, and drops what nobody took.
    fn part(&mut self) {
        nonblocking_stdio::abandon();
        self.context.console.clear_status();
        self.give_back();
        nonblocking_stdio::part();
    }

    /// The same for somebody who wants to be gone: from here on nobody is waited for.
    fn hurry(&mut self) {
        nonblocking_stdio::hurry();
        self.part();
    }

    fn last_note(&self, text: &str) {
        self.context.console.note(text);
        nonblocking_stdio::part();
    }

    pub(super) fn part_with(&mut self, code: u8) -> Attended {
        self.hurry();
        let id = &self.task;
        self.last_note(&format!(
            "homing: {id} goes on; `homing wait {id}` waits, `homing stop {id}` ends it"
        ));
        Attended::LeftRunning(code)
    }

    fn give_back(&mut self) {
        if let Some(keyboard) = self.keyboard.take() {
            keyboard.leave(&self.context.console);
        }
    }

    pub(super) fn leave(&mut self, offset: u64, attachable: bool) -> Attended {
        self.part();
        let id = &self.task;
        let back = match offset {
            _ if attachable => format!("`homing attach {id}` comes back"),
            0 => format!("`homing output -f {id}` shows the rest"),
            offset => format!("`homing output -f {id} --offset {offset}` shows the rest"),
        };
        self.last_note(&format!(
            "homing: {id} goes on in the background\n  next: {back}, `homing wait {id}` waits, `homing stop {id}` ends it"
        ));
        Attended::InBackground(self.task.clone())
    }
}

/// That nobody answered somebody who wanted to leave.
fn no_answer(id: &TaskId) -> Problem {
    let text = format!(
        "the daemon does not answer: whether {id} goes on, is being stopped or has ended is not known"
    );
    let mut problem = Problem::new(Code::DaemonUnreachable, text);
    problem.advice = format!(
        "`homing wait {id}` says once the daemon answers, `homing stop {id}` ends it then; `homing doctor` says what is the matter with the daemon."
    );
    problem
}
