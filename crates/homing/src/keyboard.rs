//! The keyboard of this terminal, passed on key by key to a task that has a terminal of its own.
//!
//! While it is, this terminal neither echoes nor edits lines nor ends them: the task's does. Only the interrupt key still makes a signal, so that
//! there is always a way out. Whatever ends the command, the terminal is given back as it was; who kills it with SIGKILL types
//! `stty sane`.

use rustix::process::getpgrp;
use rustix::stdio::stdin;
use rustix::termios::{
    InputModes, LocalModes, OptionalActions, OutputModes, SpecialCodeIndex, Termios, isatty, tcgetattr,
    tcgetpgrp, tcsetattr,
};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::console::Console;

/// What the interrupt key means to the task's terminal.
pub(crate) const INTERRUPT: &[u8] = b"\x03";

/// Undoes what a program may have left on when it is left in its middle: colours, a hidden cursor, mouse reports, bracketed paste and
/// application keys.
const TIDY: &[u8] =
    b"\x1b[0m\x1b[?25h\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?2004l\x1b[?1l\x1b>\r\n";

/// Switches a key off.
const NONE: u8 = 0;

/// The terminal while it is the task's.
#[derive(Debug)]
pub(crate) struct Keyboard {
    before: Termios,
    endings: [(Signal, u8); 3],
}

impl Keyboard {
    /// Whether this process's stdin is a terminal whose keys are meant for it.
    pub(crate) fn is_here() -> bool {
        isatty(stdin()) && tcgetpgrp(stdin()).is_ok_and(|foreground| foreground == getpgrp())
    }

    /// Takes it, if it is there. Must be called inside a tokio runtime.
    pub(crate) fn take() -> Option<Self> {
        if !Self::is_here() {
            return None;
        }
        // First of all: from here on nothing that can be caught ends us without giving it back.
        let ending = |kind: SignalKind| {
            let code = u8::try_from(kind.as_raw_value()).ok()?.checked_add(128)?;
            Some((signal(kind).ok()?, code))
        };
        let endings =
            [ending(SignalKind::terminate())?, ending(SignalKind::hangup())?, ending(SignalKind::quit())?];
        let before = tcgetattr(stdin()).ok()?;
        let mut keys = before.clone();
        keys.local_modes -= LocalModes::ECHO | LocalModes::ECHONL | LocalModes::ICANON | LocalModes::IEXTEN;
        keys.local_modes |= LocalModes::ISIG | LocalModes::NOFLSH;
        keys.output_modes -= OutputModes::OPOST;
        keys.input_modes -= InputModes::ICRNL | InputModes::INLCR | InputModes::IGNCR | InputModes::IXON;
        for key in [SpecialCodeIndex::VQUIT, SpecialCodeIndex::VSUSP] {
            keys.special_codes[key] = NONE;
        }
        keys.special_codes[SpecialCodeIndex::VMIN] = 1;
        keys.special_codes[SpecialCodeIndex::VTIME] = 0;
        tcsetattr(stdin(), OptionalActions::Now, &keys).ok()?;
        Some(Self { before, endings })
    }

    /// The code to leave with, once a signal says to leave.
    pub(crate) async fn ended(&mut self) -> u8 {
        let [(one, first), (two, second), (three, third)] = &mut self.endings;
        tokio::select! {
            _ = one.recv() => *first,
            _ = two.recv() => *second,
            _ = three.recv() => *third,
        }
    }

    /// Gives it back while the task's program goes on, which may have left the screen in any state.
    pub(crate) fn leave(self, console: &Console) {
        if console.terminal {
            // Where nobody sees the screen there is nothing to tidy.
            let _ = console.data(TIDY);
        }
    }
}

impl Drop for Keyboard {
    fn drop(&mut self) {
        // A terminal that is gone needs nothing back.
        let _ = tcsetattr(stdin(), OptionalActions::Now, &self.before);
    }
}
