//! The widget.

use ratatui::buffer::Buffer;
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
            for x in area.x..area.right() {
                buffer[(x, y)].reset();
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
    buffer.set_stringn(x, y, text, usize::from(area.right() - x), style).0
}

/// Gives a whole line a style.
pub(super) fn tint(buffer: &mut Buffer, area: Rect, style: Style) {
    buffer.set_style(area, style);
}
