//! Looking at a task's terminal and typing into it, through restarts of the daemon.
//!
//! The connection comes and goes; the terminal is the task's all the while, and the detach keys always work. What is typed while there is no
//! connection waits, up to a bound, and is sent once there is one. What was sent and not yet said to be taken when a connection broke may have
//! arrived or not: it is not sent again, since nothing typed must come twice, and that is said.

use std::time::Duration;

use bytes::Bytes;
use homing_client::{Client, Error, Keys, Screen, Seen};
use homing_model::attach::{AttachEvent, AttachInput, AttachRequest, TerminalSize};
use homing_model::{Code, Problem, Task};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{Instant, sleep, sleep_until};

use super::detach::Detach;
use super::terminal::Terminal;
use crate::failure::Failure;

/// Typed while there is no connection, at most.
const TYPED_AHEAD: usize = 64 * 1024;
/// Sent and not yet said to be taken, at most; then what is typed waits here.
const UNDER_WAY: u64 = 256 * 1024;
/// Until somebody is told that there is no connection.
const NOTICEABLE: Duration = Duration::from_secs(1);
/// How long something is said over the last line.
const SAID: Duration = Duration::from_secs(3);
/// Tries to connect again, with longer pauses, about ten seconds in all.
const TRIES: u32 = 24;

/// How it ended.
#[derive(Debug)]
pub(super) enum Left {
    /// By the keys.
    Detached,
    /// The task ended.
    Ended(Box<Task>),
    /// A signal said so.
    Signalled(i32),
}

/// What else may happen.
struct Signals {
    window: Signal,
    suspend: Signal,
    endings: [(Signal, i32); 4],
}

impl Signals {
    fn catch() -> std::io::Result<Self> {
        let ending = |kind: SignalKind| Ok::<_, std::io::Error>((signal(kind)?, kind.as_raw_value()));
        Ok(Self {
            window: signal(SignalKind::window_change())?,
            suspend: signal(SignalKind::from_raw(rustix::process::Signal::TSTP.as_raw()))?,
            endings: [
                ending(SignalKind::terminate())?,
                ending(SignalKind::hangup())?,
                ending(SignalKind::interrupt())?,
                ending(SignalKind::quit())?,
            ],
        })
    }

    async fn next(&mut self) -> Told {
        let [(one, first), (two, second), (three, third), (four, fourth)] = &mut self.endings;
        tokio::select! {
            _ = one.recv() => Told::End(*first),
            _ = two.recv() => Told::End(*second),
            _ = three.recv() => Told::End(*third),
            _ = four.recv() => Told::End(*fourth),
            _ = self.suspend.recv() => Told::Suspend,
            _ = self.window.recv() => Told::Window,
        }
    }
}

#[derive(Clone, Copy)]
enum Told {
    End(i32),
    Suspend,
    Window,
}

/// One who looks.
pub(super) struct Viewing<'a> {
    client: &'a Client,
    task: &'a str,
    terminal: Terminal,
    detach: Detach,
    signals: Signals,
    /// Typed and not yet sent.
    waiting: Vec<u8>,
    /// Sent by this connection.
    sent: u64,
    /// What this connection said of it.
    tally: AttachInput,
    /// When what was said over the last line goes.
    said_until: Option<Instant>,
    /// There is room for the task's screen.
    begun: bool,
    /// Bytes that were typed and that nobody may have read, in all.
    pub(super) uncertain: u64,
}

enum Step {
    Typed(Option<Vec<u8>>),
    Told(Told),
    Seen(Result<Option<Seen>, Error>),
    Silence,
}

impl<'a> Viewing<'a> {
    /// Takes the terminal.
    pub(super) fn begin(client: &'a Client, task: &'a str, detach: Detach) -> Result<Self, Failure> {
        let failed = |error: std::io::Error| {
            Failure::from(Problem::new(Code::NotATerminal, format!("the terminal cannot be taken: {error}")))
        };
        // First of all: from here on nothing that can be caught ends us without giving it back.
        let signals = Signals::catch().map_err(failed)?;
        let terminal = Terminal::take().map_err(failed)?;
        Ok(Self {
            client,
            task,
            terminal,
            detach,
            signals,
            waiting: Vec::new(),
            sent: 0,
            tally: AttachInput::default(),
            said_until: None,
            begun: false,
            uncertain: 0,
        })
    }

    /// Looks until there is a reason to leave. The terminal is given back when this is dropped.
    pub(super) async fn attend(&mut self, first: (Screen, Keys)) -> Result<Left, Failure> {
        let (mut screen, mut keys) = first;
        loop {
            if let Some(left) = self.look(&mut screen, &mut keys).await? {
                keys.close().await;
                return Ok(left);
            }
            let lost = self.sent.saturating_sub(self.tally.taken + self.tally.dropped);
            self.uncertain += lost + self.tally.dropped;
            (self.sent, self.tally) = (0, AttachInput::default());
            match self.connect().await? {
                Ok(again) => (screen, keys) = again,
                Err(left) => return Ok(left),
            }
            if lost > 0 {
                let text = format!(
                    " homing: the daemon restarted; the last {lost} bytes typed may not have arrived "
                );
                self.say(&text).await?;
            }
        }
    }

