//! The terminal, taken and given back.

use std::io::{self, BufWriter, Stdout, Write as _};
use std::sync::Once;

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

use crate::panel::Panel;
use crate::view::View;

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

    /// Gives the terminal to somebody else for a while.
    pub(super) fn lend(&mut self) {
        restore();
    }

    /// Takes it again. Nothing of what was there is counted on.
    pub(super) fn take_back(&mut self) -> io::Result<()> {
        self.enter()?;
        self.terminal.clear()
    }

    pub(super) fn draw(&mut self, panel: &mut Panel) -> io::Result<()> {
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
    let _ = execute!(
        io::stdout(),
        DisableBracketedPaste,
        DisableMouseCapture,
        LeaveAlternateScreen,
        cursor::Show
    );
    let _ = disable_raw_mode();
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
