//! Staying with a task: live output, Ctrl-C, stdin, and leaving it to the background.
//!
//! The task never depends on this process. Whatever ends it (a hang-up, a kill, a closed terminal), the task goes on.
//!
//! Nobody is waited for outside of one loop, in [`Foreground::attend`]: a daemon that stands still, a terminal that takes nothing and a pipe that nobody reads hold up what they have to do
//! with, and neither a signal nor the keys. What is printed goes by `outlets`, and output is asked for when all before it was taken.

use std::future::{Future, pending};
use std::pin::{Pin, pin};
use std::time::Duration;

use bytes::Bytes;
use homing_api::{Code, Problem, StopRequest};
use homing_client::{Chunk, Client, Error, Follow, Mode, Span};
use homing_model::{Task, TaskId};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};

use crate::cli::context::Context;
use crate::cli::failure::{Failure, heard};
use crate::render::line_stamps;
use crate::render::printer::Printer;
use crate::render::spinner::Spinner;
use crate::render::terminal_snapshot::{Glance, Glimpse};
use crate::terminal::keyboard::{self, Caught, Endings, Keyboard, Told};
use crate::terminal::nonblocking_stdio;
use crate::terminal::stdin_pump;
use crate::terminal::stdin_pump::Typing;
use crate::terminal::terminal_size;

/// What 128+SIGINT is to a shell: this process left because of Ctrl-C.
pub(crate) const INTERRUPTED: u8 = 130;
/// The same for SIGHUP: the terminal is gone.
const HUNG_UP: u8 = 129;
/// How long somebody who wants to leave waits for a daemon that does not answer.
pub(crate) const MOMENT: Duration = Duration::from_secs(3);
/// How long a reader may take for what is printed when the task is left to the background.
const PARTING: Duration = Duration::from_secs(1);

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

/// Ctrl-C, and how often it came.
#[derive(Debug)]
pub(crate) struct Interrupts {
    signal: Caught,
    pressed: u32,
}

/// Catches Ctrl-C from now on, unless it is ignored, as in the background of a shell without job control.
pub(crate) fn interrupts() -> Result<Interrupts, Failure> {
    match Caught::new(SignalKind::interrupt()) {
        Ok(signal) => Ok(Interrupts { signal, pressed: 0 }),
        Err(error) => {
            Err(Problem::new(Code::SystemLimit, format!("Ctrl-C cannot be caught: {error}")).into())
        }
    }
}

impl Interrupts {
    pub(crate) async fn next(&mut self) {
        self.signal.recv().await;
        self.pressed += 1;
    }

