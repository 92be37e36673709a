//! The first line and the last.

use ratatui::buffer::Buffer;

use super::widget::{put, tint};
use crate::glyph::{columns, fit};
use crate::panel::{Focus, Panel, Purpose, Shown};
use crate::snapshot::Link;
use crate::theme::Tone;

/// How much there is of what, and what is left out; in short words where there is little room.
fn title(panel: &Panel, name: &str, long: bool) -> String {
    let dot = panel.options.theme.pick(" · ", " | ");
    let (tally, roster) = (panel.roster.tally(), &panel.roster);
    let words = if long { ["running", "queued", "ended"] } else { ["run", "wait", "end"] };
    let mut parts = vec![format!("{} {}", tally.running, words[0])];
    if tally.queued > 0 {
        parts.push(format!("{} {}", tally.queued, words[1]));
    }
    parts.push(format!("{} {}", tally.ended, words[2]));
    if roster.status != Shown::All {
        let only = if long { "only " } else { "" };
        parts.push(format!("{only}{}", roster.status.word()));
    }
    if !roster.filter.is_empty() {
        let what = if long { "filter " } else { "" };
        parts.push(format!("{what}`{}`: {}", roster.filter, roster.len()));
    }
    let parts = parts.join(dot);
    if name.is_empty() { format!(" {parts}") } else { format!("{name}{dot}{parts}") }
}

/// How much there is of what, what is left out, and whether that is how it is.
pub(super) fn header(panel: &Panel, buffer: &mut Buffer) {
    let (area, theme) = (panel.areas.header, panel.options.theme);
    if area.is_empty() {
        return;
    }
    let link = match &panel.link {
        Link::Connecting => format!("{} connecting", theme.pick("◌", "-")),
        Link::Live => format!("{} live", theme.pick("●", "*")),
        Link::Lost(why) => format!("{} {why}", theme.pick("✗", "x")),
    };
    let width = usize::from(area.width);
    let link = fit(&link, width.saturating_sub(2));
    let room = width.saturating_sub(columns(&link) + 2);
    let ways = [(" homing", true), ("", true), ("", false)].map(|(name, long)| title(panel, name, long));
    let text =
        ways.iter().find(|text| columns(text) <= room).or_else(|| ways.last()).map_or("", String::as_str);
    let text = fit(text, room);
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
    // Only what would be done is offered.
    let chosen = panel.roster.chosen();
    let live = chosen.is_some_and(|row| !row.status.is_terminal());
    let has_terminal = chosen.is_some_and(|row| row.has_terminal);
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
        ("t attach", can.attach && live && has_terminal),
        ("x stop", can.stop && live),
        ("p pause", can.pause && live),
        ("r rerun", can.rerun && chosen.is_some()),
        ("a ack", can.acknowledge && chosen.is_some()),
        ("c copy id", can.copy && chosen.is_some()),
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
