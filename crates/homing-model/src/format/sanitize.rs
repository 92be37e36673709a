//! Output made safe for a terminal.
//!
//! A task may print anything; a terminal obeys much of it. Everything that could move the cursor, hide text, change
//! titles, reorder lines or answer back is removed (escape sequences) or shown as a visible glyph (control characters).
//! Line feeds and tabs stay; carriage returns directly before a line feed, the line ends of a terminal, vanish, others
//! show, or pass where the reader lets a task rewrite its own line. Backspaces show or pass alike, but never beyond what
//! the task has written on that line. Colours (`ESC [ … m`, digits and semicolons only) stay where the reader can show them, but for those
//! that conceal, and end with the stream; they are dropped where the reader cannot.

use crate::unseen::is_unseen;
use crate::utf8::unfinished;

/// Whether simple colour sequences survive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colour {
    /// `ESC [ … m` passes.
    Keep,
    /// It is removed.
    Strip,
}

/// What becomes of carriage returns that no line feed follows, as progress bars use them, and of backspaces, as spinners do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Return {
    /// They show as a glyph.
    Show,
    /// One passes for each run of them: what follows rewrites the line. For a reader that has put nothing of its own on that
    /// line, or puts it there anew.
    Rewrite,
}

const BACKSPACE: u8 = 0x08;

/// What hides the text that follows, among the numbers of a colour sequence.
const CONCEAL: u8 = 8;

/// The longest colour sequence that is let through.
const MAX_SEQUENCE: usize = 32;

/// A stateful filter: chunks may be cut anywhere, inside a character or a sequence.
#[derive(Debug)]
pub struct Sanitizer {
    colour: Colour,
    lone: Return,
    pending: Vec<u8>,
    /// Carriage returns that are held back until it is known whether a line feed follows.
    returns: usize,
    /// Backspaces that are held back until it is known that something of the task's own follows.
    backs: usize,
    /// Columns of this line that the task has surely filled, and may go back over.
    filled: usize,
    /// A colour was passed on and not taken back since.
    coloured: bool,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Text,
    Escape,
    Csi,
    /// An OSC, DCS, APC, PM or SOS string: swallowed to its terminator.
    Str,
    StrEscape,
}

impl Sanitizer {
    /// A filter at the start of a stream.
    #[must_use]
    pub fn new(colour: Colour) -> Self {
        Self {
            colour,
            lone: Return::Show,
            pending: Vec::new(),
            returns: 0,
            backs: 0,
            filled: 0,
            coloured: false,
            state: State::Text,
        }
    }

    /// The same, with carriage returns treated like this.
    #[must_use]
    pub fn with_returns(self, lone: Return) -> Self {
        Self { lone, ..self }
    }

    /// Passes a chunk through.
    pub fn push(&mut self, chunk: &[u8]) -> String {
        let mut out = String::with_capacity(chunk.len());
        for &byte in chunk {
            self.byte(byte, &mut out);
        }
        out
    }

    /// Whether the stream is in the middle of a sequence; a character of which only a part came is forgotten.
    pub(crate) fn is_inside(&mut self) -> bool {
        let inside = self.state != State::Text;
        if !inside {
            let _ = self.finish();
        }
        inside
    }

    /// What was held back at the end of the stream, and the end of its colours: what comes next on the terminal has its own.
    pub fn finish(&mut self) -> String {
        let mut out = String::new();
        if self.state == State::Text {
            self.flush_text(&mut out, true);
            // Whatever comes next on the terminal is not the task's, and must not rewrite its line.
            if self.lone == Return::Show {
                self.show_returns(&mut out);
            }
        }
        if std::mem::take(&mut self.coloured) {
            out.push_str("\x1b[0m");
        }
        (self.returns, self.backs, self.filled) = (0, 0, 0);
        self.pending.clear();
        self.state = State::Text;
        out
    }

