//! The state of a terminal that its picture does not show, and that the terminal model does not tell of: what a viewer who comes later must
//! be put into for what the program sends next to mean the same to it.

use std::fmt::Write as _;

use vte::{Params, Perform};

/// Private modes that are tracked by number alone, and whether each is on at first: reverse video, automatic wrap, focus reports,
/// wheel as arrow keys, two more ways to tell of the mouse.
const TRACKED: [(u16, bool); 6] =
    [(5, false), (7, true), (1004, false), (1007, false), (1015, false), (1016, false)];

/// Keyboard protocols that may lie on top of each other.
const STACK: usize = 16;

/// All of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Modes {
    flags: [bool; TRACKED.len()],
    insert: bool,
    origin: bool,
    /// First and last line that scroll, from 1 on; all of them if absent.
    region: Option<(u16, u16)>,
    /// xterm's `modifyOtherKeys`.
    other_keys: u16,
    /// The flags of kitty's keyboard protocol, the current ones last.
    keyboards: Vec<u16>,
    /// Whether G0 and G1 hold line drawing instead of letters.
    drawing: [bool; 2],
    /// Whether G1 is in use.
    shifted: bool,
    /// What was printed last; for whoever feeds byte by byte.
    printed: Option<char>,
}

impl Default for Modes {
    fn default() -> Self {
        Self {
            flags: TRACKED.map(|(_, on)| on),
            insert: false,
            origin: false,
            region: None,
            other_keys: 0,
            keyboards: Vec::new(),
            drawing: [false; 2],
            shifted: false,
            printed: None,
        }
    }
}

/// Puts a terminal into the state that all of the others are told against.
const PLAIN: &str = "\x1b[r\x1b[?6l\x1b[?7h\x1b[4l\x1b[?5l\x1b[m\x1b(B\x1b)B\x0f\x1b>\x1b[?1l\x1b[?2004l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1004l\x1b[?1005l\x1b[?1006l\x1b[?1015l\x1b[?1016l\x1b[?9l";

impl Modes {
    /// Whether letters are drawn as lines now.
    pub(super) fn draws_lines(&self) -> bool {
        let [first, second] = self.drawing;
        if self.shifted { second } else { first }
    }

    /// What was printed since the last time that this was asked.
    pub(super) fn take_printed(&mut self) -> Option<char> {
        self.printed.take()
    }

    /// The size changed: all lines scroll again.
    pub(super) fn resized(&mut self) {
        self.region = None;
    }

    /// The lines that scroll, where these are not all; whoever sets them must place the cursor afterwards.
    pub(super) fn region(&self) -> Option<(u16, u16)> {
        self.region
    }

    /// Whether positions are counted from the first line that scrolls.
    pub(super) fn origin(&self) -> bool {
        self.origin
    }

    /// Makes a terminal plain, whatever it was.
    pub(super) fn plain() -> &'static str {
        PLAIN
    }

    /// From plain to this, but for what concerns the cursor's place.
    pub(super) fn formatted(&self) -> String {
        let mut text = String::new();
        for ((mode, first), on) in TRACKED.iter().zip(self.flags) {
            if on != *first {
                let _ = write!(text, "\x1b[?{mode}{}", if on { 'h' } else { 'l' });
            }
        }
        if self.insert {
            text.push_str("\x1b[4h");
        }
        for (drawing, designator) in self.drawing.iter().zip(['(', ')']) {
            if *drawing {
                let _ = write!(text, "\x1b{designator}0");
            }
        }
        if self.shifted {
            text.push('\x0e');
        }
        text + &self.keyboard()
    }

    /// What concerns the keyboard only. Terminals that do not know these skip them.
    pub(super) fn keyboard(&self) -> String {
        let mut text = String::new();
        if self.other_keys > 0 {
            let _ = write!(text, "\x1b[>4;{}m", self.other_keys);
        }
        if let Some(flags) = self.keyboards.last() {
            // Set, not pushed: this may be told more than once.
            let _ = write!(text, "\x1b[={flags}u");
        }
        text
    }

    /// Focus reports and the like, which a painted screen needs too.
    pub(super) fn reports(&self) -> String {
        let mut text = String::new();
        for ((mode, _), on) in TRACKED.iter().zip(self.flags).filter(|((mode, _), _)| *mode >= 1000) {
            let _ = write!(text, "\x1b[?{mode}{}", if on { 'h' } else { 'l' });
        }
        text
    }

    fn set(&mut self, params: &Params, on: bool) {
        for mode in params.iter().filter_map(|param| param.first()) {
            if *mode == 6 {
                self.origin = on;
            }
            if let Some(place) = TRACKED.iter().position(|(known, _)| known == mode)
                && let Some(flag) = self.flags.get_mut(place)
            {
                *flag = on;
            }
        }
    }
}

