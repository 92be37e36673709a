//! The screens of a terminal that a task's program draws on: which of the two is shown, and what gives it back to a shell when the program is left in
//! its middle, or was ended there.

/// Undoes what a program may have left on when it is left in its middle: mouse and focus reports, bracketed paste, other keyboards, application
/// keys, the cursor's shape, drawn lines, insert mode, colours.
const TIDY: &str = "\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1004l\x1b[?1005l\x1b[?1006l\x1b[?1015l\x1b[?1016l\x1b[?9l\x1b[?2004l\x1b[>4m\x1b[=0u\x1b[?1l\x1b>\x1b[?7h\x1b[4l\x1b[?5l\x1b[?6l\x1b(B\x0f\x1b[0 q\x1b[m\x1b[?25h";

/// Which of its two screens the terminal shows, by what passed to it.
#[derive(Debug, Default)]
pub(crate) struct Screens {
    any: bool,
    alternate: bool,
    tail: Vec<u8>,
}

impl Screens {
    /// A sequence that switches is not longer than this.
    const LONGEST: usize = 24;

    /// This was written to it.
    pub(crate) fn pass(&mut self, bytes: &[u8]) {
        self.any |= !bytes.is_empty();
        self.tail.extend_from_slice(bytes);
        let text = std::mem::take(&mut self.tail);
        for (at, _) in text.windows(3).enumerate().filter(|(_, start)| *start == b"\x1b[?") {
            let rest = text.get(at + 3..).unwrap_or_default();
            let Some(end) = rest.iter().position(|byte| !matches!(byte, b'0'..=b'9' | b';')) else {
                continue;
            };
            let switches = rest
                .get(..end)
                .unwrap_or_default()
                .split(|byte| *byte == b';')
                .any(|mode| matches!(mode, b"47" | b"1047" | b"1049"));
            match rest.get(end) {
                Some(b'h') if switches => self.alternate = true,
                Some(b'l') if switches => self.alternate = false,
                _ => {}
            }
        }
        self.tail = text.get(text.len().saturating_sub(Self::LONGEST)..).unwrap_or_default().to_vec();
    }

    /// Whether it shows the one that programs draw on.
    pub(crate) fn is_alternate(&self) -> bool {
        self.alternate
    }

    /// What gives the terminal back, tidy; the cursor is where whoever writes next may write.
    pub(crate) fn given_back(&self) -> String {
        let (place, back) = match (self.any, self.alternate) {
            (false, _) => ("", ""),
            // What was there before is there again.
            (true, true) => ("", "\x1b[r\x1b[?1049l\r\n"),
            // Below the cursor: some of what undoes the rest moves it.
            (true, false) => ("\x1b7", "\x1b[r\x1b8\x1b[m\x1b(B\x0f\r\n\x1b[J"),
        };
        format!("{place}{TIDY}{back}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_screen_that_is_shown_is_known_however_the_bytes_are_cut() {
        let bytes = b"x\x1b[?1049hy\x1b[?25l\x1b[?1;1049lz\x1b[?47h";
        for cut in 0..bytes.len() {
            let mut screens = Screens::default();
            screens.pass(&bytes[..cut]);
            screens.pass(&bytes[cut..]);
            assert!(screens.alternate, "{cut}");
            screens.pass(b"\x1b[?47l");
            assert!(!screens.alternate, "{cut}");
        }
    }
}
