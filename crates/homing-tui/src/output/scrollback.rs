//! Lines of output, bounded in number, length and bytes.
//!
//! Each stream passes its own sanitizer, since a sequence of one may be cut by bytes of the other; lines are made in the order in which the bytes came. A line belongs to
//! one stream: where the other breaks in, a new one begins. A carriage return lets the line be written anew, as progress bars do.

use std::collections::VecDeque;

use homing_model::sanitize::{Colour, Return, Sanitizer};
use homing_model::units::show_size;
use ratatui::style::Style;

use super::sgr;
use crate::glyph::Sieve;
use crate::message::{Piece, Stream};

/// Lines that are kept.
const LINES: usize = 5_000;

/// Columns of a line that are kept.
const COLUMNS: usize = 4_000;

/// Bytes that are kept in all, about.
const BYTES: usize = 2 << 20;

/// The longest colour sequence that is read.
const SEQUENCE: usize = 64;

/// A stretch of one style.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) text: String,
    pub(crate) style: Style,
}

/// One line. Its texts hold only what stays in its cells.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Line {
    pub(crate) spans: Vec<Span>,
    pub(crate) stream: Stream,
    /// Not of the task: said about its output.
    pub(crate) remark: bool,
    columns: usize,
}

impl Line {
    fn bytes(&self) -> usize {
        self.spans.iter().map(|span| span.text.len() + 64).sum::<usize>() + 64
    }

    /// How wide it is.
    pub(crate) const fn columns(&self) -> usize {
        self.columns
    }

    /// Without its styles.
    pub(crate) fn text(&self) -> String {
        self.spans.iter().map(|span| span.text.as_str()).collect()
    }
}

/// The lines of one task.
#[derive(Debug, Clone, Default)]
pub struct Scrollback {
    lines: VecDeque<Line>,
    /// Lines that were dropped from the start: the number of the first one that is kept.
    first: u64,
    bytes: usize,
    /// The line that is being written is the last one.
    open: Option<Open>,
    streams: [Filter; 2],
}

/// What is known of a line that has not ended.
#[derive(Debug, Clone)]
struct Open {
    sieve: Sieve,
    /// What comes next replaces what is there.
    rewrite: bool,
}

#[derive(Debug, Default)]
struct Filter {
    sanitizer: Option<Sanitizer>,
    style: Style,
    /// A colour sequence of which a part came.
    sequence: Option<String>,
}

/// A copy goes on as a new reader would: in plain text.
impl Clone for Filter {
    fn clone(&self) -> Self {
        Self { sanitizer: None, style: self.style, sequence: None }
    }
}

impl Scrollback {
    /// Adds a piece.
    pub fn push(&mut self, piece: &Piece) {
        if piece.gap > 0 {
            self.remark(&format!("… {} not shown …", show_size(piece.gap)));
        }
        let index = usize::from(piece.stream == Stream::Stderr);
        let fresh = || Sanitizer::new(Colour::Keep).with_returns(Return::Rewrite);
        let text = self.streams[index].sanitizer.get_or_insert_with(fresh).push(&piece.bytes);
        for c in text.chars() {
            self.character(index, piece.stream, c);
        }
        self.trim();
    }

    /// Adds a line that is not the task's.
    pub fn remark(&mut self, text: &str) {
        self.open = None;
        let mut line = Line { remark: true, ..Line::default() };
        line.spans.push(Span { text: crate::glyph::clean(text), style: Style::new() });
        self.bytes += line.bytes();
        self.lines.push_back(line);
        self.trim();
    }

    /// How many lines there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// How many lines were dropped from the start since the beginning.
    pub(crate) const fn dropped(&self) -> u64 {
        self.first
    }

    /// The line at a place, counted from the first that is kept.
    pub(crate) fn line(&self, index: usize) -> Option<&Line> {
        self.lines.get(index)
    }

    /// The widest of some lines.
    pub(crate) fn widest(&self, from: usize, count: usize) -> usize {
        self.lines.iter().skip(from).take(count).map(|line| line.columns).max().unwrap_or(0)
    }