    fn byte(&mut self, byte: u8, out: &mut String) {
        match self.state {
            State::Text => self.text(byte, out),
            State::Escape => match byte {
                b'[' => {
                    self.pending.clear();
                    self.state = State::Csi;
                }
                b']' | b'P' | b'X' | b'^' | b'_' => self.state = State::Str,
                0x1b => {}
                // A two-character sequence such as ESC c (reset), or intermediates of a longer one.
                0x20..=0x2f => {}
                _ => self.state = State::Text,
            },
            State::Csi => match byte {
                0x40..=0x7e => {
                    let simple = self.pending.iter().all(|b| b.is_ascii_digit() || *b == b';' || *b == b':');
                    if byte == b'm' && simple && self.colour == Colour::Keep {
                        let asked: String = self.pending.iter().map(|b| char::from(*b)).collect();
                        self.colours(&asked, out);
                    }
                    self.pending.clear();
                    self.state = State::Text;
                }
                0x20..=0x3f if self.pending.len() < MAX_SEQUENCE => self.pending.push(byte),
                0x1b => {
                    self.pending.clear();
                    self.state = State::Escape;
                }
                _ => {
                    // Not a sequence after all, or an absurdly long one: what follows is text again.
                    self.pending.clear();
                    self.state = State::Text;
                    self.byte(byte, out);
                }
            },
            State::Str => match byte {
                0x07 => self.state = State::Text,
                0x1b => self.state = State::StrEscape,
                // An unterminated string must not swallow the rest of the output.
                b'\n' => {
                    self.state = State::Text;
                    (self.backs, self.filled) = (0, 0);
                    out.push('\n');
                }
                _ => {}
            },
            State::StrEscape => self.state = if byte == b'\\' { State::Text } else { State::Str },
        }
    }

    /// Passes on what a colour sequence asks for, without what conceals.
    fn colours(&mut self, asked: &str, out: &mut String) {
        let mut asked = asked.split(';');
        let mut shown = Vec::new();
        while let Some(one) = asked.next() {
            let code = one.split(':').next().map_or(0, number);
            if !matches!(code, 38 | 48 | 58) {
                // A terminal that does not know the parts of one takes each by itself.
                if one.split(':').map(number).all(|part| part != CONCEAL) {
                    self.coloured = code != 0;
                    shown.push(one);
                }
                continue;
            }
            let mut colour = vec![one];
            if !one.contains(':') {
                // How it is given, and in how many numbers: none of those stands for itself.
                let form = asked.next();
                let numbers = match form.map(number) {
                    Some(2) => 3,
                    Some(5) => 1,
                    // It makes no sense, and what terminals make of the rest is anybody's guess.
                    _ => break,
                };
                colour.extend(form.into_iter().chain(asked.by_ref().take(numbers)));
            }
            // The colour of underlines is not known everywhere, and its numbers are taken for something else there.
            if code != 58 {
                self.coloured = true;
                shown.extend(colour);
            }
        }
        if !shown.is_empty() {
            out.push_str("\x1b[");
            out.push_str(&shown.join(";"));
            out.push('m');
        }
    }

    fn text(&mut self, byte: u8, out: &mut String) {
        match byte {
            b'\r' => {
                self.flush_text(out, true);
                self.returns += 1;
                self.backs = 0;
                return;
            }
            b'\n' => {
                self.flush_text(out, true);
                (self.returns, self.backs, self.filled) = (0, 0, 0);
            }
            _ => self.show_returns(out),
        }
        match byte {
            0x1b => {
                self.flush_text(out, true);
                self.state = State::Escape;
            }
            BACKSPACE if self.lone == Return::Rewrite => {
                self.flush_text(out, true);
                self.backs = (self.backs + 1).min(self.filled);
            }
            0x00..=0x7f => {
                self.flush_text(out, true);
                self.go_back(out);
                push_ascii(byte, out);
                self.filled += usize::from(matches!(byte, b' '..=b'~'));
            }
            0x80..=0xff => {
                self.go_back(out);
                self.pending.push(byte);
                self.flush_text(out, false);
            }
        }
    }

