//! What one task printed, or everything else about it.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use unicode_width::UnicodeWidthChar as _;

use super::widget::{put, tint};
use crate::detail::Detail;
use crate::glyph::{columns, fit, pad};
use crate::message::Stream;
use crate::output::Line;
use crate::panel::{Focus, Pane, Panel};
use crate::theme::Tone;

/// Columns before each line of output: the mark of stderr.
pub(crate) const GUTTER: usize = 2;

/// Columns before what a detail says.
const LABEL: usize = 13;

pub(super) fn draw(panel: &Panel, buffer: &mut Buffer) {
    title(panel, buffer);
    if panel.areas.pane.is_empty() {
        return;
    }
    match panel.pane {
        Pane::Output => output(panel, buffer),
        Pane::Detail => detail(panel, buffer),
    }
}

fn title(panel: &Panel, buffer: &mut Buffer) {
    let (area, theme) = (panel.areas.title, panel.options.theme);
    if area.is_empty() {
        return;
    }
    let mut parts = Vec::new();
    let mut called = None;
    if let Some(row) = panel.roster.chosen() {
        let what = if panel.pane == Pane::Output { "output" } else { "details" };
        called = Some((format!("{what} of "), row.title()));
        if panel.pane == Pane::Output {
            let pager = &panel.output_pager;
            if pager.following && !row.status.is_terminal() {
                parts.push("following".to_owned());
            } else {
                let last = (pager.top + usize::from(panel.areas.pane.height)).min(panel.output.len());
                parts.push(format!("to line {last} of {}", panel.output.len()));
            }
        }
        parts.push(row.sentence.clone());
    } else {
        parts.push("nothing chosen".to_owned());
    }
    if !panel.search.is_empty() && panel.pane == Pane::Output {
        parts.push(format!("searching `{}`", panel.search));
    }
    // How it stands is in sight whatever the task is called.
    let dot = theme.pick(" · ", " | ");
    let rest = parts.join(dot);
    let text = match called {
        Some((what, title)) => {
            let room = usize::from(area.width).saturating_sub(columns(&rest) + columns(&what) + 5);
            format!(" {what}{}{dot}{rest} ", fit(&title, room.clamp(8, 60)))
        }
        None => format!(" {rest} "),
    };
    let tone = if panel.focus == Focus::Pane { Tone::Focus } else { Tone::Bar };
    put(buffer, area, area.x, area.y, &text, theme.style(Tone::Plain));
    tint(buffer, area, theme.style(tone));
}

fn output(panel: &Panel, buffer: &mut Buffer) {
    let (area, theme) = (panel.areas.pane, panel.options.theme);
    // What is left of another task's output is not shown as this one's.
    if panel.output_of.as_deref() != panel.chosen() {
        return;
    }
    if panel.output.is_empty() {
        let live = panel.roster.chosen().is_some_and(|row| !row.status.is_terminal());
        let text = if live { "nothing printed yet" } else { "it printed nothing, or nothing is kept" };
        put(buffer, area, area.x, area.y, text, theme.style(Tone::Dim));
        return;
    }
    let needle: Vec<char> = panel.search.chars().flat_map(char::to_lowercase).collect();
    for offset in 0..area.height {
        let index = panel.output_pager.top + usize::from(offset);
        let Some(line) = panel.output.line(index) else { break };
        let place = Rect { y: area.y + offset, height: 1, ..area };
        one(panel, line, place, &needle, buffer);
        if panel.output_pager.mark == Some(index) && !needle.is_empty() {
            let gutter = Rect { width: place.width.min(1), ..place };
            put(buffer, gutter, gutter.x, gutter.y, theme.pick("▶", ">"), theme.style(Tone::Strong));
        }
    }
}

fn one(panel: &Panel, line: &Line, area: Rect, needle: &[char], buffer: &mut Buffer) {
    let theme = panel.options.theme;
    if line.remark {
        put(buffer, area, area.x, area.y, &line.text(), theme.style(Tone::Dim));
        return;
    }
    if line.stream == Stream::Stderr {
        put(buffer, area, area.x, area.y, theme.pick("▌", "!"), theme.style(Tone::Bad));
    }
    let gutter = u16::try_from(GUTTER).unwrap_or(0);
    let text = Rect { x: area.x.saturating_add(gutter), width: area.width.saturating_sub(gutter), ..area };
    if text.is_empty() {
        return;
    }
    let mut x = text.x;
    let mut skip = panel.output_pager.left;
    for span in &line.spans {
        let shown = skipped(&span.text, &mut skip);
        x = put(buffer, text, x, text.y, &shown, theme.of_task(span.style));
        if x >= text.right() {
            break;
        }
    }
    // What is out of sight is marked: `→` brings it.
    let (left, width) = (panel.output_pager.left, usize::from(text.width));
    if line.columns() > left + width && width > 1 {
        let last = Rect { x: text.right() - 1, width: 1, ..text };
        put(buffer, last, last.x, last.y, theme.pick("›", ">"), theme.style(Tone::Found));
    }
    if left > 0 && line.columns() > 0 && width > 2 {
        put(buffer, text, text.x, text.y, theme.pick("‹", "<"), theme.style(Tone::Found));
    }
    if needle.is_empty() {
        return;
    }
    for (from, to) in found(&line.text(), needle) {
        let from = from.saturating_sub(panel.output_pager.left).min(usize::from(text.width));
        let to = to.saturating_sub(panel.output_pager.left).min(usize::from(text.width));
        let (from, to) = (u16::try_from(from).unwrap_or(0), u16::try_from(to).unwrap_or(0));
        let place = Rect { x: text.x + from, width: to.saturating_sub(from), ..text };
        tint(buffer, place, theme.style(Tone::Found));
    }
}

