//! The keyboard of this terminal, passed on key by key to a task that has a terminal of its own.
//!
//! While it is, this terminal neither echoes nor edits lines nor ends them, and no key makes a signal: the task's terminal does all of that, as
//! with `ssh -t`. Ctrl-C is for whoever the task's terminal means, however often it is pressed. The way out are the detach keys, which are
//! looked for in what is typed, or a signal from elsewhere. Whatever ends the command, the terminal is given back as it was, also where it takes
//! nothing; who kills it with SIGKILL types `stty sane`. A command that is stopped (SIGTSTP) gives it back for as long as it is; one that goes on, also after
//! SIGSTOP, which nobody is told of, takes it again.

use std::task::Poll;

use rustix::process::{getpgrp, getpid, kill_process};
use rustix::stdio::stdin;
use rustix::termios::{OptionalActions, Termios, isatty, tcgetattr, tcgetpgrp, tcsetattr};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::command::attach::Detach;
use crate::console::Console;
use crate::outlets;
use crate::screens::Screens;

/// What the interrupt key is to the task's terminal, for whoever is interrupted by a signal.
pub(crate) const INTERRUPT: &[u8] = b"\x03";

/// The signals by which a process is ended politely, caught: what it has done to the terminal is undone first.
#[derive(Debug)]
pub(crate) struct Endings(Vec<(Signal, u8)>);

impl Endings {
    /// Catches them from now on. Must be called inside a tokio runtime.
    pub(crate) fn catch() -> Option<Self> {
        Self::of(&[SignalKind::terminate(), SignalKind::hangup(), SignalKind::quit()])
    }

    /// Catches only what asks this very process to end: where there is no terminal to undo, a hang-up may be ignored on purpose.
    pub(crate) fn catch_term() -> Option<Self> {
        Self::of(&[SignalKind::terminate()])
    }

    fn of(kinds: &[SignalKind]) -> Option<Self> {
        let ending = |kind: &SignalKind| {
            let code = u8::try_from(kind.as_raw_value()).ok()?.checked_add(128)?;
            Some((signal(*kind).ok()?, code))
        };
        kinds.iter().map(ending).collect::<Option<_>>().map(Self)
    }

    /// The code to leave with, once one of them has come.
    pub(crate) async fn next(&mut self) -> u8 {
        std::future::poll_fn(|cx| {
            let mut come = self
                .0
                .iter_mut()
                .filter_map(|(signal, code)| signal.poll_recv(cx).is_ready().then_some(*code));
            come.next().map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }
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
    stops: Signal,
    goes_on: Signal,
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
        let caught = |number: rustix::process::Signal| signal(SignalKind::from_raw(number.as_raw())).ok();
        let (stops, goes_on) =
            (caught(rustix::process::Signal::TSTP)?, caught(rustix::process::Signal::CONT)?);
        let before = tcgetattr(stdin()).ok()?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(stdin(), OptionalActions::Now, &raw).ok()?;
        outlets::is_raw(true);
        let (detach, screens) = (Some(detach), Screens::default());
        Some(Self { before, raw, endings, stops, goes_on, detach, screens })
    }

    /// What a signal says, once there is one.
    pub(crate) async fn told(&mut self) -> Told {
        tokio::select! {
            biased;
            code = self.endings.next() => Told::Leave(code),
            _ = self.stops.recv() => Told::Stop,
            _ = self.goes_on.recv() => Told::GoOn,
        }
    }

    /// Gives it back and stops this process, as the suspend key would. Whoever continues it is heard as any other.
    pub(crate) fn stop(&mut self, console: &Console) {
        if console.terminal {
            outlets::abandon();
            self.tidy(console);
            outlets::part();
        }
        self.screens = Screens::default();
        outlets::is_raw(false);
        let _ = tcsetattr(stdin(), OptionalActions::Now, &self.before);
        let _ = kill_process(getpid(), rustix::process::Signal::STOP);
    }

    /// Takes it again: whoever had it meanwhile has left it otherwise. In the background that waits, by the kernel's word, for the foreground.
    pub(crate) fn go_on(&self) {
        let _ = tcsetattr(stdin(), OptionalActions::Now, &self.raw);
        outlets::is_raw(true);
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

    fn tidy(&self, console: &Console) {
        // Where nobody sees the screen there is nothing to tidy.
        let _ = console.data(self.screens.given_back().as_bytes());
    }
}

impl Drop for Keyboard {
    fn drop(&mut self) {
        outlets::is_raw(false);
        // A terminal that is gone needs nothing back.
        let _ = tcsetattr(stdin(), OptionalActions::Now, &self.before);
    }
}
