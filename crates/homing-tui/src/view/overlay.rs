//! What lies over the rest: the keys, and questions.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::pane::folded;
use super::widget::{put, tint};
use crate::glyph::{columns, pad};
use crate::panel::{HELP, Options, Overlay, Panel};
use crate::theme::Tone;

/// Columns of the keys.
const KEYS: usize = 24;

pub(super) fn draw(panel: &Panel, buffer: &mut Buffer) {
    match &panel.overlay {
        None => {}
        Some(Overlay::Question(question)) => {
            // Where there is no room for all of it, the answer that it wants comes first.
            let width = usize::from(panel.areas.whole.width).min(64);
            let text = format!("[y/n] {}", question.text);
            let lines = folded(&text, width.saturating_sub(4).max(1));
            draw_box(panel, &lines, 0, Tone::Strong, buffer);
        }
        Some(Overlay::Help(top)) => {
            let lines = help_lines(&panel.options, usize::from(panel.areas.whole.width));
            draw_box(panel, &lines, *top, Tone::Plain, buffer);
        }
    }
}

/// The keys and what they do. Where there is little room for two columns, each goes on in the next line, further in: nothing is cut.
pub(crate) fn help_lines(options: &Options, width: usize) -> Vec<String> {
    let spelt = |keys: &str| match options.theme.symbols {
        true => keys.to_owned(),
        false => keys.replace("↑ ↓", "Up Down").replace("← →", "Left Right"),
    };
    let known = HELP.iter().filter(|(_, _, there)| there(&options.abilities));
    let known: Vec<(String, &str)> = known.map(|(keys, what, _)| (spelt(keys), *what)).collect();
    let roomy = known.iter().all(|(_, what)| KEYS + columns(what) + 2 <= width);
    let explained = |(keys, what): &(String, &str)| {
        if roomy {
            return vec![format!("{}{what}", pad(keys, KEYS))];
        }
        let lines = folded(&format!("{keys}: {what}"), width.saturating_sub(4).max(1));
        let indented = |(index, line): (usize, String)| if index == 0 { line } else { format!("  {line}") };
        lines.into_iter().enumerate().map(indented).collect()
    };
    known.iter().flat_map(explained).collect()
}

/// Lines in the middle, with a blank edge where there is room.
fn draw_box(panel: &Panel, lines: &[String], top: usize, tone: Tone, buffer: &mut Buffer) {
    let (whole, theme) = (panel.areas.whole, panel.options.theme);
    let widest = lines.iter().map(|line| columns(line)).max().unwrap_or(0);
    let width = u16::try_from(widest + 4).unwrap_or(u16::MAX).min(whole.width);
    let height = u16::try_from(lines.len() + 2).unwrap_or(u16::MAX).min(whole.height);
    let area = Rect {
        x: whole.x + (whole.width - width) / 2,
        y: whole.y + (whole.height - height) / 2,
        width,
        height,
    };
    for y in area.y..area.bottom() {
        for x in area.x..area.right() {
            buffer[(x, y)].reset();
        }
    }
    // A wide character that the left edge cut in half must not be drawn over it.
    if area.x > whole.x {
        for y in area.y..area.bottom() {
            let cell = &mut buffer[(area.x - 1, y)];
            if columns(cell.symbol()) > 1 {
                cell.set_symbol(" ");
            }
        }
    }
    tint(buffer, area, theme.style(Tone::Bar));
    let edge = |length: u16, room: usize| if usize::from(length) > room + 1 { 1 } else { 0 };
    let (left, above) = (edge(width, widest), edge(height, 1));
    let inner = Rect {
        x: area.x + left,
        y: area.y + above,
        width: width - left.min(width),
        height: height.saturating_sub(2 * above).max(1).min(height),
    };
    let top = top.min(lines.len().saturating_sub(usize::from(inner.height)));
    for (y, line) in (inner.y..inner.bottom()).zip(lines.iter().skip(top)) {
        put(buffer, inner, inner.x, y, line, theme.style(Tone::Bar).patch(theme.style(tone)));
    }
}
