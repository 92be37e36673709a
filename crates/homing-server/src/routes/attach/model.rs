//! A terminal that is fed what a task prints: a pure function of the durable output and the sizes beside it.
//!
//! `vt100` keeps the picture; [`Modes`] what it does not keep. Letters that a program has drawn as lines (`ESC ( 0`, as dialogs do) become the
//! characters that they stand for before the picture gets them. Output is hostile: should some of it make the model panic, that is caught, and a
//! new one begins where it failed. Nothing here waits or reads; whoever feeds large pieces does it where nobody waits.

use std::num::NonZeroU16;
use std::panic::{AssertUnwindSafe, catch_unwind};

use homing_engine::Size;

use super::modes::Modes;
use super::picture::Picture;

/// What the letters from `` ` `` to `~` are when lines are drawn.
const LINES: [char; 31] = [
    '◆', '▒', '␉', '␌', '␍', '␊', '°', '±', '␤', '␋', '┘', '┐', '┌', '└', '┼', '⎺', '⎻', '─', '⎼', '⎽', '├',
    '┤', '┴', '┬', '│', '≤', '≥', 'π', '≠', '£', '·',
];

/// The terminal.
pub(super) struct Model {
    picture: vt100::Parser,
    modes: Modes,
    sequences: vte::Parser,
    /// How the last piece ended.
    tail: [u8; 2],
    /// Some output could not be taken, and a new one began.
    pub(super) failed: bool,
}

/// Rows and columns as the model takes them.
pub(super) fn nonzero(size: Size) -> (NonZeroU16, NonZeroU16) {
    let one = |number| NonZeroU16::new(number).unwrap_or(NonZeroU16::MIN);
    (one(size.rows), one(size.cols))
}

fn picture(size: Size) -> vt100::Parser {
    let (rows, cols) = nonzero(size);
    vt100::Parser::new(rows, cols, 0)
}

impl Model {
    /// An empty one.
    pub(super) fn new(size: Size) -> Self {
        Self {
            picture: picture(size),
            modes: Modes::default(),
            sequences: vte::Parser::new(),
            tail: [0; 2],
            failed: false,
        }
    }

    /// How large it is.
    pub(super) fn size(&self) -> Size {
        let (rows, cols) = self.picture.screen().size();
        Size { cols: cols.get(), rows: rows.get() }
    }

    /// The terminal has another size from here on.
    pub(super) fn resize(&mut self, size: Size) {
        let (rows, cols) = nonzero(size);
        self.modes.resized();
        let resized = catch_unwind(AssertUnwindSafe(|| self.picture.set_size(rows, cols)));
        if resized.is_err() {
            self.begin_anew(size);
        }
    }

    /// The program printed this.
    pub(super) fn feed(&mut self, bytes: &[u8]) {
        let size = self.size();
        if catch_unwind(AssertUnwindSafe(|| self.take(bytes))).is_err() {
            self.begin_anew(size);
        }
    }

    /// What it shows.
    pub(super) fn picture(&self) -> Picture {
        Picture { screen: self.picture.screen().clone(), modes: self.modes.clone() }
    }

    fn begin_anew(&mut self, size: Size) {
        tracing::warn!("a terminal model could not take some output; a new one begins");
        *self = Self { failed: true, ..Self::new(size) };
    }

    fn take(&mut self, bytes: &[u8]) {
        let designates = |pair: &[u8]| matches!(pair, [0x1b, b'(' | b')']);
        // A piece may end in the middle of what makes it so.
        let special = self.tail.contains(&0x1b)
            || self.modes.draws_lines()
            || bytes.contains(&0x0e)
            || bytes.windows(2).any(designates);
        for byte in bytes.iter().rev().take(2).rev() {
            self.tail = [self.tail[1], *byte];
        }
        if special {
            bytes.iter().for_each(|byte| self.take_one(*byte));
        } else {
            self.sequences.advance(&mut self.modes, bytes);
            self.picture.process(bytes);
        }
    }

