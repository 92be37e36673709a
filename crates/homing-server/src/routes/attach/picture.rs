//! What a terminal shows at one moment, told as the bytes that make another terminal show it.
//!
//! Two ways. *Whole* is for a viewer whose terminal has the size of the task's: from then on it may be given what the program prints, byte for
//! byte, so it is brought into exactly the same state, the one that is not seen included. *Painted* is for a viewer whose terminal is
//! larger (or, while nothing can be done about it, smaller): there what the program prints would wrap and scroll elsewhere, so it is given the
//! picture only, line by line at fixed places, and afterwards what has changed of it.

use std::fmt::Write as _;

use homing_engine::Size;

use super::modes::Modes;

/// A terminal at one moment.
#[derive(Clone)]
pub(super) struct Picture {
    pub(super) screen: vt100::Screen,
    pub(super) modes: Modes,
}

impl Picture {
    /// How large it is.
    pub(super) fn size(&self) -> Size {
        let (rows, cols) = self.screen.size();
        Size { cols: cols.get(), rows: rows.get() }
    }

    /// Whether it is the alternate screen.
    pub(super) fn alternate(&self) -> bool {
        self.screen.alternate_screen()
    }

    fn frame(&self, out: &mut String) {
        // First of all: where the cursor is then is where it is again once the alternate screen is left.
        out.push_str(if self.alternate() { "\x1b[?1049h" } else { "\x1b[?1049l" });
        out.push_str(Modes::plain());
        out.push_str("\x1b[H\x1b[2J");
    }

    /// All of it, for a terminal of the same size.
    pub(super) fn whole(&self) -> String {
        let mut out = String::new();
        self.frame(&mut out);
        out.push_str(&self.screen.state_formatted());
        out.push_str(&self.modes.formatted());
        if self.modes.region().is_some() || self.modes.origin() {
            let top = self.modes.region().map_or(1, |(top, _)| top);
            if let Some((top, bottom)) = self.modes.region() {
                let bottom = if bottom == 0 { self.size().rows } else { bottom };
                let _ = write!(out, "\x1b[{top};{bottom}r");
            }
            let (mut row, col) = self.screen.cursor_position();
            if self.modes.origin() {
                out.push_str("\x1b[?6h");
                row = (row + 1).saturating_sub(top);
            }
            // A cursor that waits behind the last column stays on it.
            let col = col.min(self.size().cols - 1);
            let _ = write!(out, "\x1b[{};{}H", row + 1, col + 1);
        }
        out
    }

    /// All of it, for a terminal of another size.
    pub(super) fn painted(&self, viewer: Size) -> String {
        let mut out = String::new();
        self.frame(&mut out);
        // What is not needed to paint is left plain; the keys must mean the same.
        out.push_str("\x1b[?7l");
        let blank = blank(self.size());
        self.lines(&blank, viewer, &mut out);
        out.push_str(&self.screen.input_mode_formatted());
        out.push_str(&self.modes.reports());
        out.push_str(&self.modes.keyboard());
        self.cursor(viewer, &mut out);
        out
    }

    /// What has changed since, for a terminal that shows the other, painted. None if that takes painting it all.
    pub(super) fn repainted(&self, before: &Self, viewer: Size) -> Option<String> {
        if self.size() != before.size() || self.alternate() != before.alternate() {
            return None;
        }
        let mut out = String::new();
        self.lines(&before.screen, viewer, &mut out);
        out.push_str(&self.screen.input_mode_diff(&before.screen));
        if self.modes != before.modes {
            out.push_str(&self.modes.reports());
            out.push_str(&self.modes.keyboard());
        }
        let cursor = |picture: &Self| (picture.screen.cursor_position(), picture.screen.hide_cursor());
        if !out.is_empty() || cursor(self) != cursor(before) {
            self.cursor(viewer, &mut out);
        }
        Some(out)
    }

    fn lines(&self, before: &vt100::Screen, viewer: Size, out: &mut String) {
        let size = self.size();
        if viewer.cols < size.cols {
            return self.beginnings(before, viewer, out);
        }
        let lines = self.screen.rows_diff(before, 0, size.cols).zip(1_u16..).take(usize::from(viewer.rows));
        let mut any = false;
        for (line, row) in lines.filter(|(line, _)| !line.is_empty()) {
            if !any {
                // Nobody wants to see the cursor run.
                out.push_str("\x1b[?25l");
                any = true;
            }
            let _ = write!(out, "\x1b[{row};1H\x1b[m{line}\x1b[m");
            if viewer.cols > size.cols {
                // Colours that reach to the end of a line reach to the end of this one only.
                let _ = write!(out, "\x1b[{row};{}H\x1b[K", size.cols + 1);
            }
        }
    }

    /// What fits of each line that has changed, without its colours: for the moment until the task's terminal is no wider.
    fn beginnings(&self, before: &vt100::Screen, viewer: Size, out: &mut String) {
        let (now, then) = (self.screen.rows(0, viewer.cols), before.rows(0, viewer.cols));
        for ((now, then), row) in now.zip(then).zip(1..=viewer.rows) {
            if now != then {
                let _ = write!(out, "\x1b[?25l\x1b[{row};1H\x1b[m\x1b[K{now}");
            }
        }
    }

    fn cursor(&self, viewer: Size, out: &mut String) {
        let (row, col) = self.screen.cursor_position();
        let size = self.size();
        let (row, col) = (row.min(viewer.rows - 1), col.min(size.cols - 1).min(viewer.cols - 1));
        let _ = write!(out, "\x1b[{};{}H", row + 1, col + 1);
        out.push_str(if self.screen.hide_cursor() { "\x1b[?25l" } else { "\x1b[?25h" });
    }
}

/// A screen with nothing on it.
fn blank(size: Size) -> vt100::Screen {
    let (rows, cols) = super::model::nonzero(size);
    vt100::Parser::new(rows, cols, 0).screen().clone()
}
