//! Output as lines to be judged.
//!
//! A line ends with a line feed or a carriage return, so that each state of a progress bar is one; lines with nothing in them are none. One that
//! is longer than [`LONGEST`] is judged in pieces of that size. Where lines begin depends on the bytes from a line border on and on nothing
//! else: reading on from a border that was kept gives the same lines.

use std::borrow::Cow;

use crate::mask::Masks;
use crate::sanitize;

/// So many bytes a line has at most; a longer one is judged in pieces.
pub const LONGEST: usize = 64 * 1024;
/// So many characters of a line are told.
const SHOWN: usize = 500;

const ESCAPE: u8 = 0x1b;

/// One line to be judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line<'a> {
    /// Its bytes, without what ends it.
    pub bytes: &'a [u8],
    /// Where the next one begins.
    pub end: usize,
}

/// The lines in `bytes`, which begin at a line border. What has no end yet is left out, unless nothing more will come (`last`).
pub fn split(bytes: &[u8], last: bool) -> impl Iterator<Item = Line<'_>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = bytes.get(at..).filter(|rest| !rest.is_empty())?;
        let reach = rest.get(..LONGEST).unwrap_or(rest);
        let (length, taken) = match reach.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            Some(length) => (length, length + 1),
            None if reach.len() == LONGEST || last => (reach.len(), reach.len()),
            None => return None,
        };
        at += taken;
        Some(Line { bytes: rest.get(..length).unwrap_or_default(), end: at })
    })
}

/// A line without what a terminal would obey: escape sequences, titles, colours. The rest is as it was, byte for byte.
#[must_use]
pub fn without_escapes(line: &[u8]) -> Cow<'_, [u8]> {
    if !line.contains(&ESCAPE) {
        return Cow::Borrowed(line);
    }
    let mut out = Vec::with_capacity(line.len());
    let mut bytes = line.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        if byte != ESCAPE {
            out.push(byte);
            continue;
        }
        match bytes.next() {
            Some(b'[') => while bytes.next_if(|byte| (0x20..0x40).contains(byte)).is_some() {},
            Some(b']' | b'P' | b'X' | b'^' | b'_') => {
                while let Some(byte) = bytes.next() {
                    if byte == 0x07 || (byte == ESCAPE && bytes.next_if_eq(&b'\\').is_some()) {
                        break;
                    }
                }
                continue;
            }
            Some(0x20..=0x2f) => while bytes.next_if(|byte| (0x20..0x30).contains(byte)).is_some() {},
            Some(_) | None => continue,
        }
        // The last byte of the sequence, if it is one.
        let _ = bytes.next_if(|byte| (0x30..0x7f).contains(byte));
    }
    Cow::Owned(out)
}

/// A line as it is told: on one line, safe for any screen, the first 500 characters.
#[must_use]
pub fn shown(line: &[u8], masks: &Masks) -> String {
    // Of what is not told no more is looked at than escapes may hide. Masked before anything is cut or changed, and again what escapes ran through.
    let head = line.get(..8 * SHOWN + masks.longest()).unwrap_or(line);
    let mut masked = masks.bytes_from(head, 0);
    masked.truncate(8 * SHOWN);
    let mut text = sanitize::line(&String::from_utf8_lossy(&masked));
    masks.cover(&mut text);
    let cut = head.len() < line.len() || text.chars().nth(SHOWN).is_some();
    text.chars().take(SHOWN).chain(cut.then_some('…')).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::text::OsText;

    fn lines(bytes: &[u8], last: bool) -> Vec<&[u8]> {
        split(bytes, last).map(|line| line.bytes).filter(|line| !line.is_empty()).collect()
    }

    #[test]
    fn a_line_ends_with_a_line_feed_or_a_return_and_the_last_one_with_the_output() {
        let text = b"one\r\ntwo\n10%\r50%\r\r\n\nthe end";
        assert_eq!(lines(text, false), [&b"one"[..], b"two", b"10%", b"50%"]);
        assert_eq!(lines(text, true).last(), Some(&&b"the end"[..]));
    }

    #[test]
    fn a_line_without_end_is_judged_in_pieces() {
        let long = vec![b'x'; 2 * LONGEST + 5];
        assert_eq!(lines(&long, false).iter().map(|line| line.len()).collect::<Vec<_>>(), [LONGEST, LONGEST]);
        assert_eq!(lines(&long, true).iter().map(|line| line.len()).sum::<usize>(), long.len());
    }

    #[test]
    fn escapes_are_gone_and_everything_else_is_left() {
        for (line, clean) in [
            (&b"\x1b[1;32mrea\x1b[0mdy\x1b]0;title\x07!"[..], &b"ready!"[..]),
            (b"a\x1b[2Kb\x1b(Bc\x1bcd\x1bP+q\x1b\\e", b"abcde"),
            (b"\xff\x00a\x1b", b"\xff\x00a"),
            (b"a\x1b[31", b"a"),
            (b"a\x1b[3\xc3\xa4b", b"a\xc3\xa4b"),
            (b"plain", b"plain"),
        ] {
            assert_eq!(without_escapes(line).as_ref(), clean);
        }
    }

    #[test]
    fn what_is_told_of_a_line_is_short_and_harmless() {
        assert_eq!(shown(b"\x1b[31mred\x1b[0m\tand \xff\x07", &Masks::default()), "red and \u{fffd}\u{2407}");
        let long = shown(&"ä".repeat(600).into_bytes(), &Masks::default());
        assert_eq!((long.chars().count(), long.ends_with('…')), (501, true));
        assert_eq!(shown(&"ä".repeat(500).into_bytes(), &Masks::default()), "ä".repeat(500));
    }

    proptest! {
        #[test]
        fn reading_on_from_any_border_gives_the_same_lines(bytes in "[ab\\r\\n]{0,80}", stop in 0usize..80) {
            let bytes = bytes.as_bytes();
            let stop = stop.min(bytes.len());
            let border = split(&bytes[..stop], false).last().map_or(0, |line| line.end);
            let mut halves = lines(&bytes[..border], false);
            halves.extend(lines(&bytes[border..], true));
            prop_assert_eq!(halves, lines(bytes, true));
        }

        #[test]
        fn no_escape_is_left_and_no_bytes_do_harm(bytes: Vec<u8>) {
            prop_assert!(!without_escapes(&bytes).contains(&ESCAPE));
            prop_assert!(shown(&bytes, &Masks::default()).chars().all(|c| !c.is_control()));
        }
    }

    #[test]
    fn no_part_of_a_secret_is_shown_where_a_line_is_cut_or_changed() {
        let value = "tab\tand-a-long-token-of-some-length";
        let variables = [("API_TOKEN".to_owned(), OsText::from(value.to_owned()))];
        let masks = Masks::new(7, variables.iter().map(|(name, value)| (name, value)), |_| true);
        for before in [0, 480, 8 * SHOWN - 10] {
            let line = format!("{}{value} end", ".".repeat(before));
            assert!(!shown(line.as_bytes(), &masks).contains("tab"), "{before}");
        }
        let coloured = format!("{}tab\t\x1b[31mand-a-long-token-of-some-length", ".".repeat(490));
        assert!(!shown(coloured.as_bytes(), &masks).contains("long"));
    }
}
