//! This terminal while it is the task's: raw, and given back whatever happens.
//!
//! It is opened anew, by what stdin and stdout are, so that it can be read and written without ever blocking and without changing how whoever
//! started us finds it. Given back means: its modes as they were, and the screen in a state in which a shell can go on. That is done on
//! every way out: at the end, at an error, at a panic, at a signal that can be caught; who kills this with SIGKILL types `reset`.

use std::io;
use std::os::fd::OwnedFd;

use homing_model::attach::TerminalSize;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe;

/// What a terminal that does not say has.
const USUAL: TerminalSize = TerminalSize { cols: 80, rows: 24 };
const LARGEST: TerminalSize = TerminalSize { cols: 1000, rows: 500 };

/// Undoes what a program may have left on when it is left in its middle: mouse and focus reports, bracketed paste, other keyboards, application
/// keys, the cursor's shape, drawn lines, insert mode, colours.
const TIDY: &str = "\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1004l\x1b[?1005l\x1b[?1006l\x1b[?1015l\x1b[?1016l\x1b[?9l\x1b[?2004l\x1b[>4m\x1b[=0u\x1b[?1l\x1b>\x1b[?7h\x1b[4l\x1b[?5l\x1b[?6l\x1b(B\x0f\x1b[0 q\x1b[m\x1b[?25h";

/// It.
#[derive(Debug)]
pub(super) struct Terminal {
    /// What tokio has for pipes does for any descriptor that can be waited for.
    input: pipe::Receiver,
    output: pipe::Sender,
    before: Termios,
    /// Whether it is raw now.
    taken: bool,
    screens: Screens,
}

fn open(fd: u8, flags: OFlags) -> io::Result<OwnedFd> {
    let flags = flags | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let opened = rustix::fs::open(format!("/proc/self/fd/{fd}"), flags, Mode::empty());
    Ok(opened.or_else(|_| rustix::fs::open("/dev/tty", flags, Mode::empty()))?)
}

impl Terminal {
    /// Takes it. Must be called inside a tokio runtime, in the foreground.
    pub(super) fn take() -> io::Result<Self> {
        let input = pipe::Receiver::from_owned_fd_unchecked(open(0, OFlags::RDONLY)?)?;
        let output = pipe::Sender::from_owned_fd_unchecked(open(1, OFlags::WRONLY)?)?;
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
        let (place, back) = match (self.screens.any, self.screens.alternate) {
            (false, _) => ("", ""),
            // What was there before is there again.
            (true, true) => ("", "\x1b[r\x1b[?1049l\r\n"),
            // Below the cursor: some of what undoes the rest moves it.
            (true, false) => ("\x1b7", "\x1b[r\x1b8\x1b[m\x1b(B\x0f\r\n\x1b[J"),
        };
        self.write_now(format!("{place}{TIDY}{back}").as_bytes());
        self.screens = Screens::default();
        // A terminal that is gone needs nothing back.
        let _ = tcsetattr(&self.input, OptionalActions::Now, &self.before);
    }

    /// How large it is.
    pub(super) fn size(&self) -> TerminalSize {
        match tcgetwinsize(&self.output) {
            Ok(size) if size.ws_col > 0 && size.ws_row > 0 => {
                TerminalSize { cols: size.ws_col.min(LARGEST.cols), rows: size.ws_row.min(LARGEST.rows) }
            }
            Ok(_) | Err(_) => USUAL,
        }
    }

    /// Waits for keys; none if there will be no more.
    pub(super) async fn typed(&mut self) -> Option<Vec<u8>> {
        let mut buffer = vec![0; 4096];
        match self.input.read(&mut buffer).await {
            Ok(0) | Err(_) => None,
            Ok(count) => {
                buffer.truncate(count);
                Some(buffer)
            }
        }
    }

    /// Shows bytes of the task's terminal.
    pub(super) async fn show(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.screens.pass(bytes);
        self.output.write_all(bytes).await
    }

    /// Makes room for a screen of the task's: what this one shows stays to be scrolled back to.
    pub(super) async fn make_room(&mut self) -> io::Result<()> {
        let back = if self.screens.alternate { "\x1b[?1049l" } else { "" };
        let rows = usize::from(self.size().rows);
        self.show(format!("{back}{}", "\r\n".repeat(rows)).as_bytes()).await
    }

    /// Says something over the last line; the screen must be shown anew afterwards.
    pub(super) async fn say(&mut self, text: &str) -> io::Result<()> {
        let size = self.size();
        let text: String = text.chars().take(usize::from(size.cols)).collect();
        self.show(format!("\x07\x1b7\x1b[{};1H\x1b[0;7m{text}\x1b[m\x1b[K\x1b8", size.rows).as_bytes()).await
    }

    /// Writes on the way out: as much as is taken at once.
    fn write_now(&self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            match rustix::io::write(&self.output, bytes) {
                Ok(count) => bytes = bytes.get(count..).unwrap_or_default(),
                Err(Errno::INTR) => {}
                Err(_) => return,
            }
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.leave();
    }
}

/// Which of its two screens the terminal shows, by what passed to it.
#[derive(Debug, Default)]
struct Screens {
    any: bool,
    alternate: bool,
    tail: Vec<u8>,
}

impl Screens {
    /// A sequence that switches is not longer than this.
    const LONGEST: usize = 24;

    fn pass(&mut self, bytes: &[u8]) {
        self.any |= !bytes.is_empty();
        self.tail.extend_from_slice(bytes);
        let text = std::mem::take(&mut self.tail);
        for (at, _) in text.windows(3).enumerate().filter(|(_, start)| *start == b"\x1b[?") {
            let rest = text.get(at + 3..).unwrap_or_default();
            let Some(end) = rest.iter().position(|byte| !matches!(byte, b'0'..=b'9' | b';')) else {
                continue;
            };
            let switches = rest
                .get(..end)
                .unwrap_or_default()
                .split(|byte| *byte == b';')
                .any(|mode| matches!(mode, b"47" | b"1047" | b"1049"));
            match rest.get(end) {
                Some(b'h') if switches => self.alternate = true,
                Some(b'l') if switches => self.alternate = false,
                _ => {}
            }
        }
        self.tail = text.get(text.len().saturating_sub(Self::LONGEST)..).unwrap_or_default().to_vec();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_screen_that_is_shown_is_known_however_the_bytes_are_cut() {
        let bytes = b"x\x1b[?1049hy\x1b[?25l\x1b[?1;1049lz\x1b[?47h";
        for cut in 0..bytes.len() {
            let mut screens = Screens::default();
            screens.pass(&bytes[..cut]);
            screens.pass(&bytes[cut..]);
            assert!(screens.alternate, "{cut}");
            screens.pass(b"\x1b[?47l");
            assert!(!screens.alternate, "{cut}");
        }
    }
}
