//! The first line and the last.

use ratatui::buffer::Buffer;

use super::widget::{put, tint};
use crate::glyph::{columns, fit};
use crate::panel::{Focus, Panel, Purpose, Shown};
use crate::snapshot::Link;
use crate::theme::Tone;

/// How much there is of what, what is left out, and whether that is how it is.
pub(super) fn header(panel: &Panel, buffer: &mut Buffer) {
    let (area, theme) = (panel.areas.header, panel.options.theme);
    if area.is_empty() {
        return;
    }
    let dot = theme.pick(" · ", " | ");
    let tally = panel.roster.tally();
    let mut parts = vec![format!("{} running", tally.running)];
    if tally.queued > 0 {
        parts.push(format!("{} queued", tally.queued));
    }
    parts.push(format!("{} ended", tally.ended));
    if panel.roster.status != Shown::All {
        parts.push(format!("only {}", panel.roster.status.word()));
    }
    if !panel.roster.filter.is_empty() {
        parts.push(format!("filter `{}`: {}", panel.roster.filter, panel.roster.len()));
    }
    let link = match &panel.link {
        Link::Connecting => format!("{} connecting", theme.pick("◌", "-")),
        Link::Live => format!("{} live", theme.pick("●", "*")),
        Link::Lost(why) => format!("{} {why}", theme.pick("✗", "x")),
    };
    let width = usize::from(area.width);
    let link = fit(&link, width.saturating_sub(2));
    let room = width.saturating_sub(columns(&link) + 2);
    let text = fit(&format!(" homing{dot}{}", parts.join(dot)), room);
    put(buffer, area, area.x, area.y, &text, theme.style(Tone::Strong));
    let at = width.saturating_sub(columns(&link) + 1);
    let tone = match &panel.link {
        Link::Live => Tone::Good,
        Link::Connecting => Tone::Busy,
        Link::Lost(_) => Tone::Bad,
    };
    tint(buffer, area, theme.style(Tone::Bar));
    let x = area.x.saturating_add(u16::try_from(at).unwrap_or(u16::MAX));
    let style = theme.style(Tone::Bar).patch(theme.style(tone));
    put(buffer, area, x, area.y, &link, style);
}

/// What is typed, said or asked, else which keys there are.
pub(super) fn footer(panel: &Panel, buffer: &mut Buffer) {
    let (area, theme) = (panel.areas.footer, panel.options.theme);
    if area.is_empty() {
        return;
    }
    let (text, tone) = if let Some(entry) = &panel.entry {
        let what = if entry.purpose == Purpose::Filter { "filter" } else { "search" };
        let text = format!("{what}/{}{}", entry.text, theme.pick("▏", "_"));
        // The end is what is being typed.
        let (mut shown, width) = (text.as_str(), usize::from(area.width));
        while columns(shown) > width {
            shown = shown.get(shown.chars().next().map_or(0, char::len_utf8)..).unwrap_or_default();
        }
        (shown.to_owned(), Tone::Strong)
    } else if let Some((said, _)) = &panel.said {
        (fit(said, usize::from(area.width)), Tone::Caution)
    } else {
        (hints(panel), Tone::Dim)
    };
    put(buffer, area, area.x, area.y, &text, theme.style(tone));
}

fn hints(panel: &Panel) -> String {
    let can = panel.options.abilities;
    let list = panel.focus == Focus::List;
    let all = [
        ("? help", true),
        ("q quit", panel.options.may_quit && !panel.zoomed),
        ("Esc back", panel.zoomed || !list),
        ("Enter open", list),
        (if list { "/ filter" } else { "/ search" }, true),
        ("f which", list),
        ("F follow", !list),
        ("d details", true),
        ("Tab other", !panel.zoomed),
        ("x stop", can.stop),
        ("p pause", can.pause),
        ("r rerun", can.rerun),
        ("t attach", can.attach),
        ("a ack", can.acknowledge),
        ("c copy id", can.copy),
    ];
    let (mut text, width) = (String::new(), usize::from(panel.areas.footer.width));
    for (hint, _) in all.into_iter().filter(|(_, there)| *there) {
        let space = if text.is_empty() { "" } else { "  " };
        if columns(&text) + space.len() + columns(hint) > width {
            break;
        }
        text.push_str(space);
        text.push_str(hint);
    }
    text
}
