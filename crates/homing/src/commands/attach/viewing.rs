//! Looking at a task's terminal and typing into it, through restarts of the daemon.
//!
//! The connection comes and goes; the terminal is the task's all the while, and the detach keys always work. What is typed while there is no
//! connection waits, up to a bound, and is sent once there is one. What was sent and not yet said to be taken when a connection broke may have
//! arrived or not: it is not sent again, since nothing typed must come twice, and that is said.
//!
//! Nobody waits for another here: a daemon that stands still holds up what is sent to it, a terminal that takes nothing (stopped, a frozen window)
//! what is shown on it, and neither holds up the keys that detach, or a signal. Every wait is in one of two loops, in [`Viewing::look`] and in
//! [`Viewing::connect`], and both hear signals and keys all the while; the rest of this file only puts things in a row. What is shown is asked for
//! when all before it was taken. Keys wait behind one another: who has typed 64 KiB that nobody took is heard when some of it was.

use std::pin::pin;
use std::time::Duration;

use bytes::Bytes;
use homing_api::attach::{AttachEvent, AttachInput, AttachRequest};
use homing_api::{Code, Problem};
use homing_client::{Client, Error, Keys, Screen, Seen};
use homing_model::{Task, TerminalSize};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::detach::Detach;
use super::terminal::{Stirred, Terminal};
use crate::cli::failure::Failure;
use crate::terminal::keyboard::{self, Caught};
use crate::terminal::nonblocking_stdio;

/// Typed while there is no connection, at most.
const TYPED_AHEAD: usize = 64 * 1024;
/// Sent and not yet said to be taken, at most; then what is typed waits here.
const UNDER_WAY: u64 = 256 * 1024;
/// Until somebody is told that there is no connection.
const NOTICEABLE: Duration = Duration::from_secs(1);
/// How long something is said over the last line.
const SAID: Duration = Duration::from_secs(3);
/// For what was typed just before somebody left, and for the goodbye.
const PARTING: Duration = Duration::from_secs(1);

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
    suspend: Caught,
    endings: [(Caught, i32); 4],
}

impl Signals {
    fn catch() -> std::io::Result<Self> {
        let ending = |kind: SignalKind| Ok::<_, std::io::Error>((Caught::new(kind)?, kind.as_raw_value()));
        Ok(Self {
            window: signal(SignalKind::window_change())?,
            suspend: Caught::new(SignalKind::from_raw(rustix::process::Signal::TSTP.as_raw()))?,
            endings: [
                ending(SignalKind::terminate())?,
                ending(SignalKind::hangup())?,
                ending(SignalKind::interrupt())?,
                ending(SignalKind::quit())?,
            ],
        })
    }

    async fn next(&mut self) -> Told {
        let Self { window, suspend, endings } = self;
        tokio::select! {
            number = ended(endings) => Told::End(number),
            () = suspend.recv() => Told::Suspend,
            _ = window.recv() => Told::Window,
        }
    }
}

