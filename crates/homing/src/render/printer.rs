//! Printing a task's output: raw where a program reads it, made safe where a terminal does.

use homing_api::{OutputChunk, OutputGap};
use homing_client::{Chunk, Source, Span};
use homing_model::sanitize::{Colour, Return, Sanitizer};
use homing_model::units::show_size;
use serde::Serialize;

use crate::cli::failure::Failure;
use crate::render::console::Console;
use crate::render::line_stamps::{Stamper, pieces};
use crate::terminal::nonblocking_stdio;

/// Where the output goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sink {
    /// Everything to stdout.
    Stdout,
    /// Everything to stderr: stdout is for JSON.
    Stderr,
    /// Each stream to its own.
    Split,
}

/// Passes output on, chunk by chunk.
pub(crate) struct Printer {
    console: Console,
    sink: Sink,
    safe: Option<Sanitizer>,
    stamper: Option<Stamper>,
    only: Option<Source>,
    within: bool,
    heard: bool,
    /// Whether the last chunk went to stdout, all of it and as it is.
    unchanged: bool,
}

impl Printer {
    /// A printer that makes the output safe if its sink is a terminal, unless `raw`.
    pub(crate) fn new(console: Console, sink: Sink, raw: bool) -> Self {
        let terminal = if sink == Sink::Stderr { console.stderr_terminal } else { console.terminal };
        let colour = if console.colour { Colour::Keep } else { Colour::Strip };
        // All of a line is the task's own, and times are put before it anew, so it may rewrite it: progress bars do.
        let safe = (terminal && !raw && sink != Sink::Split)
            .then(|| Sanitizer::new(colour).with_returns(Return::Rewrite));
        Self { console, sink, safe, stamper: None, only: None, within: false, heard: true, unchanged: false }
    }

    /// Puts the time before each line, and shows one stream only if asked to.
    pub(crate) fn with_times(mut self, only: Option<Source>) -> Self {
        self.stamper = Some(Stamper::new(self.safe.is_some()));
        self.only = only;
        self
    }

    /// Whether it needs to know where the bytes came from.
    pub(crate) fn needs_spans(&self) -> bool {
        self.stamper.is_some() || self.sink == Sink::Split
    }

    /// Prints a chunk, with a line about a gap before it.
    pub(crate) fn print(&mut self, chunk: &Chunk, spans: &[Span]) -> Result<(), Failure> {
        if chunk.gap > 0 {
            self.console.note(&gap(chunk.gap));
        }
        self.unchanged = self.safe.is_none() && self.stamper.is_none() && self.sink == Sink::Stdout;
        if !self.needs_spans() {
            return self.pass(&chunk.bytes);
        }
        // Between two files there is no order to keep, so each gets its part of the chunk at once.
        let (mut out, mut err) = (Vec::new(), Vec::new());
        for piece in pieces(chunk, spans) {
            if self.only.is_some_and(|only| !piece.source.is_of(only)) {
                continue;
            }
            let safe = self.safe.as_mut().map(|safe| safe.push(piece.bytes).into_bytes());
            let text = safe.as_deref().unwrap_or(piece.bytes);
            let target = if self.is_for_stderr(piece.source) { &mut err } else { &mut out };
            match &mut self.stamper {
                Some(stamper) => target.extend(stamper.push(text, piece.at)),
                None => target.extend_from_slice(text),
            }
        }
        self.unchanged = out.len() == chunk.bytes.len() && self.stamper.is_none() && self.safe.is_none();
        self.write(&err, true)?;
        self.write(&out, false)
    }

    /// Whether what was printed last is byte by byte what is on its way to stdout.
    pub(crate) fn is_unchanged(&self) -> bool {
        self.unchanged
    }

    /// What was held back for safety.
    pub(crate) fn finish(&mut self) -> Result<(), Failure> {
        let rest = self.safe.as_mut().map(Sanitizer::finish).unwrap_or_default();
        self.write(rest.as_bytes(), self.is_for_stderr(Source::Mixed))
    }

    fn pass(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let stderr = self.is_for_stderr(Source::Mixed);
        match &mut self.safe {
            Some(safe) => {
                let text = safe.push(bytes);
                self.write(text.as_bytes(), stderr)
            }
            None => self.write(bytes, stderr),
        }
    }

    fn is_for_stderr(&self, source: Source) -> bool {
        self.sink == Sink::Stderr || (self.sink == Sink::Split && source == Source::Stderr)
    }

    /// Whether a line was begun and not ended: nothing else may stand there.
    pub(crate) fn is_within_line(&self) -> bool {
        self.within
    }

    /// Whether all that went to stderr is out.
    pub(crate) fn is_heard(&self) -> bool {
        self.heard
    }

    fn write(&mut self, bytes: &[u8], stderr: bool) -> Result<(), Failure> {
        let Some(last) = bytes.last() else { return Ok(()) };
        let shown = if stderr { self.console.stderr_terminal } else { self.console.terminal };
        if shown {
            self.within = *last != b'\n';
        }
        if stderr {
            // One stream that nobody takes does not end the other; but not all was read.
            self.console.clear_status();
            let put = nonblocking_stdio::push_as_is(bytes).map(|put| put.is_ok());
            self.heard &= put.unwrap_or_else(|| self.console.aside(bytes));
            return Ok(());
        }
        self.console.data(bytes)
    }
}

/// The line that stands for bytes that are not kept.
fn gap(bytes: u64) -> String {
    format!("[… {} not kept …]", show_size(bytes))
}

/// One line of `output --json`.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Entry {
    /// Bytes.
    Output(OutputChunk),
    /// Missing ones.
    Gap(OutputGap),
    /// The end; ask for `offset` to go on.
    End {
        /// The next offset.
        offset: u64,
        /// Whether the task has ended, so that nothing will follow.
        complete: bool,
    },
}

impl Entry {
    /// The lines for a chunk.
    pub(crate) fn of_chunk(chunk: &Chunk) -> Vec<Self> {
        let mut entries = Vec::new();
        if chunk.gap > 0 {
            let offset = chunk.offset.saturating_sub(chunk.gap);
            entries.push(Self::Gap(OutputGap { offset, bytes: chunk.gap }));
        }
        if !chunk.bytes.is_empty() {
            let text = std::str::from_utf8(&chunk.bytes).ok().map(str::to_owned);
            let base64 = text
                .is_none()
                .then(|| base64::Engine::encode(&base64::engine::general_purpose::STANDARD, &chunk.bytes));
            let bytes = chunk.bytes.len() as u64;
            entries.push(Self::Output(OutputChunk { offset: chunk.offset, bytes, text, base64 }));
        }
        entries
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_is_one_line() {
        assert_eq!(gap(1_342_177_280), "[… 1.2 GiB not kept …]");
    }

    #[test]
    fn chunks_in_json_say_where_they_are_and_what_is_missing() {
        let chunk =
            Chunk { bytes: b"\xff"[..].into(), offset: 10, end: 11, dropped: 4, gap: 4, complete: false };
        let lines: Vec<_> =
            Entry::of_chunk(&chunk).iter().map(|entry| serde_json::to_string(entry).unwrap()).collect();
        assert_eq!(lines[0], r#"{"type":"gap","offset":6,"bytes":4}"#);
        assert_eq!(lines[1], r#"{"type":"output","offset":10,"bytes":1,"base64":"/w=="}"#);
    }
}
