//! How large the terminal is that somebody sits at, as a task's terminal can take it.

use std::os::fd::AsFd;

use homing_model::TerminalSize;
use rustix::stdio::{stderr, stdin, stdout};
use rustix::termios::tcgetwinsize;

/// The size of the terminal that this process was given, wherever it is; none where there is none, or one that does not say.
pub(crate) fn of_this_terminal() -> Option<TerminalSize> {
    of(stdout()).or_else(|| of(stderr())).or_else(|| of(stdin()))
}

/// The size of a terminal.
pub(crate) fn of(terminal: impl AsFd) -> Option<TerminalSize> {
    let size = tcgetwinsize(terminal).ok()?;
    TerminalSize { cols: size.ws_col, rows: size.ws_row }.within_reason()
}