    /// Passes on the carriage returns that no line feed followed.
    fn show_returns(&mut self, out: &mut String) {
        let count = std::mem::take(&mut self.returns);
        match self.lone {
            Return::Show => (0..count).for_each(|_| push_ascii(b'\r', out)),
            Return::Rewrite if count > 0 => {
                out.push('\r');
                self.filled = 0;
            }
            Return::Rewrite => {}
        }
    }

    /// Passes on the backspaces that something followed.
    fn go_back(&mut self, out: &mut String) {
        let count = std::mem::take(&mut self.backs);
        self.filled -= count;
        out.extend(std::iter::repeat_n(char::from(BACKSPACE), count));
    }

    /// Decodes what is pending; an incomplete character waits for more unless `all`.
    fn flush_text(&mut self, out: &mut String, all: bool) {
        let held = if all { 0 } else { unfinished(&self.pending) };
        let whole = self.pending.len() - held;
        for chunk in self.pending[..whole].utf8_chunks() {
            self.filled += chunk.valid().chars().map(|c| push_char(c, out)).sum::<usize>();
            if !chunk.invalid().is_empty() {
                out.push(char::REPLACEMENT_CHARACTER);
            }
        }
        self.pending.drain(..whole);
    }
}

/// A number of a colour sequence. One that is too large to be a number of any may be taken for whatever is left of it, so it is the worst.
fn number(text: &str) -> u8 {
    match text.trim_start_matches('0') {
        "" => 0,
        digits => digits.parse().unwrap_or(CONCEAL),
    }
}

fn push_ascii(byte: u8, out: &mut String) {
    match byte {
        b'\n' | b'\t' => out.push(char::from(byte)),
        // The control pictures: ␀ … ␟ and ␡.
        0x00..=0x1f => out.extend(char::from_u32(0x2400 + u32::from(byte))),
        0x7f => out.push('\u{2421}'),
        _ => out.push(char::from(byte)),
    }
}

/// Passes a character on; answers how many columns it surely fills. Letters, frames, blocks and braille fill one at least; of others
/// that is not sure.
fn push_char(c: char, out: &mut String) -> usize {
    match c {
        // C1 controls act like escapes on some terminals.
        '\u{80}'..='\u{9f}' => out.push(char::REPLACEMENT_CHARACTER),
        _ if is_unseen(c) => out.push(char::REPLACEMENT_CHARACTER),
        _ => out.push(c),
    }
    usize::from(matches!(c, '\u{c0}'..='\u{24f}' | '\u{2500}'..='\u{28ff}'))
}

/// The same JSON, with everything that a terminal or a person could take for something else as an escape. Such characters stand in strings
/// only, so it means what it meant.
#[must_use]
pub fn json(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '\u{7f}'..='\u{9f}') || is_unseen(c) {
            let mut units = [0; 2];
            out.extend(c.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")));
        } else {
            out.push(c);
        }
    }
    out
}

