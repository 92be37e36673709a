//! The terminal while something is drawn on all of it: the other screen, without a cursor, given back on every way out.
//!
//! Frames are written whole, from the upper left corner, each line up to its end and everything below: nothing flickers, and nothing of an
//! earlier frame is left. Keys are neither echoed nor gathered to lines. Those that make a signal (interrupt, quit, suspend) make it here and
//! not in the kernel, which would throw away what is being written, and might echo such a key after the terminal was given back: it sends
//! the signal first, and looks afterwards whether to echo. Ctrl-S does not hold the picture. A terminal that takes nothing all the same holds up
//! the picture and no way out: frames are written as they are taken ([`Screen::flows`]), and of those that come meanwhile only the last. Whatever ends
//! the command but SIGKILL, the terminal is given back as it was: a signal is caught, and a panic unwinds through here.

use std::future::Future;
use std::io;

use homing_tui::live::Outlet;
use rustix::process::{Signal, kill_current_process_group};
use rustix::stdio::{stdin, stdout};
use rustix::termios::{
    InputModes, LocalModes, OptionalActions, QueueSelector, SpecialCodeIndex, Termios, tcflush, tcgetattr,
    tcgetwinsize, tcsetattr,
};
use tokio::sync::mpsc;

use crate::terminal::keyboard::{self, Keyboard};
use crate::terminal::stdin_pump;

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
    /// Whether they ever were.
    had_keys: bool,
    /// Whether nothing is to be drawn now.
    given_back: bool,
    outlet: Outlet,
    /// The last frame that is there, or on its way.
    drawn: String,
    /// To be drawn once that was taken.
    next: Option<String>,
}

impl Screen {
    /// Begins to draw on stdout. Must be called inside a tokio runtime.
    pub(crate) fn enter() -> io::Result<Self> {
        let outlet = Outlet::to(stdout())?;
        let mut screen =
            Self { keys: None, had_keys: false, given_back: false, outlet, drawn: String::new(), next: None };
        screen.take();
        Ok(screen)
    }

    fn take(&mut self) {
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
                (self.keys, self.had_keys) = (Some(before), true);
            }
        }
        self.drawn.clear();
        self.outlet.push(ENTER);
    }

    fn give_back(&mut self) {
        if self.given_back {
            return;
        }
        // A terminal that is gone, or takes nothing, needs nothing back.
        self.next = None;
        self.outlet.abandon();
        self.outlet.push(LEAVE);
        self.outlet.part();
        // In the background its keys are those of whoever has it, and the kernel would stop this process for touching them.
        if let Some(before) = self.keys.take().filter(|_| Keyboard::is_here()) {
            // What was typed at the picture is not meant for the shell. By two calls: one for both would wait until all that was written is read.
            let _ = tcflush(stdin(), QueueSelector::IFlush);
            let _ = tcsetattr(stdin(), OptionalActions::Now, &before);
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

    /// Gives the terminal back and stops this process as the suspend key does.
    pub(crate) fn suspend(&mut self) {
        self.give_back();
        self.given_back = true;
        let _ = rustix::process::kill_process(rustix::process::getpid(), Signal::STOP);
    }

    /// Goes on after that, in the foreground, unless somebody is `told` to leave before.
    pub(crate) async fn again<T>(&mut self, told: impl AsyncFnMut() -> T) -> Option<T> {
        let left = keyboard::until_foreground(self.had_keys, told).await;
        if left.is_none() && std::mem::take(&mut self.given_back) {
            self.take();
        }
        left
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
    pub(crate) fn draw(&mut self, lines: &[String]) {
        self.next = Some(frame(lines, self.size().1));
        self.send();
    }

    fn send(&mut self) {
        // The first frame goes with what makes room for it.
        if (self.outlet.is_done() || self.drawn.is_empty())
            && let Some(frame) = self.next.take()
            && frame != self.drawn
        {
            self.outlet.push(frame.as_bytes());
            self.drawn = frame;
        }
    }

    /// Has the terminal take what was drawn; never ends where that is nothing. Cancelling it loses nothing.
    pub(crate) async fn flows(&mut self) -> io::Result<()> {
        self.outlet.flows().await?;
        self.send();
        Ok(())
    }

    /// Waits until the terminal is gone.
    pub(crate) fn hung_up(&self) -> impl Future<Output = ()> + use<> {
        self.outlet.hung_up()
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

/// The keys that are typed, one by one, by a thread that ends with the process.
pub(crate) fn keys() -> mpsc::Receiver<u8> {
    let (tx, rx) = mpsc::channel(16);
    if Keyboard::is_here() {
        let reading = move || {
            let mut key = [0];
            while let Ok(1) = stdin_pump::read(&mut key) {
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
