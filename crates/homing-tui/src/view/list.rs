//! The tasks, one line each, in as many columns as there is room for.

use homing_model::units::show_duration;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::age;
use super::widget::{put, tint};
use crate::glyph::{columns, pad};
use crate::panel::{Focus, Panel};
use crate::row::Row;
use crate::snapshot::Link;
use crate::theme::{Theme, Tone};

/// The longest status: `✗ start_failed`, `● running 100%`.
const STATUS: usize = 14;
const ID: usize = 12;
const AGE: usize = 4;
const TIME: usize = 8;

/// Columns between columns.
const SPACE: usize = 2;

pub(super) const fn shows_ages(width: u16) -> bool {
    width >= 60
}

pub(super) const fn shows_times(width: u16) -> bool {
    width >= 100
}

/// Whether there is room for what tasks printed last.
pub(crate) const fn shows_last_lines(width: u16) -> bool {
    width >= 72
}

const fn shows_words(width: u16) -> bool {
    width >= 30
}

pub(super) fn draw(panel: &Panel, buffer: &mut Buffer) {
    let area = panel.areas.list;
    if area.is_empty() {
        return;
    }
    heads(panel, buffer);
    if panel.roster.len() == 0 {
        return nothing(panel, buffer);
    }
    for (line, (place, row)) in panel.roster.window(usize::from(area.height)).enumerate() {
        let Ok(line) = u16::try_from(line) else { break };
        let line = Rect { y: area.y + line, height: 1, ..area };
        one(panel, row, line, buffer);
        if place == panel.roster.cursor() {
            let tone = if panel.focus == Focus::List { Tone::Focus } else { Tone::Chosen };
            tint(buffer, line, panel.options.theme.style(tone));
        }
    }
}

fn heads(panel: &Panel, buffer: &mut Buffer) {
    let area = panel.areas.heads;
    let mut text = String::new();
    if shows_ages(area.width) {
        text.push_str(&pad("ID", ID + SPACE));
    }
    text.push_str(&pad("STATUS", STATUS + SPACE));
    if shows_ages(area.width) {
        text.push_str(&pad("AGE", AGE + SPACE));
    }
    if shows_times(area.width) {
        text.push_str(&pad("TIME", TIME + SPACE));
    }
    let left = usize::from(area.width).saturating_sub(text.len());
    text.push_str(&pad("TASK", title_width(area.width, left)));
    if shows_last_lines(area.width) {
        text.push_str(&format!("{:SPACE$}LAST LINE", ""));
    }
    put(buffer, area, area.x, area.y, &text, panel.options.theme.style(Tone::Dim));
}

/// How much of the rest the name and command get.
fn title_width(width: u16, left: usize) -> usize {
    if shows_last_lines(width) { (left * 2 / 5).max(14).min(left) } else { left }
}

/// Why the list is empty, and what to do.
fn nothing(panel: &Panel, buffer: &mut Buffer) {
    let text = match (&panel.link, panel.roster.all()) {
        (Link::Connecting, 0) => "asking the daemon…".to_owned(),
        (_, 0) => "no tasks yet; `homing run -- COMMAND` starts one".to_owned(),
        (_, count) => format!("none of {count} match; Esc shows all"),
    };
    let area = panel.areas.list;
    put(buffer, area, area.x, area.y, &text, panel.options.theme.style(Tone::Dim));
}

fn one(panel: &Panel, row: &Row, line: Rect, buffer: &mut Buffer) {
    let theme = panel.options.theme;
    let (plain, dim) = (theme.style(Tone::Plain), theme.style(Tone::Dim));
    let (symbol, tone) = theme.status(row.status);
    let mut x = line.x;
    let mut cell = |text: &str, width: usize, style| {
        let next = put(buffer, line, x, line.y, &pad(text, width), style);
        let space = if shows_words(line.width) { SPACE } else { 1 };
        x = next.saturating_add(u16::try_from(space).unwrap_or(0));
        // What is left of the line.
        usize::from(line.right().saturating_sub(x))
    };
    let mut left;
    if shows_ages(line.width) {
        cell(&row.id, ID, dim);
    }
    if shows_words(line.width) {
        left = cell(&status(row, symbol), STATUS, theme.style(tone));
    } else {
        left = cell(symbol, columns(symbol), theme.style(tone));
    }
    if shows_ages(line.width) {
        left = cell(&age::show(panel.now.millis_since(row.created_at)), AGE, dim);
    }
    if shows_times(line.width) {
        left = cell(&time(panel, row), TIME, dim);
    }
    left = cell(&row.title(), title_width(line.width, left), plain);
    if shows_last_lines(line.width) {
        let (text, tone) = last(row, theme);
        cell(&text, left, theme.style(tone));
    }
}

fn status(row: &Row, symbol: &str) -> String {
    match row.percent.filter(|_| !row.status.is_terminal()) {
        Some(percent) => format!("{symbol} {} {percent:.0}%", row.status),
        None => format!("{symbol} {}", row.status),
    }
}

fn time(panel: &Panel, row: &Row) -> String {
    match (row.running_time(panel.now), row.ended_at) {
        (None, _) => "-".to_owned(),
        (Some(time), Some(_)) => show_duration(time),
        (Some(time), None) => age::running(time),
    }
}

/// What it printed last; before that, what matters more: that it waits for somebody, how it ended, what it says of its progress.
fn last(row: &Row, theme: Theme) -> (String, Tone) {
    if row.waiting_for_input && !row.status.is_terminal() {
        return (format!("{} waits for input", theme.pick("▸", ">")), Tone::Caution);
    }
    let told = row.sentence.strip_prefix(row.status.as_str()).unwrap_or_default();
    let told = told.trim_start_matches([',', ':', ' ']);
    let progress = row.progress.as_deref().filter(|_| !row.status.is_terminal()).unwrap_or_default();
    let parts = [told, progress, row.last_line.as_str()];
    let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    (parts.join(theme.pick(" · ", " | ")), Tone::Dim)
}