/// A whole text on one line: what `list` shows of a command.
#[must_use]
pub fn line(text: &str) -> String {
    let mut sanitizer = Sanitizer::new(Colour::Strip);
    let mut out = sanitizer.push(text.as_bytes());
    out.push_str(&sanitizer.finish());
    out.replace(['\n', '\t'], " ")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn clean(colour: Colour, chunks: &[&[u8]]) -> String {
        let mut sanitizer = Sanitizer::new(colour);
        let mut out: String = chunks.iter().map(|chunk| sanitizer.push(chunk)).collect();
        out.push_str(&sanitizer.finish());
        out
    }

    #[test]
    fn titles_clears_and_replies_never_reach_the_terminal() {
        let nasty = b"a\x1b]0;title\x07b\x1b[2Jc\x1b[6nd\x1bce\x1bP+q\x1b\\f";
        assert_eq!(clean(Colour::Keep, &[nasty]), "abcdef");
    }

    #[test]
    fn colours_are_kept_or_dropped_whole_even_when_split() {
        let chunks: [&[u8]; 3] = [b"\x1b[3", b"1;1", b"mred\x1b[0m"];
        assert_eq!(clean(Colour::Keep, &chunks), "\x1b[31;1mred\x1b[0m");
        assert_eq!(clean(Colour::Strip, &chunks), "red");
    }

    #[test]
    fn nothing_is_concealed_and_colours_are_what_they_were() {
        for (sequence, passed) in [
            ("8", ""),
            ("08", ""),
            ("8;008", ""),
            ("1;8", "1"),
            ("8;31", "31"),
            ("0;8;1;8;4", "0;1;4"),
            ("4:8", ""),
            ("38;5;8", "38;5;8"),
            ("38;5;8;8", "38;5;8"),
            ("48;2;8;8;8;8;1", "48;2;8;8;8;1"),
            ("38:5:8;8", "38:5:8"),
            ("38;8", ""),
            ("1;38;7;8;8", "1"),
            ("38;5", "38;5"),
            ("58;5;8;1", "1"),
            ("58:5:8", ""),
            ("4:3;65544;99999999999;0107", "4:3;0107"),
            ("", ""),
        ] {
            let expected = match (sequence, passed) {
                ("", _) => "\x1b[mx".to_owned(),
                (_, "") => "x".to_owned(),
                _ => format!("\x1b[{passed}mx\x1b[0m"),
            };
            let text = format!("\x1b[{sequence}mx");
            assert_eq!(clean(Colour::Keep, &[text.as_bytes()]), expected, "{sequence}");
            assert_eq!(clean(Colour::Strip, &[text.as_bytes()]), "x", "{sequence}");
        }
    }

    #[test]
    fn colours_end_with_the_stream() {
        for (text, end) in [
            ("\x1b[31mred", "\x1b[0m"),
            ("\x1b[31mred\x1b[0m", ""),
            ("\x1b[31mred\x1b[m", ""),
            ("\x1b[31;00m", ""),
            ("\x1b[0;31m\x1b[8m", "\x1b[0m"),
            ("\x1b[31m\x1b]0;title", "\x1b[0m"),
        ] {
            let mut sanitizer = Sanitizer::new(Colour::Keep);
            let _ = sanitizer.push(text.as_bytes());
            assert_eq!((sanitizer.finish().as_str(), sanitizer.finish().as_str()), (end, ""), "{text:?}");
        }
    }

    #[test]
    fn split_characters_join_and_broken_ones_show() {
        assert_eq!(clean(Colour::Strip, &[b"\xe2\x82", b"\xac"]), "€");
        assert_eq!(clean(Colour::Strip, &[b"a\xffb\xe2\x82"]), "a\u{fffd}b\u{fffd}");
    }

    #[test]
    fn json_on_a_terminal_means_what_it_meant() {
        let value = serde_json::json!({ "a": "\u{9b}31m \u{202e} \u{7f} \u{e0041} é 漢 \u{1b}" });
        let shown = json(&value.to_string());
        assert!(shown.chars().all(|c| !c.is_control() && !is_unseen(c)), "{shown}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), value);
    }

    #[test]
    fn carriage_returns_and_bidi_are_visible() {
        assert_eq!(clean(Colour::Strip, &[b"safe\rEVIL"]), "safe\u{240d}EVIL");
        assert_eq!(clean(Colour::Strip, &["a\u{202e}b".as_bytes()]), "a\u{fffd}b");
    }

    #[test]
    fn line_ends_of_a_terminal_are_line_ends_however_they_are_cut() {
        let text: &[u8] = b"a\r\nb\r\r\nc\rd\xe2\x82\r\n\r\x1b[0m\n\r";
        for cut in 0..text.len() {
            let out = clean(Colour::Strip, &[&text[..cut], &text[cut..]]);
            assert_eq!(out, "a\nb\nc\u{240d}d\u{fffd}\n\u{240d}\n\u{240d}", "cut at {cut}");
        }
    }

    #[test]
    fn a_line_may_be_rewritten_where_the_reader_allows_it_but_not_by_what_comes_after() {
        let text: &[u8] = b"10%\r\r50%\r\n\x1b[2K\r100%\r";
        for cut in 0..text.len() {
            let mut sanitizer = Sanitizer::new(Colour::Keep).with_returns(Return::Rewrite);
            let mut out = sanitizer.push(&text[..cut]) + &sanitizer.push(&text[cut..]);
            out.push_str(&sanitizer.finish());
            assert_eq!(out, "10%\r50%\n\r100%", "cut at {cut}");
        }
    }

    fn rewritten(chunks: &[&[u8]]) -> String {
        let mut sanitizer = Sanitizer::new(Colour::Strip).with_returns(Return::Rewrite);
        let mut out: String = chunks.iter().map(|chunk| sanitizer.push(chunk)).collect();
        out.push_str(&sanitizer.finish());
        out
    }

    #[test]
    fn a_spinner_turns_but_never_beyond_what_the_task_wrote_on_its_line() {
        for (text, shown) in [
            (&b"|\x08/\x08-\x08"[..], "|\x08/\x08-"),
            ("⠋\x08⠙\x08".as_bytes(), "⠋\x08⠙"),
            (b"ab\x08\x08\x08\x08EVIL", "ab\x08\x08EVIL"),
            (b"ab\x08\x08X\x08\x08\x08Y", "ab\x08\x08X\x08Y"),
            (b"one\n\x08\x08two", "one\ntwo"),
            (b"one\r\x08\x08two", "one\rtwo"),
            (b"one\x08\x08\r\ntwo", "one\ntwo"),
            (b"one\x1b]0;t\n\x08two", "one\ntwo"),
            // Marks take no column of their own: to go back over them would be to go back over what is not the task's.
            ("e\u{301}\u{301}\x08\x08\x08x".as_bytes(), "e\u{301}\u{301}\x08x"),
        ] {
            for cut in 0..text.len() {
                assert_eq!(rewritten(&[&text[..cut], &text[cut..]]), shown, "cut at {cut}");
            }
        }
        assert_eq!(clean(Colour::Strip, &[b"a\x08b"]), "a\u{2408}b");
    }

    #[test]
    fn an_unterminated_title_swallows_no_later_line() {
        assert_eq!(clean(Colour::Strip, &[b"\x1b]0;never ends\nnext"]), "\nnext");
    }

    proptest! {
        #[test]
        fn no_bytes_give_a_control_character(bytes: Vec<u8>, cut in 0usize..64) {
            let cut = cut.min(bytes.len());
            let out = clean(Colour::Strip, &[&bytes[..cut], &bytes[cut..]]);
            prop_assert!(out.chars().all(|c| !c.is_control() || c == '\n' || c == '\t'));
        }

        #[test]
        fn a_line_that_may_be_rewritten_never_goes_back_before_its_start(bytes: Vec<u8>, cut in 0usize..64) {
            let cut = cut.min(bytes.len());
            let out = rewritten(&[&bytes[..cut], &bytes[cut..]]);
            prop_assert_eq!(&out, &rewritten(&[&bytes]));
            let mut column = 0_i64;
            for c in out.chars() {
                match c {
                    '\r' | '\n' => column = 0,
                    '\x08' => column -= 1,
                    _ => column += 1,
                }
                prop_assert!(column >= 0);
                prop_assert!(!c.is_control() || matches!(c, '\n' | '\t' | '\r' | '\x08'));
            }
        }

        #[test]
        fn cutting_changes_nothing(bytes: Vec<u8>, cut in 0usize..64) {
            let cut = cut.min(bytes.len());
            prop_assert_eq!(clean(Colour::Keep, &[&bytes]), clean(Colour::Keep, &[&bytes[..cut], &bytes[cut..]]));
        }
    }
}
