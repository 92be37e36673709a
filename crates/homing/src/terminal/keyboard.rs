//! The keyboard of this terminal, passed on key by key to a task that has a terminal of its own.
//!
//! While it is, this terminal neither echoes nor edits lines nor ends them, and no key makes a signal: the task's terminal does all of that, as
//! with `ssh -t`. Ctrl-C is for whoever the task's terminal means, however often it is pressed. The way out are the detach keys, which are
//! looked for in what is typed, or a signal from elsewhere. Whatever ends the command, the terminal is given back as it was, also where it takes
//! nothing; who kills it with SIGKILL types `stty sane`. A command that is stopped (SIGTSTP) gives it back for as long as it is; one that goes on, also after
//! SIGSTOP, which nobody is told of, takes it again.

use std::future::{pending, poll_fn};
use std::io;
use std::sync::OnceLock;
use std::task::{Context as Polling, Poll};
use std::time::Duration;

use rustix::process::{getpgrp, getpid, kill_process};
use rustix::stdio::stdin;
use rustix::termios::{OptionalActions, Termios, isatty, tcgetattr, tcgetpgrp, tcsetattr};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::timeout;

use crate::commands::attach::Detach;
use crate::render::console::Console;
use crate::terminal::alternate_screen::Screens;
use crate::terminal::nonblocking_stdio;

/// What the interrupt key is to the task's terminal, for whoever is interrupted by a signal.
pub(crate) const INTERRUPT: &[u8] = b"\x03";

/// A signal, caught, unless this process was started to ignore it: what `nohup` or a shell wanted stays so, and it never comes.
#[derive(Debug)]
pub(crate) struct Caught(Option<Signal>);

impl Caught {
    /// Catches it from now on. Must be called inside a tokio runtime.
    pub(crate) fn new(kind: SignalKind) -> io::Result<Self> {
        if is_ignored(kind) { Ok(Self(None)) } else { signal(kind).map(Some).map(Self) }
    }

    /// Once it has come.
    pub(crate) async fn recv(&mut self) {
        poll_fn(|polling| self.poll_recv(polling)).await;
    }

    fn poll_recv(&mut self, polling: &mut Polling<'_>) -> Poll<()> {
        match &mut self.0 {
            Some(signal) => signal.poll_recv(polling).map(drop),
            None => Poll::Pending,
        }
    }
}

/// Whether the kernel drops a signal before this process hears of it. What is caught later was not ignored before, so that one look is enough.
fn is_ignored(kind: SignalKind) -> bool {
    static IGNORED: OnceLock<u64> = OnceLock::new();
    let ignored = *IGNORED.get_or_init(|| {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
    });
    let bit = u32::try_from(kind.as_raw_value() - 1).ok().and_then(|number| 1_u64.checked_shl(number));
    bit.is_some_and(|bit| ignored & bit != 0)
}

/// The signals by which a process is ended politely, caught: what it has done to the terminal is undone first.
#[derive(Debug)]
pub(crate) struct Endings(Vec<(Caught, u8)>);

impl Endings {
    /// Catches them from now on. Must be called inside a tokio runtime.
    pub(crate) fn catch() -> Option<Self> {
        Self::of(&[SignalKind::terminate(), SignalKind::hangup(), SignalKind::quit()])
    }

    /// Catches only what asks this very process to end: where there is no terminal to undo, a hang-up may be ignored on purpose.
    pub(crate) fn catch_term() -> Option<Self> {
        Self::of(&[SignalKind::terminate()])
    }

    /// Waits for any signal that ends a process, Ctrl-C too; never ends where none can be caught.
    pub(crate) async fn any() {
        let kinds =
            [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup(), SignalKind::quit()];
        match Self::of(&kinds) {
            Some(mut endings) => drop(endings.next().await),
            None => pending().await,
        }
    }

    fn of(kinds: &[SignalKind]) -> Option<Self> {
        let ending = |kind: &SignalKind| {
            let code = u8::try_from(kind.as_raw_value()).ok()?.checked_add(128)?;
            Some((Caught::new(*kind).ok()?, code))
        };
        kinds.iter().map(ending).collect::<Option<_>>().map(Self)
    }