    /// Submits. Who wants to leave meanwhile leaves in a moment, if nobody answers; else the task hears of it.
    pub(crate) async fn heard_beside<T>(
        &mut self,
        on_interrupt: OnInterrupt,
        submit: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        let enough = if on_interrupt == OnInterrupt::Leave { 1 } else { 2 };
        let mut submit = pin!(submit);
        while self.pressed < enough {
            tokio::select! {
                biased;
                submitted = &mut submit => return submitted,
                () = self.next() => {}
            }
        }
        timeout(MOMENT, submit).await.unwrap_or_else(|_| {
            let text = "the daemon does not answer: whether the task was submitted is not known";
            let mut problem = Problem::new(Code::DaemonUnreachable, text);
            problem.advice = "`homing list` shows it if it was; `homing doctor` says more.".to_owned();
            Err(problem.into())
        })
    }
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

enum Step {
    Interrupted,
    Passed(Result<Passed, Error>),
    Silent,
    Late,
    Told(Told),
    Pumped(Result<Typing, Error>),
    Output(Chunk, Vec<Span>),
    Glimpsed(Glimpse),
    /// No glimpses any more.
    Blind,
    Printed,
    /// Nobody takes what is printed any more.
    Closed,
    Ended(Option<Box<Task>>),
    Turned,
}

/// What became of an interrupt.
enum Passed {
    /// Done, in these words.
    Done(&'static str),
    /// The task had ended before.
    Ended,
}

type Passing<'a> = Pin<Box<dyn Future<Output = Result<Passed, Error>> + 'a>>;

/// Where what is shown comes from.
struct Shown<'a> {
    client: &'a Client,
    task: &'a TaskId,
    follow: Follow,
    /// Came, and it is not known yet where from.
    chunk: Option<Chunk>,
    /// The screen instead, after somebody was away.
    glance: Option<Glance<'a>>,
    /// Where that begins which is being printed.
    from: u64,
    /// The same of its bytes, behind a gap, and how much of stdout was taken before; for what is passed on as it is.
    passed: Option<(u64, u64)>,
}

/// What is wanted of it.
#[derive(Clone, Copy)]
enum Wanted {
    Nothing,
    Output { spans: bool },
}

impl Shown<'_> {
    /// The next output, or the end. Dropping it half-way loses nothing.
    async fn next(&mut self, wanted: Wanted) -> Result<Step, Error> {
        let Wanted::Output { spans } = wanted else {
            let answer = self.client.wait(std::slice::from_ref(self.task), Mode::All, None).await?;
            let ended = answer.items.into_iter().find(|task| task.status.is_terminal());
            return Ok(Step::Ended(ended.map(Box::new)));
        };
        nonblocking_stdio::settled().await;
        if nonblocking_stdio::broken().is_some() {
            return Ok(Step::Closed);
        }
        if let Some(glance) = &mut self.glance {
            return Ok(match glance.next().await {
                Ok(seen) => Step::Glimpsed(seen),
                Err(_) => Step::Blind,
            });
        }
        if self.chunk.is_none() {
            (self.from, self.passed) = (self.follow.offset(), None);
            self.chunk = self.follow.next().await?;
        }
        let Some(chunk) = &self.chunk else { return Ok(Step::Printed) };
        // Where the source of some bytes cannot be told they are still shown: as stdout.
        let found = match spans {
            true => line_stamps::spans(self.client, self.task, chunk).await.unwrap_or_default(),
            false => Vec::new(),
        };
        Ok(self.chunk.take().map_or(Step::Printed, |chunk| Step::Output(chunk, found)))
    }

    /// Where whoever reads on begins.
    fn offset(&self) -> u64 {
        if self.chunk.is_none() && nonblocking_stdio::is_settled() {
            return self.follow.offset();
        }
        match (self.passed, nonblocking_stdio::taken_of_stdout()) {
            (Some((begin, before)), Some(taken)) if taken > before => begin + (taken - before),
            _ => self.from,
        }
    }
}

