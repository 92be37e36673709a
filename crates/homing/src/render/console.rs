//! The terminal, or whatever stdout and stderr are: what it can show, and writing to it without ever panicking.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};

use homing_model::sanitize;
use rustix::fs::FileType;
use serde::Serialize;

use crate::cli::failure::Failure;
use crate::options::environment::Surroundings;
use crate::render::columns;
use crate::render::hyperlink;
use crate::render::spinner;
use crate::terminal::nonblocking_stdio;
use crate::terminal::nonblocking_stdio::Stream;

/// Below so many columns nothing can be laid out.
const LEAST: usize = 16;

/// Whether a line stands on stderr that what is printed next takes the place of. There is one terminal, so there is one such line.
static STATUS: AtomicBool = AtomicBool::new(false);

/// A colour, or the lack of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tint {
    Red,
    Green,
    Yellow,
    Blue,
    Bold,
    Dim,
}

impl Tint {
    const fn code(self) -> &'static str {
        match self {
            Self::Red => "31",
            Self::Green => "32",
            Self::Yellow => "33",
            Self::Blue => "34",
            Self::Bold => "1",
            Self::Dim => "2",
        }
    }
}

/// What can be shown where.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Console {
    /// Whether stdout is a terminal.
    pub(crate) terminal: bool,
    /// Whether stderr is one.
    pub(crate) stderr_terminal: bool,
    /// Whether stdout takes colours.
    pub(crate) colour: bool,
    stderr_colour: bool,
    /// Whether symbols beyond ASCII can be expected to show.
    pub(crate) symbols: bool,
    /// Whether stderr is where somebody looks at a line that changes.
    pub(crate) animated: bool,
    /// Whether stdout is a terminal that can be drawn on.
    pub(crate) drawable: bool,
    hyperlinks: bool,
    /// Whether notes are kept back: what is drawn on would be spoilt by them.
    quiet: bool,
    /// Columns of the terminal; none where stdout is no terminal and nothing needs to be cut.
    pub(crate) width: Option<usize>,
}

impl Console {
    /// What this process was given.
    pub(crate) fn of_this_process(surroundings: &Surroundings) -> Self {
        let terminal = io::stdout().is_terminal();
        let stderr_terminal = io::stderr().is_terminal();
        let dumb = surroundings.text("TERM") == Some("dumb");
        let colours = surroundings.get("NO_COLOR").is_none() && !dumb;
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(|name| surroundings.text(name));
        let width = terminal.then(|| match rustix::termios::tcgetwinsize(io::stdout()) {
            Ok(size) if size.ws_col > 0 => usize::from(size.ws_col),
            _ => 80,
        });
        let symbols = !dumb && !matches!(locale, Some("C" | "POSIX"));
        if !symbols {
            columns::mark_plainly();
        }
        Self {
            terminal,
            stderr_terminal,
            colour: terminal && colours,
            stderr_colour: stderr_terminal && colours,
            symbols,
            animated: stderr_terminal && !dumb && surroundings.get("CI").is_none(),
            drawable: terminal && !dumb,
            hyperlinks: terminal && hyperlink::are_known(surroundings),
            quiet: false,
            width,
        }
    }

    /// The same, with notes kept back.
    pub(crate) fn hushed(self) -> Self {
        Self { quiet: true, ..self }
    }

    /// The same, as wide as this.
    pub(crate) fn of_width(self, width: usize) -> Self {
        Self { width: Some(width), ..self }
    }

    /// Text for stdout in a colour, where there are colours.
    pub(crate) fn tint(&self, tint: Tint, text: &str) -> String {
        paint(self.colour, tint, text)
    }

    /// The same for stderr.
    pub(crate) fn tint_note(&self, tint: Tint, text: &str) -> String {
        paint(self.stderr_colour, tint, text)
    }

    /// Text for stdout as a link to a file, where the terminal knows links.
    pub(crate) fn link(&self, path: &str, text: &str) -> String {
        if self.hyperlinks { hyperlink::to_file(path, text) } else { text.to_owned() }
    }

    /// A line on stderr until something else is printed; where that is no terminal to draw on, nothing.
    pub(crate) fn status(&self, text: &str) {
        // A line of comfort is for who sees it now.
        if !self.animated || !nonblocking_stdio::is_settled() {
            return;
        }
        let width = match rustix::termios::tcgetwinsize(io::stderr()) {
            Ok(size) if size.ws_col > 0 => usize::from(size.ws_col),
            _ => 80,
        };
        let text = paint(self.stderr_colour, Tint::Dim, &spinner::on_one_line(text, width));
        STATUS.store(true, Ordering::Relaxed);
        let _ = put(Stream::Err, format!("\r\x1b[K{text}").as_bytes());
    }

    /// Takes that line away.
    pub(crate) fn clear_status(&self) {
        if STATUS.swap(false, Ordering::Relaxed) {
            let _ = put(Stream::Err, b"\r\x1b[K");
        }
    }

    /// Bytes to stderr that are no note of ours; whether they are out, or on their way.
    pub(crate) fn aside(&self, bytes: &[u8]) -> bool {
        self.clear_status();
        put(Stream::Err, bytes).is_ok()
    }

