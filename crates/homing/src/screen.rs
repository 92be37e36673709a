//! The terminal while something is drawn on all of it: the other screen, without a cursor, given back on every way out.
//!
//! Frames are written whole, from the upper left corner, each line up to its end and everything below: nothing flickers, and nothing of an
//! earlier frame is left. Keys are neither echoed nor gathered to lines. Those that make a signal (interrupt, quit, suspend) make it here and
//! not in the kernel, which would throw away what is being written, and might echo such a key after the terminal was given back: it sends
//! the signal first, and looks afterwards whether to echo. Ctrl-S does not hold the picture, and with it every way out. Whatever ends
//! the command but SIGKILL, the terminal is given back as it was: a signal is caught, and a panic unwinds through here.

use std::io::{self, Read, Write};

use rustix::process::{Signal, kill_current_process_group};
use rustix::stdio::stdin;
use rustix::termios::{
    InputModes, LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetwinsize, tcsetattr,
};
use tokio::sync::mpsc;

use crate::keyboard::Keyboard;

/// To the other screen, without its cursor, and lines that are too long are cut by the terminal too.
const ENTER: &[u8] = b"\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[H\x1b[2J";
/// Back.
const LEAVE: &[u8] = b"\x1b[?7h\x1b[?25h\x1b[?1049l";

/// A key that is switched off.
const NONE: u8 = 0;

/// The terminal while it is drawn on.
pub(crate) struct Screen {
    /// How its keys were, if they are this process's.
    keys: Option<Termios>,
    drawn: String,
}

impl Screen {
    /// Begins to draw on stdout.
    pub(crate) fn enter() -> io::Result<Self> {
        let mut screen = Self { keys: None, drawn: String::new() };
        screen.take()?;
        Ok(screen)
    }

    fn take(&mut self) -> io::Result<()> {
        if Keyboard::is_here()
            && let Ok(before) = tcgetattr(stdin())
        {
            let mut keys = before.clone();
            keys.local_modes -= LocalModes::ECHO | LocalModes::ECHONL | LocalModes::ICANON;
            keys.local_modes -= LocalModes::ISIG | LocalModes::IEXTEN;
            keys.input_modes -= InputModes::IXON;
            keys.special_codes[SpecialCodeIndex::VMIN] = 1;
            keys.special_codes[SpecialCodeIndex::VTIME] = 0;
            if tcsetattr(stdin(), OptionalActions::Now, &keys).is_ok() {
                self.keys = Some(before);
            }
        }
        self.drawn.clear();
        write(ENTER)
    }

    fn give_back(&mut self) {
        // A terminal that is gone needs nothing back.
        let _ = write(LEAVE);
        if let Some(before) = self.keys.take() {
            // What was typed at the picture is not meant for the shell.
            let _ = tcsetattr(stdin(), OptionalActions::Flush, &before);
        }
    }

    /// Does what the kernel would do with a key that makes a signal; says whether it was one. All of the job hears it, as it would have.
    pub(crate) fn signals(&self, key: u8) -> bool {
        let Some(before) = self.keys.as_ref().filter(|keys| keys.local_modes.contains(LocalModes::ISIG))
        else {
            return false;
        };
        let made = [
            (SpecialCodeIndex::VINTR, Signal::INT),
            (SpecialCodeIndex::VQUIT, Signal::QUIT),
            (SpecialCodeIndex::VSUSP, Signal::TSTP),
        ];
        let signal = made.into_iter().find(|(code, _)| key != NONE && before.special_codes[*code] == key);
        signal.is_some_and(|(_, signal)| kill_current_process_group(signal).is_ok())
    }

    /// Gives the terminal back, stops this process as the suspend key does, and goes on when it is continued.
    pub(crate) fn suspend(&mut self) -> io::Result<()> {
        self.give_back();
        rustix::process::kill_process(rustix::process::getpid(), Signal::STOP)?;
        self.take()
    }

    /// Columns and lines as they are now.
    pub(crate) fn size(&self) -> (usize, usize) {
        match tcgetwinsize(io::stdout()) {
            Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (size.ws_col.into(), size.ws_row.into()),
            _ => (80, 24),
        }
    }

    /// Everything on the terminal may have been lost, or moved: the next frame is drawn whatever was drawn before.
    pub(crate) fn forget(&mut self) {
        self.drawn.clear();
    }

    /// Draws these lines, each of which fits; nothing is written where they are what is there already.
    pub(crate) fn draw(&mut self, lines: &[String]) -> io::Result<()> {
        let frame = frame(lines, self.size().1);
        if frame == self.drawn {
            return Ok(());
        }
        write(frame.as_bytes())?;
        self.drawn = frame;
        Ok(())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.give_back();
    }
}

fn frame(lines: &[String], height: usize) -> String {
    let mut out = "\x1b[H".to_owned();
    for (index, line) in lines.iter().take(height).enumerate() {
        out.push_str(if index == 0 { "" } else { "\r\n" });
        // Erased before it is written: after a line as wide as the terminal the cursor stands on its last character.
        out.push_str("\x1b[K");
        out.push_str(line);
    }
    if lines.len() < height {
        out.push_str(if lines.is_empty() { "\x1b[J" } else { "\r\n\x1b[J" });
    }
    out
}

fn write(bytes: &[u8]) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(bytes)?;
    stdout.flush()
}

/// The keys that are typed, one by one, by a thread that ends with the process.
pub(crate) fn keys() -> mpsc::Receiver<u8> {
    let (tx, rx) = mpsc::channel(16);
    if Keyboard::is_here() {
        let reading = move || {
            let mut key = [0];
            while let Ok(1) = io::stdin().lock().read(&mut key) {
                if tx.blocking_send(key[0]).is_err() {
                    return;
                }
            }
        };
        // Without a thread there are no keys; a signal still ends it.
        let _ = std::thread::Builder::new().name("keys".to_owned()).spawn(reading);
    }
    rx
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_leaves_nothing_of_the_one_before() {
        let lines = ["one".to_owned(), String::new(), "three".to_owned()];
        assert_eq!(frame(&lines, 9), "\x1b[H\x1b[Kone\r\n\x1b[K\r\n\x1b[Kthree\r\n\x1b[J");
        assert_eq!(frame(&lines, 3), "\x1b[H\x1b[Kone\r\n\x1b[K\r\n\x1b[Kthree", "nothing is below");
        assert_eq!(frame(&lines, 1), "\x1b[H\x1b[Kone");
        assert_eq!(frame(&[], 9), "\x1b[H\x1b[J");
    }
}
