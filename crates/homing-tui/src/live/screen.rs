//! The terminal, taken and given back.

use std::cell::RefCell;
use std::io::{self, Write};
use std::rc::Rc;
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
use crossterm::{cursor, queue};
use homing_model::TerminalSize;
use ratatui::backend::{Backend, CrosstermBackend};
use ratatui::layout::{Position, Rect, Size};
use ratatui::{Terminal, TerminalOptions, Viewport};
use rustix::stdio::stdout;

use super::outlet::{Outlet, part};
use crate::panel::Panel;
use crate::view::View;

/// Whether the terminal is ours. It is given back once: what a panic says on the screen that stays would be written over by a second time.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// The longest text that is put into a clipboard.
const CLIPBOARD: usize = 4_096;

/// The terminal while it is ours. Dropping it gives it back.
pub(super) struct Screen {
    terminal: Terminal<CrosstermBackend<Drawn>>,
    /// The part of it that is drawn on.
    area: Rect,
    drawn: Drawn,
    outlet: Outlet,
    /// Somebody else has it.
    lent: bool,
}

/// What was drawn and is not on its way yet.
#[derive(Debug, Clone, Default)]
struct Drawn(Rc<RefCell<Vec<u8>>>);

impl Write for Drawn {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Screen {
    /// Must be called inside a tokio runtime.
    pub(super) fn take() -> io::Result<Self> {
        before_a_panic_is_told();
        // Made first: if the size cannot be asked, nothing was changed yet.
        let drawn = Drawn::default();
        let outlet = Outlet::to(stdout())?;
        let backend = CrosstermBackend::new(drawn.clone());
        let area = drawable(backend.size()?);
        let mut screen = Self {
            terminal: Terminal::with_options(backend, TerminalOptions { viewport: Viewport::Fixed(area) })?,
            area,
            drawn,
            outlet,
            lent: false,
        };
        screen.enter()?;
        Ok(screen)
    }

    fn enter(&mut self) -> io::Result<()> {
        TAKEN.store(true, Ordering::Relaxed);
        self.lent = false;
        enable_raw_mode()?;
        queue!(
            self.drawn,
            EnterAlternateScreen,
            EnableMouseCapture,
            EnableBracketedPaste,
            SetTitle("homing"),
            cursor::Hide
        )?;
        self.send();
        Ok(())
    }

    /// Puts what was drawn on its way.
    fn send(&mut self) {
        let drawn = self.drawn.0.take();
        self.outlet.push(&drawn);
    }

    /// Gives the terminal to somebody else for a while, who takes the keys. It stays raw until they do: what is typed in between is theirs, and
    /// makes no signal that would end both.
    pub(super) fn lend(&mut self) {
        self.outlet.abandon();
        self.outlet.push(&back());
        self.outlet.part();
        self.lent = true;
    }

    /// Takes it again. Nothing of what was there is counted on.
    pub(super) fn take_back(&mut self) -> io::Result<()> {
        self.enter()?;
        // Not by `clear`, which asks the terminal where its cursor is: the answer may be late, or be taken by whoever reads the keys.
        self.area = drawable(self.terminal.size()?);
        self.terminal.resize(self.area)
    }

    /// Whether all that was drawn was taken; until then nothing more is.
    pub(super) fn is_shown(&self) -> bool {
        self.outlet.is_done()
    }

    /// Has the terminal take what was drawn. Cancelling it loses nothing.
    pub(super) async fn flows(&mut self) -> io::Result<()> {
        self.outlet.flows().await.map(drop)
    }

    /// Waits until the terminal is gone.
    pub(super) fn hung_up(&self) -> impl Future<Output = ()> + use<> {
        self.outlet.hung_up()
    }

    pub(super) fn draw(&mut self, panel: &mut Panel) -> io::Result<()> {
        // Given back by the panic of a worker, about which the loop is just being told.
        if !TAKEN.load(Ordering::Relaxed) {
            return Ok(());
        }
        let area = drawable(self.terminal.size()?);
        if area != std::mem::replace(&mut self.area, area) {
            self.terminal.resize(area)?;
        }
        self.terminal.draw(|frame| frame.render_stateful_widget(View, frame.area(), panel))?;
        self.send();
        Ok(())
    }

    /// Puts a text into the clipboard of whoever sits at the terminal (OSC 52).
    pub(super) fn copy(&mut self, text: &str) {
        let text: String = text.chars().take(CLIPBOARD).collect();
        self.outlet.push(format!("\x1b]52;c;{}\x07", STANDARD.encode(text)).as_bytes());
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        if !TAKEN.swap(false, Ordering::Relaxed) {
            return;
        }
        if !self.lent {
            self.lend();
        }
        let _ = disable_raw_mode();
    }
}

/// As much of a terminal as is drawn on. A size that no screen has would take gigabytes.
fn drawable(size: Size) -> Rect {
    let TerminalSize { cols, rows } = TerminalSize::LARGEST;
    Rect::from((Position::ORIGIN, Size::new(size.width.min(cols), size.height.min(rows))))
}

/// Back to the screen that was there before.
fn back() -> Vec<u8> {
    let mut words = Vec::new();
    let _ = queue!(words, DisableBracketedPaste, DisableMouseCapture, LeaveAlternateScreen, cursor::Show);
    words
}

/// What a panic says must be said on a screen that stays.
fn before_a_panic_is_told() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let told = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if TAKEN.swap(false, Ordering::Relaxed) {
                // Where it fails there is nobody left to see it. What was cut off in its middle is no beginning of what follows.
                part(stdout(), &[b"\x18", back().as_slice()].concat());
                let _ = disable_raw_mode();
            }
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
    fn no_more_is_drawn_on_than_a_screen_has() {
        assert_eq!(drawable(Size::new(80, 24)), Rect::new(0, 0, 80, 24));
        let largest = drawable(Size::new(u16::MAX, u16::MAX));
        assert!(largest.area() <= 1 << 21, "{largest}");
    }

    #[test]
    #[ignore = "is what the test below runs on a terminal of its own"]
    fn panics_in_the_middle() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let _entered = runtime.enter();
        let mut screen = Screen::take().unwrap();
        runtime.block_on(screen.flows()).unwrap();
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