    /// Bytes to stdout.
    pub(crate) fn data(&self, bytes: &[u8]) -> Result<(), Failure> {
        self.clear_status();
        put(Stream::Out, bytes).map_err(|error| Failure::writing(&error))
    }

    /// A line to stdout.
    pub(crate) fn line(&self, text: &str) -> Result<(), Failure> {
        self.data(format!("{text}\n").as_bytes())
    }

    /// JSON to stdout: one line, or laid out where a person looks at it.
    pub(crate) fn json(&self, value: &impl Serialize) -> Result<(), Failure> {
        let text =
            if self.terminal { serde_json::to_string_pretty(value) } else { serde_json::to_string(value) };
        match text {
            Ok(text) => self.json_text(&text),
            Err(error) => Err(Failure::writing(&io::Error::other(error))),
        }
    }

    /// JSON to stdout as one line of many.
    pub(crate) fn json_line(&self, value: &impl Serialize) -> Result<(), Failure> {
        match serde_json::to_string(value) {
            Ok(text) => self.json_text(&text),
            Err(error) => Err(Failure::writing(&io::Error::other(error))),
        }
    }

    /// JSON that is text already; on a terminal, nothing in it acts on that.
    pub(crate) fn json_text(&self, text: &str) -> Result<(), Failure> {
        if self.terminal { self.line(&sanitize::json(text)) } else { self.line(text) }
    }

    /// JSON to stderr as one line.
    pub(crate) fn json_note(&self, value: &impl Serialize) {
        if let Ok(text) = serde_json::to_string(value) {
            self.tell(&text);
        }
    }

    /// A line to stderr, or several; where that is closed there is nobody to tell. On a terminal they are broken between words to fit it.
    pub(crate) fn note(&self, text: &str) {
        let _ = self.noted(text);
    }

    /// The same, and whether it is out: who has more to say of it must know.
    pub(crate) fn noted(&self, text: &str) -> bool {
        self.tell(&self.laid_out(text).join("\n"))
    }

    /// The same on a terminal that does not end lines by itself.
    pub(crate) fn raw_note(&self, text: &str) {
        let _ = self.tell(&(self.laid_out(text).join("\r\n") + "\r"));
    }

    fn tell(&self, text: &str) -> bool {
        // In one piece: half a line is none.
        !self.quiet && self.aside(format!("{text}\n").as_bytes())
    }

    fn laid_out(&self, text: &str) -> Vec<String> {
        let width = match rustix::termios::tcgetwinsize(io::stderr()) {
            Ok(size) if self.stderr_terminal && usize::from(size.ws_col) >= LEAST => usize::from(size.ws_col),
            _ => usize::MAX,
        };
        columns::lines(&self.spelt(text), width)
    }

    /// Help text to stdout, in lines that fit the terminal: clap wraps all of it but the usage.
    pub(crate) fn help(&self, text: &str) -> Result<(), Failure> {
        let lines = columns::lines(&self.spelt(text), self.width.unwrap_or(usize::MAX));
        self.line(&lines.join("\n"))
    }

    /// A text of ours, in letters that can be expected to show.
    pub(crate) fn spelt<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if self.symbols { Cow::Borrowed(text) } else { Cow::Owned(text.replace('…', "...")) }
    }
}

/// Writes, or has it written by a command that must hear signals meanwhile.
fn put(stream: Stream, bytes: &[u8]) -> io::Result<()> {
    if let Some(put) = nonblocking_stdio::push(stream, bytes) {
        return put;
    }
    match stream {
        Stream::Err => io::stderr().lock().write_all(bytes),
        Stream::Out => {
            let mut stdout = io::stdout().lock();
            stdout.write_all(bytes).and_then(|()| stdout.flush())
        }
    }
}

/// Whether what is written there is read by nobody: it was closed, in whose place the null device was put at the start, or is that device.
pub(crate) fn leads_nowhere(stream: impl AsFd) -> bool {
    let null = rustix::fs::stat(c"/dev/null").map(|null| null.st_rdev);
    let here = rustix::fs::fstat(stream);
    here.is_ok_and(|here| {
        FileType::from_raw_mode(here.st_mode) == FileType::CharacterDevice && null == Ok(here.st_rdev)
    })
}

fn paint(colour: bool, tint: Tint, text: &str) -> String {
    if colour { format!("\x1b[{}m{text}\x1b[0m", tint.code()) } else { text.to_owned() }
}

#[cfg(test)]
impl Console {
    /// A console for tests of rendering.
    pub(crate) fn plain(width: Option<usize>) -> Self {
        Self {
            terminal: width.is_some(),
            stderr_terminal: false,
            colour: false,
            stderr_colour: false,
            symbols: true,
            animated: false,
            drawable: width.is_some(),
            hyperlinks: false,
            quiet: false,
            width,
        }
    }

    /// The same, where links are known.
    pub(crate) fn linking(width: Option<usize>) -> Self {
        Self { hyperlinks: true, ..Self::plain(width) }
    }
}