/// The signal to leave by, once one has come.
async fn ended(
    [(one, first), (two, second), (three, third), (four, fourth)]: &mut [(Caught, i32); 4],
) -> i32 {
    tokio::select! {
        () = one.recv() => *first,
        () = two.recv() => *second,
        () = three.recv() => *third,
        () = four.recv() => *fourth,
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
    /// The size that this connection was told of.
    told_size: Option<TerminalSize>,
    /// Asked to stop for a while, in the middle of something.
    suspended: bool,
    /// When what was said over the last line goes.
    said_until: Option<Instant>,
    /// There is room for the task's screen.
    begun: bool,
    /// Bytes that were typed and that nobody may have read, in all.
    pub(super) uncertain: u64,
}

enum Step {
    Stirred(std::io::Result<Stirred>),
    Told(Told),
    Seen(Result<Option<Seen>, Error>),
    Silence,
    Broken,
}

/// Something for the connection.
enum Order {
    Keys(Vec<u8>),
    Ask(AttachRequest),
}

/// Sends what is ordered, in order; ends with the orders, or with the connection.
async fn send(keys: &mut Keys, mut orders: mpsc::UnboundedReceiver<Order>) {
    while let Some(order) = orders.recv().await {
        let sent = match order {
            Order::Keys(bytes) => keys.send(Bytes::from(bytes)).await,
            Order::Ask(request) => keys.ask(request).await,
        };
        if sent.is_err() {
            return;
        }
    }
}

impl<'a> Viewing<'a> {
    /// Takes the terminal.
    pub(super) fn begin(
        client: &'a Client,
        task: &'a str,
        told_size: Option<TerminalSize>,
        detach: Detach,
    ) -> Result<Self, Failure> {
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
            told_size,
            suspended: false,
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
                // Who stands still need not hear it.
                let _ = timeout(PARTING, keys.close()).await;
                return Ok(left);
            }
            let lost = self.sent.saturating_sub(self.tally.taken + self.tally.dropped);
            self.uncertain += lost + self.tally.dropped;
            (self.sent, self.tally) = (0, AttachInput::default());
            match self.connect().await? {
                Ok(again) => (screen, keys) = again,
                Err(left) => {
                    // Typed while nobody was there to take it.
                    self.uncertain += self.waiting.len() as u64;
                    return Ok(left);
                }
            }
            if lost > 0 {
                let text = format!(
                    " homing: the daemon restarted; the last {lost} bytes typed may not have arrived "
                );
                self.say(&text);
            }
        }
    }

    /// One connection. None if it broke.
    async fn look(&mut self, screen: &mut Screen, keys: &mut Keys) -> Result<Option<Left>, Failure> {
        // Not bounded by its count: of what is typed no more than `UNDER_WAY` is in it, and of the rest a few words.
        let (orders, ordered) = mpsc::unbounded_channel();
        let mut sending = pin!(send(keys, ordered));
        loop {
            if std::mem::take(&mut self.suspended) {
                if let Some(left) = self.suspend().await? {
                    return Ok(Some(left));
                }
                let _ = orders.send(Order::Ask(AttachRequest::Refresh(true)));
            }
            let size = self.terminal.size();
            if self.told_size != Some(size) {
                self.told_size = Some(size);
                for request in [AttachRequest::Resize(size), AttachRequest::Refresh(true)] {
                    let _ = orders.send(Order::Ask(request));
                }
            }
            let room = self.sent.saturating_sub(self.tally.taken + self.tally.dropped) < UNDER_WAY;
            if room && !self.waiting.is_empty() {
                self.order_typed(&orders);
            }
            let until = self.said_until;
            let silence = async {
                match until {
                    Some(until) => sleep_until(until).await,
                    None => std::future::pending().await,
                }
            };
            let shown = self.terminal.is_done();
            let step = tokio::select! {
                biased;
                told = self.signals.next() => Step::Told(told),
                stirred = self.terminal.stirs(self.waiting.len() < TYPED_AHEAD) => Step::Stirred(stirred),
                () = silence => Step::Silence,
                () = &mut sending => Step::Broken,
                seen = screen.next(), if shown => Step::Seen(seen),
            };
            let left = match step {
                Step::Told(told) => self.told(told),
                Step::Stirred(stirred) => {
                    let left = self.stirred(stirred)?;
                    if matches!(left, Some(Left::Detached)) {
                        // What came before the keys is the task's.
                        self.order_typed(&orders);
                        drop(orders);
                        let _ = timeout(PARTING, sending).await;
                        return Ok(left);
                    }
                    left
                }
                Step::Silence => {
                    self.said_until = None;
                    let _ = orders.send(Order::Ask(AttachRequest::Refresh(true)));
                    None
                }
                Step::Seen(Ok(Some(Seen::Bytes(bytes)))) => {
                    self.terminal.show(&bytes);
                    None
                }
                Step::Seen(Ok(Some(Seen::Event(event)))) => self.heard(event)?,
                Step::Broken | Step::Seen(Ok(None) | Err(_)) => return Ok(None),
            };
            if left.is_some() {
                return Ok(left);
            }
        }
    }

    fn order_typed(&mut self, orders: &mpsc::UnboundedSender<Order>) {
        let typed = std::mem::take(&mut self.waiting);
        self.sent += typed.len() as u64;
        let _ = orders.send(Order::Keys(typed));
    }

    fn heard(&mut self, event: AttachEvent) -> Result<Option<Left>, Failure> {
        match event {
            AttachEvent::Screen(screen) => {
                // The alternate screen takes nothing away.
                if !self.begun && !screen.alternate {
                    self.terminal.make_room();
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
                    self.say(&text);
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
        let mut tries: u32 = 0;
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
                        if let Some(left) = self.told(told) {
                            return Ok(Err(left));
                        }
                        if std::mem::take(&mut self.suspended)
                            && let Some(left) = self.suspend().await?
                        {
                            return Ok(Err(left));
                        }
                    }
                    stirred = self.terminal.stirs(self.waiting.len() < TYPED_AHEAD) => {
                        if let Some(left) = self.stirred(stirred)? {
                            return Ok(Err(left));
                        }
                    }
                    () = sleep_until(noticed), if !told_of => {
                        told_of = true;
                        self.terminal.say(" homing: the daemon is away; connecting again ");
                    }
                    result = &mut attempt => break result,
                }
            };
            match result {
                Ok(again) => {
                    self.told_size = Some(size);
                    return Ok(Ok(again));
                }
                // It ended while nobody served us.
                Err(error) if error.code() == Some(Code::TaskEnded) => {
                    let task = self.client.task(self.task).await?;
                    return Ok(Err(Left::Ended(Box::new(task))));
                }
                Err(error) if error.is_disconnect() || error.is_shortage() => {
                    tries = tries.saturating_add(1);
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Something was typed, or shown. Why to leave, if that is why.
    fn stirred(&mut self, stirred: std::io::Result<Stirred>) -> Result<Option<Left>, Failure> {
        match stirred {
            Ok(Stirred::Shown) => Ok(None),
            // Whose terminal it is was sent a signal too, which may come later, or to another.
            Ok(Stirred::Typed(None)) => Ok(Some(Left::Signalled(SignalKind::hangup().as_raw_value()))),
            Err(error) if nonblocking_stdio::is_hang_up(&error) => self.stirred(Ok(Stirred::Typed(None))),
            Err(error) => Err(gone(&error)),
            Ok(Stirred::Typed(Some(bytes))) => {
                let (bytes, detached) = self.detach.typed(&bytes);
                self.waiting.extend_from_slice(&bytes);
                Ok(detached.then_some(Left::Detached))
            }
        }
    }

    /// A signal came. None if the viewing goes on, perhaps at another size.
    fn told(&mut self, told: Told) -> Option<Left> {
        match told {
            Told::End(number) => return Some(Left::Signalled(number)),
            // The size is looked at anyway.
            Told::Window => {}
            Told::Suspend => self.suspended = true,
        }
        None
    }

    /// Stops for as long as somebody wants us to, with the terminal as it was before us; who is continued to end leaves.
    async fn suspend(&mut self) -> Result<Option<Left>, Failure> {
        self.terminal.leave();
        // Whoever continues us continues here.
        let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::STOP);
        self.begun = false;
        let endings = &mut self.signals.endings;
        if let Some(number) = keyboard::until_foreground(true, async || ended(endings).await).await {
            return Ok(Some(Left::Signalled(number)));
        }
        self.terminal.enter().map_err(|error| gone(&error))?;
        Ok(None)
    }

    /// Says something until it is taken away again.
    fn say(&mut self, text: &str) {
        self.said_until = Some(Instant::now() + SAID);
        self.terminal.say(text);
    }
}

fn gone(error: &std::io::Error) -> Failure {
    Problem::new(Code::NotATerminal, format!("the terminal is gone: {error}")).into()
}
