//! The loop of a command that stays with a task. All waiting happens in [`ForegroundLoop::next`]: a daemon that does
//! not answer, a terminal that takes nothing and a pipe that is not read hold up what depends on them, but neither a
//! signal nor the keys.

use std::future::{Future, pending};
use std::pin::Pin;
use std::rc::Rc;

use homing_api::Problem;
use homing_client::{Client, Error};
use homing_model::TaskId;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Notify;
use tokio::time::{Duration, Instant, sleep_until, timeout_at};

use crate::cli::failure::Failure;
use crate::render::printer::Printer;
use crate::render::spinner::Spinner;
use crate::render::terminal_snapshot::Glimpse;
use crate::terminal::foreground::{Attended, Foreground, Passed};
use crate::terminal::interrupts::ANSWER_TIMEOUT;
use crate::terminal::keyboard::{Endings, Told};
use crate::terminal::nonblocking_stdio;
use crate::terminal::stdin_pump::{self, Typing};
use crate::terminal::task_output::{News, TaskOutput, Wanted};
use crate::terminal::terminal_size;

/// How long a reader may take for what is printed when the task is left to the background.
const LAST_OUTPUT_TIMEOUT: Duration = Duration::from_secs(1);

/// A call of the daemon that goes on beside the loop.
pub(super) type Work<'a, T> = Pin<Box<dyn Future<Output = Result<T, Error>> + 'a>>;

enum Event {
    Interrupted,
    /// The daemon has answered what a Ctrl-C began.
    Passed(Result<Passed, Error>),
    /// It has not, for [`ANSWER_TIMEOUT`].
    Silent,
    /// The time for the foreground is over.
    Late,
    Told(Told),
    Pumped(Result<Typing, Error>),
    News(News),
    Turned,
}

/// A task that is stayed with, and everything that goes on beside it.
pub(super) struct ForegroundLoop<'a> {
    foreground: Foreground<'a>,
    task: &'a TaskId,
    output: TaskOutput<'a>,
    /// Passes stdin or the keys on.
    pump: Option<Work<'a, Typing>>,
    spinner: Option<Spinner>,
    endings: Option<Endings>,
    resizing: Pin<Box<dyn Future<Output = ()> + 'a>>,
    resized: Rc<Notify>,
    /// What a Ctrl-C began, and when the user learns that nothing answers it.
    passing: Option<Work<'a, Passed>>,
    silent: Option<Instant>,
    deadline: Option<Instant>,
}

impl<'a> ForegroundLoop<'a> {
    pub(super) fn new(mut foreground: Foreground<'a>, task: &'a TaskId) -> Self {
        let (context, client) = (foreground.context, foreground.client);
        let deadline = foreground.background_after.and_then(|after| Instant::now().checked_add(after));
        let report = move |problem: &Problem| context.report(problem);
        let detach = foreground.keyboard.as_mut().and_then(|keyboard| keyboard.detach.take());
        let pump: Option<Work<'a, Typing>> =
            match detach {
                Some(mut detach) => {
                    Some(Box::pin(async move { stdin_pump::keys(client, task, &mut detach, &report).await }))
                }
                None if foreground.pump => Some(Box::pin(async move {
                    stdin_pump::whole(client, task, &report).await.map(|_| Typing::Over)
                })),
                None => None,
            };
        // While the user types, the cursor is theirs.
        let typing = foreground.keyboard.is_some()
            || (foreground.pump && rustix::termios::isatty(rustix::stdio::stdin()));
        let spinner = if typing { None } else { Spinner::new(context, task, foreground.printer.is_some()) };
        // A spinner is taken off the terminal before this process ends, and SIGTERM says what goes on.
        let endings = if spinner.is_some() { Endings::catch() } else { Endings::catch_term() };
        let resized = Rc::new(Notify::new());
        let resizing =
            Box::pin(follow_size(client, task, foreground.keyboard.is_some(), Rc::clone(&resized)));
        let output = TaskOutput::new(client, task);
        let (passing, silent) = (None, None);
        Self {
            foreground,
            task,
            output,
            pump,
            spinner,
            endings,
            resizing,
            resized,
            passing,
            silent,
            deadline,
        }
    }

    /// Stays until the task has ended, or there is a reason to leave.
    pub(super) async fn run(mut self) -> Result<Attended, Failure> {
        if self.foreground.interrupts.pressed > 0
            && let Some(attended) = self.interrupted()
        {
            return Ok(attended);
        }
        loop {
            let event = self.next().await?;
            if let Some(spinner) = &mut self.spinner {
                match event {
                    Event::Turned => spinner.draw(),
                    _ => spinner.rest(),
                }
            }
            if let Some(attended) = self.handle(event).await? {
                return Ok(attended);
            }
        }
    }

