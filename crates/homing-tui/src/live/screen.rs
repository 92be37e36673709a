//! The terminal, taken and given back.

use std::io::{self, BufWriter, Stdout, Write as _};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use crossterm::event::{
    DisableBracketedPaste, DisableMouseCapture, EnableBracketedPaste, EnableMouseCapture,
};
use crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, SetTitle, disable_raw_mode, enable_raw_mode,
};
use crossterm::{cursor, execute};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::layout::{Position, Rect};

use crate::panel::Panel;
use crate::view::View;

/// Whether the terminal is ours. It is given back once: what a panic says on the screen that stays would be written over by a second time.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// The longest text that is put into a clipboard.
const CLIPBOARD: usize = 4_096;

/// The terminal while it is ours. Dropping it gives it back.
pub(super) struct Screen {
    terminal: Terminal<CrosstermBackend<BufWriter<Stdout>>>,
}

impl Screen {
    pub(super) fn take() -> io::Result<Self> {
        before_a_panic_is_told();
        // Made first: if the size cannot be asked, nothing was changed yet.
        let backend = CrosstermBackend::new(BufWriter::with_capacity(64 * 1024, io::stdout()));
        let mut screen = Self { terminal: Terminal::new(backend)? };
        screen.enter()?;
        Ok(screen)
    }

    fn enter(&mut self) -> io::Result<()> {
        TAKEN.store(true, Ordering::Relaxed);
        enable_raw_mode()?;
        execute!(
            io::stdout(),
            EnterAlternateScreen,
            EnableMouseCapture,
            EnableBracketedPaste,
            SetTitle("homing"),
            cursor::Hide
        )
    }

    /// Gives the terminal to somebody else for a while, who takes the keys. It stays raw until they do: what is typed in between is theirs, and
    /// makes no signal that would end both.
    pub(super) fn lend(&mut self) {
        leave();
    }

    /// Takes it again. Nothing of what was there is counted on.
    pub(super) fn take_back(&mut self) -> io::Result<()> {
        self.enter()?;
        // Not by `clear`, which asks the terminal where its cursor is: the answer may be late, or be taken by whoever reads the keys.
        let size = self.terminal.size()?;
        self.terminal.resize(Rect::from((Position::ORIGIN, size)))
    }

    pub(super) fn draw(&mut self, panel: &mut Panel) -> io::Result<()> {
        // Given back by the panic of a worker, about which the loop is just being told.
        if !TAKEN.load(Ordering::Relaxed) {
            return Ok(());
        }
        self.terminal.draw(|frame| frame.render_stateful_widget(View, frame.area(), panel))?;
        Ok(())
    }

    /// Puts a text into the clipboard of whoever sits at the terminal (OSC 52).
    pub(super) fn copy(&mut self, text: &str) -> io::Result<()> {
        let text: String = text.chars().take(CLIPBOARD).collect();
        let mut stdout = io::stdout().lock();
        write!(stdout, "\x1b]52;c;{}\x07", STANDARD.encode(text))?;
        stdout.flush()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

/// Where it fails there is nobody left to see it.
fn restore() {
    if !TAKEN.swap(false, Ordering::Relaxed) {
        return;
    }
    leave();
    let _ = disable_raw_mode();
}

/// Back to the screen that was there before.
fn leave() {
    let _ = execute!(
        io::stdout(),
        DisableBracketedPaste,
        DisableMouseCapture,
        LeaveAlternateScreen,
        cursor::Show
    );
}

/// What a panic says must be said on a screen that stays.
fn before_a_panic_is_told() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let told = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            restore();
            told(panic);
        }));
    });
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Read as _;
    use std::process::{Command, Stdio};

    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

    use super::*;

    #[test]
    #[ignore = "is what the test below runs on a terminal of its own"]
    fn panics_in_the_middle() {
        let _screen = Screen::take().unwrap();
        panic!("these words");
    }

    #[test]
    fn a_panic_is_told_on_the_screen_that_stays_and_the_terminal_is_as_it_was() {
        let seat = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&seat).and_then(|()| unlockpt(&seat)).unwrap();
        let name = ptsname(&seat, Vec::new()).unwrap().into_string().unwrap();
        let terminal = File::options().read(true).write(true).open(name).unwrap();
        tcsetwinsize(&seat, Winsize { ws_col: 80, ws_row: 24, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
        let modes = || {
            let modes = tcgetattr(&terminal).unwrap();
            (modes.local_modes, modes.input_modes, modes.output_modes)
        };
        let before = modes();
        assert!(before.0.contains(LocalModes::ICANON | LocalModes::ECHO));
        let given = || Stdio::from(terminal.try_clone().unwrap());
        let mut child = Command::new("setsid")
            .args(["--ctty", "--wait"])
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", "live::screen::tests::panics_in_the_middle", "--ignored", "--nocapture"])
            .stdin(given())
            .stdout(given())
            .stderr(given())
            .spawn()
            .unwrap();
        let mut seen = Vec::new();
        let mut seat = File::from(seat);
        while !has(&seen, "test result") {
            let mut piece = [0; 4096];
            let count = seat.read(&mut piece).unwrap();
            seen.extend_from_slice(&piece[..count]);
        }
        let _ = child.wait();
        assert_eq!(modes(), before);
        let seen = String::from_utf8_lossy(&seen).into_owned();
        let (_, ours) = seen.split_once("\x1b[?1049h").unwrap();
        let (_, after) = ours.split_once("\x1b[?1049l").unwrap();
        assert!(after.contains("these words") && !after.contains("\x1b[?1049l"), "{seen:?}");
    }

    fn has(seen: &[u8], words: &str) -> bool {
        seen.windows(words.len()).any(|window| window == words.as_bytes())
    }
}