impl Foreground<'_> {
    /// Stays until the task has ended, or there is a reason to leave.
    pub(crate) async fn attend(mut self) -> Result<Attended, Failure> {
        let deadline = self.background_after.and_then(|after| Instant::now().checked_add(after));
        let (client, task) = (self.client, self.task.clone());
        let follow = client.follow(&task, 0, None);
        let mut shown =
            Shown { client, task: &task, follow, chunk: None, glance: None, from: 0, passed: None };
        let context = self.context;
        let tell = move |problem: &Problem| context.report(problem);
        let mut pump: Option<Pin<Box<dyn Future<Output = _>>>> = None;
        let detach = self.keyboard.as_mut().and_then(|keyboard| keyboard.detach.take());
        if let Some(mut detach) = detach {
            let (task, tell) = (&task, &tell);
            pump = Some(Box::pin(async move { stdin_pump::keys(client, task, &mut detach, tell).await }));
        } else if self.pump {
            pump =
                Some(Box::pin(async { stdin_pump::whole(client, &task, &tell).await.map(|_| Typing::Over) }));
        }
        // Where somebody types, the cursor is theirs.
        let typing =
            self.keyboard.is_some() || (self.pump && rustix::termios::isatty(rustix::stdio::stdin()));
        let mut spinner =
            if typing { None } else { Spinner::new(self.context, &self.task, self.printer.is_some()) };
        // A line that stands on the terminal is taken away before this process is, and whoever ends it is told what goes on.
        let mut endings = if spinner.is_some() { Endings::catch() } else { Endings::catch_term() };
        let resized = Notify::new();
        let mut resizing = pin!(follow_size(client, &task, self.keyboard.is_some(), &resized));
        let mut passing: Option<Passing<'_>> = None;
        let mut silent = None;
        if self.interrupts.pressed > 0 {
            match self.interrupted(client, &task) {
                Ok(begun) => (passing, silent) = (Some(begun), Some(Instant::now() + MOMENT)),
                Err(attended) => return Ok(attended),
            }
        }
        loop {
            let within = self.printer.as_ref().is_some_and(Printer::is_within_line);
            let wanted = match &self.printer {
                Some(printer) => Wanted::Output { spans: printer.needs_spans() },
                None => Wanted::Nothing,
            };
            let late = async {
                at(deadline).await;
                // Whoever reads on must know from where.
                let last = deadline.map_or_else(Instant::now, |deadline| deadline + PARTING);
                let _ = timeout_at(last, nonblocking_stdio::settled()).await;
            };
            let turned = async {
                match &mut spinner {
                    Some(spinner) if !within => spinner.turn().await,
                    Some(_) | None => pending().await,
                }
            };
            let pumped = async {
                match &mut pump {
                    Some(pump) => pump.await,
                    None => pending().await,
                }
            };
            let passed = async {
                match &mut passing {
                    Some(passing) => passing.await,
                    None => pending().await,
                }
            };
            let told = async {
                match (&mut self.keyboard, &mut endings) {
                    (Some(keyboard), _) => keyboard.told().await,
                    (None, Some(endings)) => Told::Leave(endings.next().await),
                    (None, None) => pending().await,
                }
            };
            let step = tokio::select! {
                biased;
                told = told => Step::Told(told),
                () = self.interrupts.next() => Step::Interrupted,
                () = late => Step::Late,
                result = passed => Step::Passed(result),
                () = at(silent) => Step::Silent,
                step = shown.next(wanted) => step?,
                result = pumped => Step::Pumped(result),
                () = &mut resizing => Step::Turned,
                () = turned => Step::Turned,
            };
            if let Some(spinner) = &mut spinner {
                match step {
                    Step::Turned => spinner.draw(),
                    _ => spinner.rest(),
                }
            }
            match step {
                Step::Interrupted => match self.interrupted(client, &task) {
                    Ok(begun) => (passing, silent) = (Some(begun), Some(Instant::now() + MOMENT)),
                    Err(attended) => return Ok(attended),
                },
                Step::Passed(result) => {
                    (passing, silent) = (None, None);
                    if let Some(attended) = self.passed(result) {
                        return Ok(attended);
                    }
                }
                Step::Silent if self.interrupts.pressed < 2 => {
                    silent = None;
                    self.note(&format!(
                        "homing: nobody has answered yet; once more stops {task}, or leaves if that is not answered either"
                    ));
                }
                Step::Silent => {
                    self.hurry();
                    return Err(no_answer(&task).into());
                }
                Step::Told(Told::Leave(code)) => return Ok(self.part_with(code)),
                Step::Told(Told::Stop) => {
                    if let Some(keyboard) = &mut self.keyboard {
                        keyboard.stop(&self.context.console);
                    }
                }
                Step::Told(Told::GoOn) => {
                    if let Some(keyboard) = &mut self.keyboard {
                        if let Some(code) = keyboard.until_foreground().await {
                            return Ok(self.part_with(code));
                        }
                        keyboard.go_on();
                        resized.notify_one();
                        if self.repaints() {
                            nonblocking_stdio::abandon();
                            shown.glance = Some(Glance::at(client, &task));
                        }
                    }
                }
                Step::Late => {
                    let (attachable, offset) = (self.keyboard.is_some(), shown.offset());
                    return Ok(self.leave(offset, attachable));
                }
                Step::Pumped(Ok(Typing::Detached)) => return Ok(self.leave(0, true)),
                Step::Pumped(result) => {
                    pump = None;
                    if let Err(error) = result {
                        self.context.report(&error.into_problem());
                    }
                }
                Step::Output(chunk, spans) => {
                    let before = nonblocking_stdio::taken_of_stdout();
                    if let Some(attended) = self.print(&chunk, &spans)? {
                        return Ok(attended);
                    }
                    let unchanged = self.printer.as_ref().is_some_and(Printer::is_unchanged);
                    shown.passed = before.filter(|_| unchanged).map(|before| (chunk.offset, before));
                }
                Step::Glimpsed(Glimpse::Ended(task)) => return Ok(self.ended(task)),
                Step::Glimpsed(seen) => {
                    if let Some(attended) = self.show(&seen)? {
                        return Ok(attended);
                    }
                }
                Step::Blind => shown.glance = None,
                Step::Printed => self.finish_printing()?,
                Step::Closed => {
                    if let Some(attended) = self.closed()? {
                        return Ok(attended);
                    }
                }
                Step::Ended(Some(task)) => return Ok(self.ended(task)),
                Step::Ended(None) | Step::Turned => {}
            }
        }
    }

    fn ended(&mut self, task: Box<Task>) -> Attended {
        // A program that ended by itself has left the screen as it wants it; one that was ended could not.
        if task.outcome.as_ref().is_none_or(|outcome| outcome.exit_code.is_none()) {
            self.give_back();
        }
        Attended::Ended(task, self.heard && nonblocking_stdio::is_whole())
    }

    fn print(&mut self, chunk: &Chunk, spans: &[Span]) -> Result<Option<Attended>, Failure> {
        let Some(printer) = &mut self.printer else { return Ok(None) };
        let printed = printer.print(chunk, spans);
        if let Some(keyboard) = &mut self.keyboard {
            keyboard.shown(&chunk.bytes);
        }
        self.unless_closed(printed)
    }

    /// Whether this terminal shows that of the task, and so can be shown it anew.
    fn repaints(&self) -> bool {
        self.context.console.terminal && !self.context.json && self.printer.is_some()
    }

    /// Shows the screen, or a part of it, to whoever was away from it.
    fn show(&mut self, seen: &Glimpse) -> Result<Option<Attended>, Failure> {
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

    fn finish_printing(&mut self) -> Result<(), Failure> {
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

    fn closed(&mut self) -> Result<Option<Attended>, Failure> {
        let result = nonblocking_stdio::broken().map_or(Ok(()), |error| Err(Failure::writing(&error)));
        self.unless_closed(result)
    }

    /// Passes a Ctrl-C on, or leaves by it.
    fn interrupted<'a>(&mut self, client: &'a Client, id: &'a TaskId) -> Result<Passing<'a>, Attended> {
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

    fn passed(&mut self, result: Result<Passed, Error>) -> Option<Attended> {
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

    fn part_with(&mut self, code: u8) -> Attended {
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

    fn leave(&mut self, offset: u64, attachable: bool) -> Attended {
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

/// At that time, if there is one.
async fn at(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => pending().await,
    }
}

/// Gives the task's terminal the size of this one, now and whenever that changes, or may have; where the keys are not the task's, never.
async fn follow_size(client: &Client, task: &TaskId, ours: bool, again: &Notify) {
    let window = signal(SignalKind::window_change()).ok().filter(|_| ours);
    let (Some(mut window), mut told) = (window, None) else { return pending().await };
    // The task was submitted with the size that it was then.
    loop {
        let now = terminal_size::of_this_terminal();
        if let Some(size) = now.filter(|_| now != told) {
            told = now;
            // A task that is over needs none, and a daemon that is away is asked again with the next change.
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
