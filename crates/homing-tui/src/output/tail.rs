//! The last line of some output.

use homing_model::sanitize::{Colour, Return, Sanitizer};

use crate::glyph::clean;

/// The longest line that is shown of a task in the list.
const MOST: usize = 400;

/// The last line with something on it, of the last bytes of an output.
pub(crate) fn last_line(bytes: &[u8]) -> String {
    let mut sanitizer = Sanitizer::new(Colour::Strip).with_returns(Return::Rewrite);
    let mut text = sanitizer.push(bytes);
    text.push_str(&sanitizer.finish());
    let lines = text.rsplit(['\n', '\r']);
    let line = lines.map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let line: String = line.replace('\u{8}', "").chars().take(MOST).collect();
    clean(&line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_last_one_that_says_something() {
        assert_eq!(last_line(b"one\ntwo\n\n  \n"), "two");
        assert_eq!(last_line(b"10%\r50%\r"), "50%");
        assert_eq!(last_line(b"\x1b[31mred\x1b[0m\x1b]0;title\x07\n"), "red");
        assert_eq!(last_line(b""), "");
        assert_eq!(last_line(&[0xff, b'x']), "\u{fffd}x");
        assert_eq!(last_line(&b"long ".repeat(1000)).chars().count(), MOST);
    }
}