    fn take_one(&mut self, byte: u8) {
        let _ = self.modes.take_printed();
        let drawing = self.modes.draws_lines();
        self.sequences.advance(&mut self.modes, &[byte]);
        let line = match self.modes.take_printed() {
            Some(letter) if drawing => {
                u32::from(letter).checked_sub(0x60).and_then(|place| LINES.get(usize::try_from(place).ok()?))
            }
            Some(_) | None => None,
        };
        match line {
            Some(line) => self.picture.process(line.encode_utf8(&mut [0; 4]).as_bytes()),
            None => self.picture.process(&[byte]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Size = Size { cols: 20, rows: 5 };

    fn shown(bytes: &[u8]) -> Picture {
        let mut model = Model::new(SMALL);
        model.feed(bytes);
        model.picture()
    }

    /// What a terminal of that size shows that is given this.
    fn on(size: Size, bytes: &str) -> vt100::Screen {
        let mut terminal = picture(size);
        terminal.process(bytes.as_bytes());
        terminal.screen().clone()
    }

    const SAMPLES: [&[u8]; 8] = [
        b"hello\r\n\x1b[31mred\x1b[m\r\n$ ",
        b"\x1b[?1049h\x1b[2;4r\x1b[5;1Hstatus\x1b[2;1Htext\x1b[?25l\x1b[?1h\x1b=",
        b"\x1b[?2004h\x1b[?1002h\x1b[?1006hmouse\x1b[5 q",
        b"one line that is longer than the screen is wide, and wraps\r\n",
        "wide \u{4e16}\u{754c} and e\u{301}\r\n\x1b[7m\x1b[K\x1b[mx".as_bytes(),
        b"1\r\n2\r\n3\r\n4\r\n5\r\n6\r\n7",
        b"12345678901234567890",
        b"\x1b[44m\x1b[2J\x1b[3;3Hblue\x1b[m",
    ];

    #[test]
    fn a_terminal_of_the_same_size_that_is_given_the_whole_shows_the_same_and_is_in_the_same_state() {
        for sample in SAMPLES {
            let picture = shown(sample);
            for before in ["", "garbage\x1b[?1049h\x1b[3;4r\x1b[?6h\x1b[1;31mmore\x1b[?1003h"] {
                let there = on(SMALL, &format!("{before}{}", picture.whole()));
                assert_eq!(there.contents_formatted(), picture.screen.contents_formatted(), "{sample:?}");
                assert_eq!(there.input_mode_formatted(), picture.screen.input_mode_formatted());
                assert_eq!(there.alternate_screen(), picture.alternate());
            }
        }
    }

    #[test]
    fn what_comes_next_means_the_same_there() {
        let next = b"x\r\n\n\ny\x1b[2;1Hz\x1b[L\x1b[?25h";
        for sample in SAMPLES {
            let picture = shown(sample);
            let mut model = Model::new(SMALL);
            model.feed(sample);
            model.feed(next);
            let there = on(SMALL, &format!("{}{}", picture.whole(), String::from_utf8_lossy(next)));
            assert_eq!(there.contents(), model.picture().screen.contents(), "{sample:?}");
        }
    }

    #[test]
    fn a_larger_terminal_shows_the_same_in_its_corner_and_nothing_else() {
        let large = Size { cols: 50, rows: 9 };
        for sample in SAMPLES {
            for next in SAMPLES {
                let first = shown(sample);
                let mut model = Model::new(SMALL);
                model.feed(sample);
                model.feed(next);
                let second = model.picture();
                let repainted = second.repainted(&first, large).unwrap_or_else(|| second.painted(large));
                let there = on(large, &format!("{}{repainted}", first.painted(large)));
                let rows: Vec<String> = there.rows(0, 50).map(|row| row.trim_end().to_owned()).collect();
                let expected: Vec<String> =
                    second.screen.rows(0, 20).map(|row| row.trim_end().to_owned()).collect();
                assert_eq!(rows[..5], expected[..], "{sample:?} {next:?}");
                assert!(rows[5..].iter().all(String::is_empty), "{rows:?}");
                assert!(
                    (0..9).all(|row| there.cell(row, 30).unwrap().bgcolor() == vt100::Color::Default),
                    "{sample:?} {next:?}"
                );
                let (row, col) = second.screen.cursor_position();
                assert_eq!(there.cursor_position(), (row, col.min(19)));
            }
        }
    }

    #[test]
    fn a_smaller_terminal_shows_the_corner() {
        let small = Size { cols: 4, rows: 2 };
        for sample in SAMPLES {
            let picture = shown(sample);
            let there = on(small, &picture.painted(small));
            let expected: Vec<String> =
                picture.screen.rows(0, 4).take(2).map(|row| row.trim_end().to_owned()).collect();
            let rows: Vec<String> = there.rows(0, 4).map(|row| row.trim_end().to_owned()).collect();
            assert_eq!(rows, expected, "{sample:?}");
        }
    }

    #[test]
    fn letters_that_are_drawn_as_lines_are_lines_however_the_bytes_are_cut() {
        let bytes = b"a\x1b(0lqk\x1b[2;1Hx x\x1b(Bq\x1b)0\x0eq\x0fq";
        for cut in 0..bytes.len() {
            let mut model = Model::new(SMALL);
            model.feed(&bytes[..cut]);
            model.feed(&bytes[cut..]);
            let rows: Vec<String> = model.picture().screen.rows(0, 20).collect();
            assert_eq!((rows[0].as_str(), rows[1].as_str()), ("a┌─┐", "│ │q─q"), "cut at {cut}");
        }
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(48))]
        #[test]
        fn no_output_and_no_size_ends_it(
            pieces in proptest::collection::vec((proptest::collection::vec(proptest::num::u8::ANY, 0..300), 0..120_u16, 0..40_u16), 0..6),
            sequences in proptest::collection::vec("\\x1b[\\[\\]()?>#!P]{1,2}[0-9;?]{0,8}[A-Za-z@`~]", 0..40),
        ) {
            let mut model = Model::new(SMALL);
            for (bytes, cols, rows) in pieces {
                model.feed(&bytes);
                model.resize(Size { cols, rows });
                model.feed(sequences.concat().as_bytes());
                let picture = model.picture();
                let _ = (picture.whole(), picture.painted(Size { cols: 7, rows: 3 }));
            }
        }
    }
}