    /// Waits for whatever happens first. Cancelling it loses nothing.
    async fn next(&mut self) -> Result<Event, Error> {
        let Self { foreground, output, pump, spinner, endings, resizing, passing, silent, deadline, .. } =
            self;
        let Foreground { interrupts, keyboard, printer, .. } = foreground;
        let within_line = printer.as_ref().is_some_and(Printer::is_within_line);
        let output_wanted = |printer: &Printer| Wanted::Output { spans: printer.needs_spans() };
        let wanted = printer.as_ref().map_or(Wanted::End, output_wanted);
        let late = async {
            at(*deadline).await;
            // The offset for a later reader is known once all that was printed is written.
            let last = deadline.map_or_else(Instant::now, |deadline| deadline + LAST_OUTPUT_TIMEOUT);
            let _ = timeout_at(last, nonblocking_stdio::settled()).await;
        };
        let turned = async {
            match spinner {
                Some(spinner) if !within_line => spinner.turn().await,
                Some(_) | None => pending().await,
            }
        };
        let told = async {
            match (keyboard, endings) {
                (Some(keyboard), _) => keyboard.told().await,
                (None, Some(endings)) => Told::Leave(endings.next().await),
                (None, None) => pending().await,
            }
        };
        Ok(tokio::select! {
            biased;
            told = told => Event::Told(told),
            () = interrupts.next() => Event::Interrupted,
            () = late => Event::Late,
            result = done(passing) => Event::Passed(result),
            () = at(*silent) => Event::Silent,
            news = output.next(wanted) => Event::News(news?),
            result = done(pump) => Event::Pumped(result),
            () = resizing => Event::Turned,
            () = turned => Event::Turned,
        })
    }

    /// Reacts to an event; how staying ended, if it did.
    async fn handle(&mut self, event: Event) -> Result<Option<Attended>, Failure> {
        let foreground = &mut self.foreground;
        match event {
            Event::Interrupted => Ok(self.interrupted()),
            Event::Passed(result) => {
                (self.passing, self.silent) = (None, None);
                Ok(foreground.passed(result))
            }
            Event::Silent => {
                self.silent = None;
                foreground.not_answered().map(|()| None)
            }
            Event::Told(told) => Ok(self.told(told).await),
            Event::Late => {
                let attachable = foreground.keyboard.is_some();
                Ok(Some(foreground.leave(self.output.offset(), attachable)))
            }
            Event::Pumped(Ok(Typing::Detached)) => Ok(Some(foreground.leave(0, true))),
            Event::Pumped(result) => {
                self.pump = None;
                if let Err(error) = result {
                    foreground.context.report(&error.into_problem());
                }
                Ok(None)
            }
            Event::News(news) => self.news(news),
            Event::Turned => Ok(None),
        }
    }

    /// Begins what a Ctrl-C means.
    fn interrupted(&mut self) -> Option<Attended> {
        match self.foreground.interrupted(self.task) {
            Ok(begun) => {
                (self.passing, self.silent) = (Some(begun), Some(Instant::now() + ANSWER_TIMEOUT));
                None
            }
            Err(attended) => Some(attended),
        }
    }

    /// Does what a signal says.
    async fn told(&mut self, told: Told) -> Option<Attended> {
        let foreground = &mut self.foreground;
        match (told, &mut foreground.keyboard) {
            (Told::Leave(code), _) => return Some(foreground.part_with(code)),
            (Told::Stop, Some(keyboard)) => keyboard.stop(&foreground.context.console),
            (Told::GoOn, Some(keyboard)) => {
                if let Some(code) = keyboard.until_foreground().await {
                    return Some(foreground.part_with(code));
                }
                keyboard.go_on();
                self.resized.notify_one();
                if foreground.repaints() {
                    nonblocking_stdio::abandon();
                    self.output.glance();
                }
            }
            (Told::Stop | Told::GoOn, None) => {}
        }
        None
    }

    /// Shows what is new of the task.
    fn news(&mut self, news: News) -> Result<Option<Attended>, Failure> {
        let foreground = &mut self.foreground;
        match news {
            News::Output(chunk, spans) => {
                let before = nonblocking_stdio::taken_of_stdout();
                let attended = foreground.print(&chunk, &spans)?;
                let unchanged = foreground.printer.as_ref().is_some_and(Printer::is_unchanged);
                self.output.printed(&chunk, before.filter(|_| unchanged));
                Ok(attended)
            }
            News::Glimpsed(Glimpse::Ended(task)) => Ok(Some(foreground.ended(task))),
            News::Glimpsed(seen) => foreground.show(&seen),
            News::Blind => {
                self.output.unglance();
                Ok(None)
            }
            News::Complete => foreground.finish_printing().map(|()| None),
            News::Closed => foreground.closed(),
            News::Ended(task) => Ok(task.map(|task| foreground.ended(task))),
        }
    }
}

/// The result of some work; never ready without one.
async fn done<T>(work: &mut Option<Work<'_, T>>) -> Result<T, Error> {
    match work {
        Some(work) => work.await,
        None => pending().await,
    }
}

/// Waits for a time; forever if there is none.
async fn at(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => pending().await,
    }
}

/// Gives the task's terminal the size of this one, now and whenever that changes, or may have; where the keys are not
/// the task's, never.
async fn follow_size(client: &Client, task: &TaskId, ours: bool, again: Rc<Notify>) {
    let window = signal(SignalKind::window_change()).ok().filter(|_| ours);
    let (Some(mut window), mut told) = (window, None) else { return pending().await };
    // The task was submitted with the size of that time.
    loop {
        let now = terminal_size::of_this_terminal();
        if let Some(size) = now.filter(|_| now != told) {
            told = now;
            // A task that has ended needs none; a daemon that is away is called again at the next change.
            if client.resize(task.as_str(), size).await.is_err() {
                told = None;
            }
        }
        tokio::select! {
            changed = window.recv() => if changed.is_none() {
                return pending().await;
            },
            () = again.notified() => {}
        }
    }
}
