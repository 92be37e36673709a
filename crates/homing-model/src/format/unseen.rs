//! Characters that hide, reorder or have no look of their own: one table for terminals, the page and the texts that models read.
//!
//! A person sees nothing of them, while a model reads them: a text can carry instructions in tag characters or variation selectors, and
//! a bidirectional mark shows a command in another order than it runs. They are shown as a visible sign, never passed on.
//!
//! U+200D (zero width joiner) and U+FE0F (emoji presentation) are not in the table. Test runners and package managers print them all the
//! time (⚠️, ✔️, 👩‍💻), and a replacement sign in each of those would teach readers to ignore it. Neither of them reorders or covers text.
//! A run of them can encode a text, though, or split a word: what a model reads has none of them (`foreign::defuse`).

/// First and last character of each range, in ascending order.
pub const RANGES: [(char, char); 18] = [
    // Soft hyphen, combining grapheme joiner.
    ('\u{ad}', '\u{ad}'),
    ('\u{34f}', '\u{34f}'),
    // Arabic letter mark.
    ('\u{61c}', '\u{61c}'),
    // Fillers and inherent vowels that are drawn as nothing.
    ('\u{115f}', '\u{1160}'),
    ('\u{17b4}', '\u{17b5}'),
    // Mongolian variation selectors and vowel separator.
    ('\u{180b}', '\u{180f}'),
    // Zero width space and non-joiner; the joiner between them and the marks passes.
    ('\u{200b}', '\u{200c}'),
    ('\u{200e}', '\u{200f}'),
    // Line and paragraph separator, bidirectional embeddings and overrides.
    ('\u{2028}', '\u{202e}'),
    // Word joiner, invisible operators, bidirectional isolates.
    ('\u{2060}', '\u{206f}'),
    ('\u{3164}', '\u{3164}'),
    // Variation selectors but for the emoji presentation.
    ('\u{fe00}', '\u{fe0e}'),
    ('\u{feff}', '\u{feff}'),
    ('\u{ffa0}', '\u{ffa0}'),
    ('\u{fff0}', '\u{fffb}'),
    // Controls of shorthand and of musical notation.
    ('\u{1bca0}', '\u{1bca3}'),
    ('\u{1d173}', '\u{1d17a}'),
    // Tags, variation selectors 17 to 256, and the rest of the block that is reserved for such characters.
    ('\u{e0000}', '\u{e0fff}'),
];

/// Whether a character is one of them.
#[must_use]
pub fn is_unseen(c: char) -> bool {
    // Most text ends here.
    c > '\u{ac}' && RANGES.iter().any(|(first, last)| (*first..=*last).contains(&c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_hides_is_in_the_table_and_ordinary_text_is_not() {
        for c in "\u{ad}\u{200b}\u{200c}\u{200e}\u{202e}\u{2066}\u{2028}\u{feff}\u{fe00}\u{fe0e}\u{e0001}\u{e007f}\u{e0100}\u{e01ef}".chars() {
            assert!(is_unseen(c), "{:x}", u32::from(c));
        }
        for c in "aé漢 ⠋⚠️👩‍💻🇩🇪e\u{301}\u{fffd}\u{a0}".chars() {
            assert!(!is_unseen(c), "{:x}", u32::from(c));
        }
    }

    #[test]
    fn the_ranges_are_in_order() {
        assert!(RANGES.iter().all(|(first, last)| first <= last));
        assert!(RANGES.windows(2).all(|two| matches!(two, [a, b] if a.1 < b.0)));
    }
}