    /// The next line with a text, in lower case, after or before a place; round the end if need be.
    pub(crate) fn find(&self, text: &str, from: usize, forwards: bool) -> Option<usize> {
        let count = self.lines.len();
        if count == 0 || text.is_empty() {
            return None;
        }
        (1..=count)
            .map(|step| if forwards { (from + step) % count } else { (from + count - step % count) % count })
            .find(|index| self.lines[*index].text().to_lowercase().contains(text))
    }

    fn character(&mut self, index: usize, stream: Stream, c: char) {
        let filter = &mut self.streams[index];
        if let Some(mut sequence) = filter.sequence.take() {
            match c {
                'm' => {
                    filter.style = sgr::apply(filter.style, sequence.trim_start_matches('['));
                }
                _ if sequence.len() < SEQUENCE => {
                    sequence.push(c);
                    filter.sequence = Some(sequence);
                }
                _ => {}
            }
            return;
        }
        let style = filter.style;
        match c {
            '\u{1b}' => filter.sequence = Some(String::new()),
            '\n' => {
                self.current(stream);
                self.open = None;
            }
            '\r' => {
                if let Some(open) = &mut self.open {
                    open.rewrite = true;
                }
            }
            '\u{8}' => self.back(),
            '\t' => {
                let column = self.column();
                for _ in 0..8 - column % 8 {
                    self.put(stream, ' ', style);
                }
            }
            _ => self.put(stream, c, style),
        }
    }

    fn column(&self) -> usize {
        match (&self.open, self.lines.back()) {
            (Some(open), Some(line)) if !open.rewrite => line.columns,
            _ => 0,
        }
    }

    /// The line that is being written, begun if there is none, or one of the other stream.
    fn current(&mut self, stream: Stream) -> Option<(&mut Line, &mut Open)> {
        let fits = self.open.is_some() && self.lines.back().is_some_and(|line| line.stream == stream);
        if !fits {
            self.open = Some(Open { sieve: Sieve::new(), rewrite: false });
            self.bytes += 64;
            self.lines.push_back(Line { stream, ..Line::default() });
        }
        self.lines.back_mut().zip(self.open.as_mut())
    }

    fn put(&mut self, stream: Stream, c: char, style: Style) {
        let Some((line, open)) = self.current(stream) else { return };
        let mut freed = 0;
        if std::mem::take(&mut open.rewrite) {
            freed = line.bytes() - 64;
            line.spans.clear();
            line.columns = 0;
            open.sieve = Sieve::new();
        }
        let mut added = 0;
        if line.columns <= COLUMNS
            && let Some((c, columns)) = open.sieve.pass(c)
        {
            let over = line.columns + columns > COLUMNS;
            let c = if over { '…' } else { c };
            line.columns += if over { COLUMNS + 1 - line.columns } else { columns };
            added = c.len_utf8();
            match line.spans.last_mut().filter(|span| span.style == style) {
                Some(span) => span.text.push(c),
                None => {
                    added += 64;
                    line.spans.push(Span { text: c.to_string(), style });
                }
            }
        }
        self.bytes = (self.bytes + added).saturating_sub(freed);
    }

    /// Takes the last character of the line away, with the marks on it.
    fn back(&mut self) {
        if self.open.is_none() {
            return;
        }
        let Some(line) = self.lines.back_mut() else { return };
        while let Some(span) = line.spans.last_mut() {
            let Some(c) = span.text.pop() else {
                line.spans.pop();
                self.bytes = self.bytes.saturating_sub(64);
                continue;
            };
            self.bytes = self.bytes.saturating_sub(c.len_utf8());
            let columns = unicode_width::UnicodeWidthChar::width(c).unwrap_or(0);
            line.columns = line.columns.saturating_sub(columns);
            if columns > 0 {
                break;
            }
        }
    }

