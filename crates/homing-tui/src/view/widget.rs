//! The widget.

use ratatui::buffer::{Buffer, Cell};
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::widgets::{StatefulWidget, Widget};

use super::{bars, list, overlay, pane};
use crate::panel::Panel;

/// Draws a [`Panel`]. What it learns while drawing (where things are, for the mouse; which lines are in sight) it leaves in the panel.
#[derive(Debug, Clone, Copy, Default)]
pub struct View;

impl StatefulWidget for View {
    type State = Panel;

    fn render(self, area: Rect, buffer: &mut Buffer, panel: &mut Panel) {
        let area = area.intersection(buffer.area);
        panel.place(area);
        // Nothing of what was there before shows through.
        for y in area.y..area.bottom() {
            for cell in cells(buffer, area.x, y, area.width) {
                cell.reset();
            }
        }
        if area.is_empty() {
            return;
        }
        bars::header(panel, buffer);
        list::draw(panel, buffer);
        pane::draw(panel, buffer);
        bars::footer(panel, buffer);
        overlay::draw(panel, buffer);
        if !panel.options.theme.symbols {
            for y in area.y..area.bottom() {
                for cell in
                    cells(buffer, area.x, y, area.width).iter_mut().filter(|cell| cell.symbol() == "…")
                {
                    cell.set_char('~');
                }
            }
        }
    }
}

impl Widget for &mut Panel {
    fn render(self, area: Rect, buffer: &mut Buffer) {
        View.render(area, buffer, self);
    }
}

/// Draws a clean text from a place on, inside its rectangle; where the next one goes is the answer.
pub(super) fn put(buffer: &mut Buffer, area: Rect, x: u16, y: u16, text: &str, style: Style) -> u16 {
    if y < area.y || y >= area.bottom() || x < area.x || x >= area.right() {
        return x;
    }
    let room = area.right() - x;
    if !text.is_ascii() {
        return buffer.set_stringn(x, y, text, usize::from(room), style).0;
    }
    // Most of what is drawn: each letter is one cell, and nothing has to be looked up.
    for (cell, letter) in cells(buffer, x, y, room).iter_mut().zip(text.bytes()) {
        cell.set_char(char::from(letter)).set_style(style);
    }
    x.saturating_add(u16::try_from(text.len()).unwrap_or(u16::MAX).min(room))
}

/// The cells of a line from a place on, which must be in the buffer.
fn cells(buffer: &mut Buffer, x: u16, y: u16, width: u16) -> &mut [Cell] {
    if width == 0 {
        return &mut [];
    }
    let from = buffer.index_of(x, y);
    buffer.content.get_mut(from..from + usize::from(width)).unwrap_or_default()
}

/// Gives a whole line a style.
pub(super) fn tint(buffer: &mut Buffer, area: Rect, style: Style) {
    buffer.set_style(area, style);
}
