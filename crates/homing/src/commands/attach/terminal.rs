//! This terminal while it is the task's: raw, and given back whatever happens.
//!
//! It is opened anew, by what stdin and stdout are, so that it can be read and written without ever blocking and without changing how whoever
//! started us finds it. What is to be shown is put in a row (`homing_tui::live::Outlet`) and written as the terminal takes it, while keys are read
//! ([`Terminal::stirs`]): nobody waits in this file. Given back means: its modes as they were, and the screen in a state in which a shell can go on. That is done on
//! every way out: at the end, at an error, at a panic, at a signal that can be caught; who kills this with SIGKILL types `reset`.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use homing_model::TerminalSize;
use homing_tui::live::Outlet;
use rustix::fs::{Mode, OFlags};
use rustix::process::getpgrp;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetpgrp, tcsetattr};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;

use crate::terminal::alternate_screen::Screens;
use crate::terminal::terminal_size;

/// What a terminal that does not say has.
const USUAL: TerminalSize = TerminalSize { cols: 80, rows: 24 };

/// It.
#[derive(Debug)]
pub(super) struct Terminal {
    /// What tokio has for pipes does for any descriptor that can be waited for.
    input: pipe::Receiver,
    output: Outlet,
    before: Termios,
    /// Whether it is raw now.
    taken: bool,
    /// Of what was written.
    screens: Screens,
}

/// What happened at the terminal.
#[derive(Debug)]
pub(super) enum Stirred {
    /// Keys; none if the terminal is hung up.
    Typed(Option<Vec<u8>>),
    /// Some of what is to be shown is shown.
    Shown,
}

fn open_input() -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let opened = rustix::fs::open("/proc/self/fd/0", flags, Mode::empty());
    Ok(opened.or_else(|_| rustix::fs::open("/dev/tty", flags, Mode::empty()))?)
}

impl Terminal {
    /// Takes it. Must be called inside a tokio runtime, in the foreground.
    pub(super) fn take() -> io::Result<Self> {
        Self::of(open_input()?, rustix::stdio::stdout())
    }

    fn of(input: OwnedFd, output: BorrowedFd<'_>) -> io::Result<Self> {
        let input = pipe::Receiver::from_owned_fd_unchecked(input)?;
        let output = Outlet::to(output)?;
        let before = tcgetattr(&input)?;
        let mut terminal = Self { input, output, before, taken: false, screens: Screens::default() };
        terminal.enter()?;
        Ok(terminal)
    }

    /// Makes it raw: every key is the task's.
    pub(super) fn enter(&mut self) -> io::Result<()> {
        let mut raw = self.before.clone();
        raw.make_raw();
        self.taken = true;
        Ok(tcsetattr(&self.input, OptionalActions::Now, &raw)?)
    }

    /// Gives it back, tidy; the cursor is where whoever writes next may write.
    pub(super) fn leave(&mut self) {
        if !std::mem::take(&mut self.taken) {
            return;
        }
        self.output.abandon();
        self.output.push(self.screens.given_back().as_bytes());
        self.output.part();
        self.screens = Screens::default();
        // A terminal that is gone needs nothing back. In the background it is as whoever has it wants it, and the kernel would stop this process for touching it.
        if !tcgetpgrp(&self.input).is_ok_and(|foreground| foreground != getpgrp()) {
            let _ = tcsetattr(&self.input, OptionalActions::Now, &self.before);
        }
    }

    /// How large it is.
    pub(super) fn size(&self) -> TerminalSize {
        terminal_size::of(self.output.fd()).unwrap_or(USUAL)
    }

    /// Waits for keys, if they are wanted, and writes what is to be shown, whichever can be done first. Cancelling it loses nothing.
    pub(super) async fn stirs(&mut self, wants_keys: bool) -> io::Result<Stirred> {
        let Self { input, output, screens, .. } = self;
        let mut buffer = vec![0; 4096];
        tokio::select! {
            biased;
            read = input.read(&mut buffer), if wants_keys => {
                buffer.truncate(read.unwrap_or(0));
                Ok(Stirred::Typed(Some(buffer).filter(|typed| !typed.is_empty())))
            }
            taken = output.flows() => {
                screens.pass(&taken?);
                Ok(Stirred::Shown)
            }
        }
    }

    /// Whether all that was to be shown is.
    pub(super) fn is_done(&self) -> bool {
        self.output.is_done()
    }

    /// Shows bytes of the task's terminal, as it takes them.
    pub(super) fn show(&mut self, bytes: &[u8]) {
        self.output.push(bytes);
    }

    /// Makes room for a screen of the task's: what this one shows stays to be scrolled back to.
    pub(super) fn make_room(&mut self) {
        let back = if self.screens.is_alternate() { "\x1b[?1049l" } else { "" };
        let rows = usize::from(self.size().rows);
        self.show(format!("{back}{}", "\r\n".repeat(rows)).as_bytes());
    }

    /// Says something over the last line; the screen must be shown anew afterwards.
    pub(super) fn say(&mut self, text: &str) {
        let size = self.size();
        let text: String = text.chars().take(usize::from(size.cols)).collect();
        self.show(format!("\x07\x1b7\x1b[{};1H\x1b[0;7m{text}\x1b[m\x1b[K\x1b8", size.rows).as_bytes());
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.leave();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_gives_the_terminal_back() {
        use std::io::Read as _;
        use std::os::fd::AsFd as _;
        use std::panic::{AssertUnwindSafe, catch_unwind};

        use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

        let seat = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&seat).and_then(|()| unlockpt(&seat)).unwrap();
        let name = ptsname(&seat, Vec::new()).unwrap();
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::NONBLOCK;
        let ours = || rustix::fs::open(name.as_c_str(), flags, Mode::empty()).unwrap();
        let looker = ours();
        let modes = || {
            let modes = tcgetattr(&looker).unwrap();
            (modes.local_modes, modes.input_modes, modes.output_modes)
        };
        let before = modes();
        let mut terminal = Terminal::of(ours(), looker.as_fd()).unwrap();
        assert_ne!(modes(), before, "it is raw");
        terminal.show(b"\x1b[?1049h\x1b[?1000hdrawn");
        while !terminal.is_done() {
            terminal.stirs(true).await.unwrap();
        }
        let broken = catch_unwind(AssertUnwindSafe(move || {
            let _terminal = terminal;
            panic!("of a test");
        }));
        assert!(broken.is_err());
        assert_eq!(modes(), before);
        // It comes in pieces, as the kernel passes it on.
        let (mut seat, mut seen) = (std::fs::File::from(seat), Vec::new());
        while !seen.ends_with(b"\x1b[?1049l\r\n") {
            let mut piece = [0; 4096];
            let count = seat.read(&mut piece).unwrap();
            seen.extend_from_slice(&piece[..count]);
        }
        let seen = String::from_utf8_lossy(&seen).into_owned();
        let (_, after) = seen.split_once("drawn").unwrap();
        assert!(after.contains("\x1b[?1000l") && after.contains("\x1b[?25h"), "{after:?}");
    }
}