    /// The code to leave with, once one of them has come.
    pub(crate) async fn next(&mut self) -> u8 {
        poll_fn(|polling| {
            let mut come = self
                .0
                .iter_mut()
                .filter_map(|(caught, code)| caught.poll_recv(polling).is_ready().then_some(*code));
            come.next().map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }
}

/// By then whoever was continued to end has heard so.
const HEARD: Duration = Duration::from_millis(200);

/// For somebody who was continued and had the `keys` of this terminal: stops this process again for as long as it is in the background (`bg`, `kill %1`). There the kernel would stop it for
/// touching the terminal, in a call that no signal ends; here a signal that was sent with the one that continues is heard first, and answered with.
pub(crate) async fn until_foreground<T>(keys: bool, mut told: impl AsyncFnMut() -> T) -> Option<T> {
    while keys && isatty(stdin()) && !Keyboard::is_here() {
        if let Ok(told) = timeout(HEARD, told()).await {
            return Some(told);
        }
        let _ = kill_process(getpid(), rustix::process::Signal::STOP);
    }
    None
}

/// What a signal says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Told {
    /// To leave, with this code.
    Leave(u8),
    /// To stop for a while.
    Stop,
    /// To go on: it was stopped.
    GoOn,
}

/// The terminal while it is the task's.
#[derive(Debug)]
pub(crate) struct Keyboard {
    before: Termios,
    raw: Termios,
    endings: Endings,
    stops: Caught,
    goes_on: Caught,
    /// For whoever passes the keys on.
    pub(crate) detach: Option<Detach>,
    /// Of what the task's program drew on it.
    screens: Screens,
}

impl Keyboard {
    /// Whether this process's stdin is a terminal whose keys are meant for it.
    pub(crate) fn is_here() -> bool {
        isatty(stdin()) && tcgetpgrp(stdin()).is_ok_and(|foreground| foreground == getpgrp())
    }

    /// Takes it, if it is there. Must be called inside a tokio runtime.
    pub(crate) fn take(detach: Detach) -> Option<Self> {
        if !Self::is_here() {
            return None;
        }
        // First of all: from here on nothing that can be caught ends us without giving it back.
        let endings = Endings::catch()?;
        let caught =
            |number: rustix::process::Signal| Caught::new(SignalKind::from_raw(number.as_raw())).ok();
        let (stops, goes_on) =
            (caught(rustix::process::Signal::TSTP)?, caught(rustix::process::Signal::CONT)?);
        let before = tcgetattr(stdin()).ok()?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(stdin(), OptionalActions::Now, &raw).ok()?;
        nonblocking_stdio::is_raw(true);
        let (detach, screens) = (Some(detach), Screens::default());
        Some(Self { before, raw, endings, stops, goes_on, detach, screens })
    }

    /// What a signal says, once there is one.
    pub(crate) async fn told(&mut self) -> Told {
        tokio::select! {
            biased;
            code = self.endings.next() => Told::Leave(code),
            () = self.stops.recv() => Told::Stop,
            () = self.goes_on.recv() => Told::GoOn,
        }
    }

    /// The code to leave with, where this process was continued in the background to end; else it is in the foreground now.
    pub(crate) async fn until_foreground(&mut self) -> Option<u8> {
        let endings = &mut self.endings;
        until_foreground(true, async || endings.next().await).await
    }

    /// Gives it back and stops this process, as the suspend key would. Whoever continues it is heard as any other.
    pub(crate) fn stop(&mut self, console: &Console) {
        if console.terminal {
            nonblocking_stdio::abandon();
            self.tidy(console);
            nonblocking_stdio::part();
        }
        self.screens = Screens::default();
        self.set_back();
        let _ = kill_process(getpid(), rustix::process::Signal::STOP);
    }

    /// Takes it again, in the foreground: whoever had it meanwhile has left it otherwise.
    pub(crate) fn go_on(&self) {
        let _ = tcsetattr(stdin(), OptionalActions::Now, &self.raw);
        nonblocking_stdio::is_raw(true);
    }

    /// The task's program wrote this on the screen.
    pub(crate) fn shown(&mut self, bytes: &[u8]) {
        self.screens.pass(bytes);
    }

    /// Gives it back after the task's program was left, or ended, in its middle: it may have left the screen in any state.
    pub(crate) fn leave(self, console: &Console) {
        if console.terminal {
            self.tidy(console);
        }
    }

    /// A terminal that is gone needs nothing back. In the background it is as whoever has it wants it, and the kernel would stop this process for touching it.
    fn set_back(&self) {
        nonblocking_stdio::is_raw(false);
        if Self::is_here() {
            let _ = tcsetattr(stdin(), OptionalActions::Now, &self.before);
        }
    }

    fn tidy(&self, console: &Console) {
        // Where nobody sees the screen there is nothing to tidy.
        let _ = console.data(self.screens.given_back().as_bytes());
    }
}

impl Drop for Keyboard {
    fn drop(&mut self) {
        self.set_back();
    }
}