    fn trim(&mut self) {
        while self.lines.len() > LINES || (self.bytes > BYTES && self.lines.len() > 1) {
            let Some(line) = self.lines.pop_front() else { break };
            self.bytes = self.bytes.saturating_sub(line.bytes());
            self.first += 1;
        }
        if self.lines.is_empty() {
            self.open = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use ratatui::style::Color;

    use super::*;

    fn of(pieces: &[(Stream, &[u8])]) -> Scrollback {
        let mut all = Scrollback::default();
        for (stream, bytes) in pieces {
            all.push(&Piece { gap: 0, stream: *stream, bytes: bytes.to_vec() });
        }
        all
    }

    fn texts(all: &Scrollback) -> Vec<String> {
        all.lines.iter().map(Line::text).collect()
    }

    #[test]
    fn lines_are_the_same_however_the_bytes_are_cut() {
        let bytes = "a\x1b[31mréd\x1b[0m\ttab\r\n10%\r50%\r\nspin|\x08/\x08-\n日本\x1b]0;t\x07語".as_bytes();
        let whole = of(&[(Stream::Stdout, bytes)]);
        assert_eq!(texts(&whole), ["aréd    tab", "50%", "spin-", "日本語"]);
        for cut in 0..bytes.len() {
            let parts = of(&[(Stream::Stdout, &bytes[..cut]), (Stream::Stdout, &bytes[cut..])]);
            assert_eq!(parts.lines, whole.lines, "cut at {cut}");
        }
        assert_eq!(whole.lines[0].spans[1], Span { text: "réd".into(), style: Style::new().fg(Color::Red) });
    }

    #[test]
    fn a_line_belongs_to_one_stream_and_colours_do_not_cross() {
        let all =
            of(&[(Stream::Stdout, b"out \x1b[32"), (Stream::Stderr, b"oops\n"), (Stream::Stdout, b"mput\n")]);
        assert_eq!(texts(&all), ["out ", "oops", "put"]);
        assert_eq!(all.lines[1].stream, Stream::Stderr);
        assert_eq!(all.lines[1].spans[0].style, Style::new());
        assert_eq!(all.lines[2].spans[0].style, Style::new().fg(Color::Green));
    }

    #[test]
    fn nothing_grows_without_bound() {
        let mut all = Scrollback::default();
        for _ in 0..4 {
            all.push(&Piece { bytes: vec![b'x'; 1 << 18], ..Piece::default() });
        }
        assert_eq!(all.len(), 1);
        assert_eq!(all.lines[0].text().chars().count(), COLUMNS + 1);
        for number in 0..6_000 {
            all.push(&Piece {
                bytes: format!("\x1b[{}mline {number}\n", 31 + number % 7).into(),
                ..Piece::default()
            });
        }
        assert!(all.len() <= LINES && all.bytes <= BYTES, "{} {}", all.len(), all.bytes);
        assert_eq!(all.dropped() + all.len() as u64, 6_000);
        for _ in 0..60 {
            let colours = "\x1b[31ma\x1b[32mb".repeat(900);
            all.push(&Piece { bytes: colours.into(), ..Piece::default() });
            all.push(&Piece { bytes: b"\n".to_vec(), ..Piece::default() });
        }
        let kept: usize = all.lines.iter().map(Line::bytes).sum();
        assert!(all.bytes <= BYTES && kept <= BYTES + 200_000, "{} {kept}", all.bytes);
    }

    #[test]
    fn a_gap_is_a_line_of_its_own() {
        let mut all = of(&[(Stream::Stdout, b"half")]);
        all.push(&Piece { gap: 2048, bytes: b"rest\n".to_vec(), ..Piece::default() });
        assert_eq!(texts(&all), ["half", "… 2.0 KiB not shown …", "rest"]);
        assert!(all.lines[1].remark);
    }

    #[test]
    fn a_search_goes_round_both_ways() {
        let all = of(&[(Stream::Stdout, b"Apple\nbanana\ncherry\napple pie\n")]);
        assert_eq!(all.find("apple", 0, true), Some(3));
        assert_eq!(all.find("apple", 3, true), Some(0));
        assert_eq!(all.find("apple", 0, false), Some(3));
        assert_eq!(all.find("apple", 3, false), Some(0));
        assert_eq!(all.find("banana", 1, true), Some(1), "the only one is found again");
        assert_eq!(all.find("nothing", 0, true), None);
        assert_eq!(Scrollback::default().find("x", 0, true), None);
    }
}