    /// One connection. None if it broke.
    async fn look(&mut self, screen: &mut Screen, keys: &mut Keys) -> Result<Option<Left>, Failure> {
        loop {
            let room = self.sent.saturating_sub(self.tally.taken + self.tally.dropped) < UNDER_WAY;
            let ready = if room { std::mem::take(&mut self.waiting) } else { Vec::new() };
            if !ready.is_empty() {
                self.sent += ready.len() as u64;
                if keys.send(Bytes::from(ready)).await.is_err() {
                    return Ok(None);
                }
            }
            let until = self.said_until;
            let silence = async {
                match until {
                    Some(until) => sleep_until(until).await,
                    None => std::future::pending().await,
                }
            };
            let step = tokio::select! {
                biased;
                told = self.signals.next() => Step::Told(told),
                typed = self.terminal.typed(), if self.waiting.len() < TYPED_AHEAD => Step::Typed(typed),
                () = silence => Step::Silence,
                seen = screen.next() => Step::Seen(seen),
            };
            match step {
                Step::Told(told) => match self.told(told)? {
                    Some(left) => return Ok(Some(left)),
                    None => {
                        let size = AttachRequest::Resize(self.terminal.size());
                        if keys.ask(size).await.is_err()
                            || keys.ask(AttachRequest::Refresh(true)).await.is_err()
                        {
                            return Ok(None);
                        }
                    }
                },
                Step::Typed(typed) => {
                    if self.typed(typed) {
                        return Ok(Some(Left::Detached));
                    }
                }
                Step::Silence => {
                    self.said_until = None;
                    if keys.ask(AttachRequest::Refresh(true)).await.is_err() {
                        return Ok(None);
                    }
                }
                Step::Seen(Ok(Some(Seen::Bytes(bytes)))) => self.show(&bytes).await?,
                Step::Seen(Ok(Some(Seen::Event(event)))) => {
                    if let Some(left) = self.heard(event).await? {
                        return Ok(Some(left));
                    }
                }
                Step::Seen(Ok(None) | Err(_)) => return Ok(None),
            }
        }
    }

    async fn heard(&mut self, event: AttachEvent) -> Result<Option<Left>, Failure> {
        match event {
            AttachEvent::Screen(screen) => {
                // The alternate screen takes nothing away.
                if !self.begun && !screen.alternate {
                    self.terminal.make_room().await.map_err(|error| gone(&error))?;
                    self.begun = true;
                }
                self.said_until = None;
            }
            AttachEvent::Input(tally) => {
                let dropped = tally.dropped.saturating_sub(self.tally.dropped);
                self.tally = tally;
                if dropped > 0 {
                    let text =
                        format!(" homing: the program does not read; {dropped} bytes typed were dropped ");
                    self.say(&text).await?;
                }
            }
            AttachEvent::Ended(task) => return Ok(Some(Left::Ended(task))),
            AttachEvent::Problem(problem) => return Err((*problem).into()),
        }
        Ok(None)
    }

    /// Connects again, however often the daemon is away meanwhile.
    async fn connect(&mut self) -> Result<Result<(Screen, Keys), Left>, Failure> {
        let noticed = Instant::now() + NOTICEABLE;
        let mut told_of = false;
        let mut tries = 0;
        loop {
            let (client, task, size): (_, _, TerminalSize) = (self.client, self.task, self.terminal.size());
            let attempt = async move {
                if tries > 0 {
                    sleep(Duration::from_millis(10) * 2_u32.pow(tries.min(6))).await;
                }
                client.attach(task, Some(size)).await
            };
            tokio::pin!(attempt);
            let result = loop {
                tokio::select! {
                    biased;
                    told = self.signals.next() => {
                        if let Some(left) = self.told(told)? {
                            return Ok(Err(left));
                        }
                    }
                    typed = self.terminal.typed(), if self.waiting.len() < TYPED_AHEAD => {
                        if self.typed(typed) {
                            return Ok(Err(Left::Detached));
                        }
                    }
                    () = sleep_until(noticed), if !told_of => {
                        told_of = true;
                        self.terminal.say(" homing: the daemon is away; connecting again ").await.map_err(|error| gone(&error))?;
                    }
                    result = &mut attempt => break result,
                }
            };
            match result {
                Ok(again) => return Ok(Ok(again)),
                // It ended while nobody served us.
                Err(error) if error.code() == Some(Code::TaskEnded) => {
                    let task = self.client.task(self.task).await?;
                    return Ok(Err(Left::Ended(Box::new(task))));
                }
                Err(error) if error.is_disconnect() && tries < TRIES => tries += 1,
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Something was typed. True if it detaches.
    fn typed(&mut self, typed: Option<Vec<u8>>) -> bool {
        // A terminal that is gone types nothing any more.
        let Some(bytes) = typed else { return true };
        let (bytes, detached) = self.detach.typed(&bytes);
        self.waiting.extend_from_slice(&bytes);
        detached
    }

    /// A signal came. None if the viewing goes on, perhaps at another size.
    fn told(&mut self, told: Told) -> Result<Option<Left>, Failure> {
        match told {
            Told::End(number) => Ok(Some(Left::Signalled(number))),
            Told::Window => Ok(None),
            Told::Suspend => {
                self.terminal.leave();
                // Whoever continues us continues here.
                let _ =
                    rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::STOP);
                self.terminal.enter().map_err(|error| gone(&error))?;
                self.begun = false;
                Ok(None)
            }
        }
    }

    async fn show(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.terminal.show(bytes).await.map_err(|error| gone(&error))
    }

    async fn say(&mut self, text: &str) -> Result<(), Failure> {
        self.said_until = Some(Instant::now() + SAID);
        self.terminal.say(text).await.map_err(|error| gone(&error))
    }
}

fn gone(error: &std::io::Error) -> Failure {
    Problem::new(Code::NotATerminal, format!("the terminal is gone: {error}")).into()
}
