//! Characters that a terminal puts where it is told, and how many columns they take.
//!
//! The sanitizer of the model has removed what a terminal obeys. What is left can still be drawn wider, narrower or higher than it was counted:
//! joiners, variation selectors, flags, modifiers, towers of marks. Those go here, so that a cell holds what was counted for it.

use homing_model::sanitize;
use homing_model::unseen::is_unseen;
use unicode_width::UnicodeWidthChar;

/// Marks that may sit on one character.
const MARKS: usize = 2;

/// Makes a text of characters that stay in their cells, one by one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Sieve {
    /// Marks on the last character; as many as may be while there is none.
    marks: usize,
}

impl Sieve {
    /// At the start of a line, where there is nothing for a mark to sit on.
    pub(crate) const fn new() -> Self {
        Self { marks: MARKS }
    }

    /// The character as it may be shown, and its columns; `None` if it may not.
    pub(crate) fn pass(&mut self, c: char) -> Option<(char, usize)> {
        if let ' '..='~' = c {
            self.marks = 0;
            return Some((c, 1));
        }
        let c = match c {
            // Flags are pairs that terminals do not agree on: the letters say the same.
            '\u{1f1e6}'..='\u{1f1ff}' => char::from_u32(u32::from(c) - 0x1_f1e6 + u32::from('A'))?,
            _ if is_joiner(c) => return None,
            _ => c,
        };
        match c.width() {
            None => None,
            Some(0) if self.marks < MARKS => {
                self.marks += 1;
                Some((c, 0))
            }
            Some(0) => None,
            Some(columns) => {
                self.marks = 0;
                Some((c, columns))
            }
        }
    }
}

/// What changes how its neighbours are drawn, or is not drawn at all.
fn is_joiner(c: char) -> bool {
    is_unseen(c) || matches!(c, '\u{200d}' | '\u{fe0f}' | '\u{20dd}'..='\u{20e4}' | '\u{1f3fb}'..='\u{1f3ff}')
}

/// A text on one line, of which nothing leaves its cells.
pub(crate) fn clean(text: &str) -> String {
    let mut sieve = Sieve::new();
    sanitize::line(text).chars().filter_map(|c| sieve.pass(c)).map(|(c, _)| c).collect()
}

/// The columns of a text that is clean.
pub(crate) fn columns(text: &str) -> usize {
    if text.is_ascii() {
        return text.len();
    }
    text.chars().map(|c| c.width().unwrap_or(0)).sum()
}

/// A clean text cut to so many columns, with a mark where it was cut.
pub(crate) fn fit(text: &str, width: usize) -> String {
    if columns(text) <= width {
        return text.to_owned();
    }
    let (mut out, mut used) = (String::new(), 0);
    for c in text.chars() {
        let columns = c.width().unwrap_or(0);
        if used + columns + 1 > width {
            break;
        }
        used += columns;
        out.push(c);
    }
    if width > 0 {
        out.push('…');
    }
    out
}

/// The same, filled up with spaces.
pub(crate) fn pad(text: &str, width: usize) -> String {
    let mut out = fit(text, width);
    let missing = width.saturating_sub(columns(&out));
    out.extend(std::iter::repeat_n(' ', missing));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn towers_joiners_flags_and_hidden_characters_do_not_pass() {
        let tower = format!("a{}", "\u{301}".repeat(50));
        assert_eq!(clean(&tower), "a\u{301}\u{301}");
        assert_eq!(clean("\u{301}x"), "x", "nothing to sit on");
        assert_eq!(clean("👩\u{200d}👩"), "👩👩");
        assert_eq!(clean("🇩🇪"), "DE");
        assert_eq!(clean("❤\u{fe0f}!"), "❤!");
        assert_eq!(clean("a\u{202e}b\u{e0041}c\x1b[2Jd\0"), "a\u{fffd}b\u{fffd}cd\u{2400}");
    }

    #[test]
    fn a_text_is_cut_to_its_columns_also_where_characters_are_wide() {
        assert_eq!(fit("日本語", 6), "日本語");
        assert_eq!(fit("日本語", 5), "日本…");
        assert_eq!(fit("日本語", 4), "日…");
        assert_eq!(fit("abc", 0), "");
        assert_eq!(pad("日", 4), "日  ");
        for width in 0..12 {
            assert_eq!(columns(&pad("日本語 and more", width)), width);
        }
    }
}
