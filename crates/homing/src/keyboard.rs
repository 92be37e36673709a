//! The keyboard of this terminal, passed on key by key to a task that has a terminal of its own.
//!
//! While it is, this terminal neither echoes nor edits lines nor ends them, and no key makes a signal: the task's terminal does all of that, as
//! with `ssh -t`. Ctrl-C is for whoever the task's terminal means, however often it is pressed. The way out are the detach keys, which are
//! looked for in what is typed, or a signal from elsewhere. Whatever ends the command, the terminal is given back as it was; who kills it
//! with SIGKILL types `stty sane`.

use rustix::process::getpgrp;
use rustix::stdio::stdin;
use rustix::termios::{OptionalActions, Termios, isatty, tcgetattr, tcgetpgrp, tcsetattr};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::command::attach::Detach;
use crate::console::Console;
use crate::screens::Screens;

/// What the interrupt key is to the task's terminal, for whoever is interrupted by a signal.
pub(crate) const INTERRUPT: &[u8] = b"\x03";

/// The signals by which a process is ended politely, caught: what it has done to the terminal is undone first.
#[derive(Debug)]
pub(crate) struct Endings([(Signal, u8); 3]);

impl Endings {
    /// Catches them from now on. Must be called inside a tokio runtime.
    pub(crate) fn catch() -> Option<Self> {
        let ending = |kind: SignalKind| {
            let code = u8::try_from(kind.as_raw_value()).ok()?.checked_add(128)?;
            Some((signal(kind).ok()?, code))
        };
        let [one, two, three] =
            [SignalKind::terminate(), SignalKind::hangup(), SignalKind::quit()].map(ending);
        Some(Self([one?, two?, three?]))
    }

    /// The code to leave with, once one of them has come.
    pub(crate) async fn next(&mut self) -> u8 {
        let [(one, first), (two, second), (three, third)] = &mut self.0;
        tokio::select! {
            _ = one.recv() => *first,
            _ = two.recv() => *second,
            _ = three.recv() => *third,
        }
    }
}

/// The terminal while it is the task's.
#[derive(Debug)]
pub(crate) struct Keyboard {
    before: Termios,
    endings: Endings,
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
        let before = tcgetattr(stdin()).ok()?;
        let mut keys = before.clone();
        keys.make_raw();
        tcsetattr(stdin(), OptionalActions::Now, &keys).ok()?;
        Some(Self { before, endings, detach: Some(detach), screens: Screens::default() })
    }

    /// The code to leave with, once a signal says to leave.
    pub(crate) async fn ended(&mut self) -> u8 {
        self.endings.next().await
    }

    /// The task's program wrote this on the screen.
    pub(crate) fn shown(&mut self, bytes: &[u8]) {
        self.screens.pass(bytes);
    }

    /// Gives it back after the task's program was left, or ended, in its middle: it may have left the screen in any state.
    pub(crate) fn leave(self, console: &Console) {
        if console.terminal {
            // Where nobody sees the screen there is nothing to tidy.
            let _ = console.data(self.screens.given_back().as_bytes());
        }
    }
}

impl Drop for Keyboard {
    fn drop(&mut self) {
        // A terminal that is gone needs nothing back.
        let _ = tcsetattr(stdin(), OptionalActions::Now, &self.before);
    }
}