/// What is left of a text when so many columns before it are out of sight. Half of a wide character is a space.
fn skipped(text: &str, skip: &mut usize) -> String {
    if *skip == 0 {
        return text.to_owned();
    }
    let mut out = String::new();
    for c in text.chars() {
        let columns = c.width().unwrap_or(0);
        match *skip {
            0 if columns > 0 || !out.is_empty() => out.push(c),
            0 => {}
            left if left < columns => {
                *skip = 0;
                out.push(' ');
            }
            _ => *skip -= columns,
        }
    }
    out
}

/// Columns from and to which a text is found.
fn found(text: &str, needle: &[char]) -> Vec<(usize, usize)> {
    let (mut letters, mut ends) = (Vec::new(), Vec::new());
    let mut column = 0;
    for c in text.chars() {
        let from = column;
        column += c.width().unwrap_or(0);
        for lower in c.to_lowercase() {
            letters.push(lower);
            ends.push((from, column));
        }
    }
    let places = letters.windows(needle.len()).enumerate().filter(|(_, window)| *window == needle);
    places.map(|(at, _)| (ends[at].0, ends[at + needle.len() - 1].1)).collect()
}

fn detail(panel: &Panel, buffer: &mut Buffer) {
    let (area, theme) = (panel.areas.pane, panel.options.theme);
    if Some(panel.detail.task.as_str()) != panel.chosen() {
        return;
    }
    let lines = detail_lines(&panel.detail, usize::from(area.width));
    let shown = lines.iter().skip(panel.detail_pager.top).take(usize::from(area.height));
    for (y, (label, text)) in (area.y..).zip(shown) {
        let x = put(buffer, area, area.x, y, label, theme.style(Tone::Dim));
        put(buffer, area, x, y, text, theme.style(Tone::Plain));
    }
}

/// Label and text of each line, folded to a width.
pub(crate) fn detail_lines(detail: &Detail, width: usize) -> Vec<(String, String)> {
    let label = LABEL.min(width / 3);
    let room = width.saturating_sub(label).max(1);
    let mut lines = Vec::new();
    for fact in &detail.facts {
        for (index, text) in folded(&fact.text, room).into_iter().enumerate() {
            let name = if index == 0 { fact.label.as_str() } else { "" };
            lines.push((pad(&format!("{} ", fit(name, label.saturating_sub(1))), label), text));
        }
    }
    lines
}

/// Cut to lines of a width; what is wider than a line by itself is left out by drawing.
pub(super) fn folded(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    let mut used = 0;
    for c in text.chars() {
        let wide = c.width().unwrap_or(0);
        if used + wide > width && !line.is_empty() {
            // At a space, if there is one in the last third.
            let rest = line.rfind(' ').filter(|at| columns(&line[..*at]) >= width * 2 / 3);
            let rest = rest.map(|at| line.split_off(at).trim_start().to_owned()).unwrap_or_default();
            lines.push(std::mem::replace(&mut line, rest));
            used = columns(&line);
        }
        line.push(c);
        used += wide;
    }
    lines.push(line);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_found_is_found_by_columns() {
        let needle: Vec<char> = "ab".chars().collect();
        assert_eq!(found("日AB ab", &needle), [(2, 4), (5, 7)]);
        assert_eq!(found("nothing", &needle), []);
    }

    #[test]
    fn sideways_half_of_a_wide_character_is_a_space() {
        for (skip, shown) in [(0, "a日b"), (1, "日b"), (2, " b"), (3, "b"), (4, ""), (9, "")] {
            let mut left = skip;
            assert_eq!(skipped("a日b", &mut left), shown, "{skip}");
        }
    }

    #[test]
    fn long_details_are_folded_and_nothing_of_them_is_lost() {
        let text = "one two three four five six seven";
        for width in 1..40 {
            let lines = folded(text, width);
            assert!(lines.iter().all(|line| columns(line) <= width), "{width} {lines:?}");
            assert_eq!(lines.concat().replace(' ', ""), text.replace(' ', ""), "{width}");
        }
    }
}