/// The first and the second parameter; 0 where one is absent.
fn two(params: &Params) -> (u16, u16) {
    let mut params = params.iter().map(|param| param.first().copied().unwrap_or(0));
    (params.next().unwrap_or(0), params.next().unwrap_or(0))
}

impl Perform for Modes {
    fn print(&mut self, c: char) {
        self.printed = Some(c);
    }

    fn execute(&mut self, byte: u8) {
        match byte {
            0x0e => self.shifted = true,
            0x0f => self.shifted = false,
            _ => {}
        }
    }

    fn esc_dispatch(&mut self, intermediates: &[u8], _ignore: bool, byte: u8) {
        match (intermediates, byte) {
            ([b'('], set) => self.drawing[0] = set == b'0',
            ([b')'], set) => self.drawing[1] = set == b'0',
            ([], b'c') => *self = Self::default(),
            _ => {}
        }
    }

    fn csi_dispatch(&mut self, params: &Params, intermediates: &[u8], _ignore: bool, action: char) {
        let (first, second) = two(params);
        match (intermediates, action) {
            ([b'?'], 'h') => self.set(params, true),
            ([b'?'], 'l') => self.set(params, false),
            ([], 'h') if first == 4 => self.insert = true,
            ([], 'l') if first == 4 => self.insert = false,
            ([], 'r') => {
                let top = first.max(1);
                // The model takes such a region for none, too.
                let whole = top == 1 && second == 0;
                self.region = if whole || (second > 0 && second <= top) { None } else { Some((top, second)) };
            }
            ([b'!'], 'p') => {
                let kept = (self.keyboards.clone(), self.other_keys, self.flags);
                *self = Self::default();
                (self.keyboards, self.other_keys, self.flags) = kept;
                self.flags[1] = true;
            }
            ([b'>'], 'm') if first == 4 => self.other_keys = second.min(2),
            ([b'>'], 'u') if self.keyboards.len() < STACK => self.keyboards.push(first),
            ([b'<'], 'u') => {
                let count = usize::from(first.max(1)).min(self.keyboards.len());
                self.keyboards.truncate(self.keyboards.len() - count);
            }
            ([b'='], 'u') => {
                let now = self.keyboards.pop().unwrap_or(0);
                self.keyboards.push(match second {
                    2 => now | first,
                    3 => now & !first,
                    _ => first,
                });
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(bytes: &[u8]) -> Modes {
        let mut modes = Modes::default();
        vte::Parser::new().advance(&mut modes, bytes);
        modes.printed = None;
        modes
    }

    #[test]
    fn what_is_told_of_a_state_leads_to_it() {
        for bytes in [
            &b""[..],
            b"\x1b[?7l\x1b[?1004h\x1b[4h",
            b"\x1b(0",
            b"\x1b)0\x0e",
            b"\x1b[>4;2m\x1b[?1016h",
            b"\x1b[>1u\x1b[>5u",
            b"\x1b[?5h\x1b[?1007h",
        ] {
            let modes = after(bytes);
            let again = after(modes.formatted().as_bytes());
            assert_eq!(again.formatted(), modes.formatted(), "{bytes:?}");
            assert_eq!(
                (again.flags, again.draws_lines(), again.insert),
                (modes.flags, modes.draws_lines(), modes.insert)
            );
        }
        assert_eq!(after(Modes::plain().as_bytes()), Modes::default());
    }

    #[test]
    fn a_region_is_what_scrolls_until_it_is_all_again() {
        assert_eq!(after(b"\x1b[3;20r").region(), Some((3, 20)));
        assert_eq!(after(b"\x1b[3;20r\x1b[r").region(), None);
        assert_eq!(after(b"\x1b[3;20r\x1bc").region(), None);
        assert!(after(b"\x1b[?6h").origin());
    }
}
