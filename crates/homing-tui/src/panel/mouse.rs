//! The mouse: a click chooses, the wheel moves what is under it.

use ratatui::crossterm::event::{MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::Position;

use super::focus::Focus;
use super::state::{Overlay, Pane, Panel};

/// Lines that one notch of the wheel moves.
const NOTCH: isize = 3;

pub(super) fn use_it(panel: &mut Panel, event: MouseEvent) {
    let at = Position::new(event.column, event.row);
    if !panel.areas.whole.contains(at) {
        return;
    }
    match event.kind {
        MouseEventKind::Down(MouseButton::Left) => click(panel, at),
        MouseEventKind::ScrollUp => wheel(panel, at, -1),
        MouseEventKind::ScrollDown => wheel(panel, at, 1),
        MouseEventKind::ScrollLeft => panel.output_pager.columns(-4),
        MouseEventKind::ScrollRight => panel.output_pager.columns(4),
        _ => {}
    }
}

fn click(panel: &mut Panel, at: Position) {
    match panel.overlay {
        // A question is answered by a key, never by a click that was meant for something else.
        Some(Overlay::Question(_)) => {}
        Some(Overlay::Help(_)) => panel.overlay = None,
        None if panel.areas.list.contains(at) => {
            panel.focus = Focus::List;
            let line = usize::from(at.y - panel.areas.list.y);
            let before = panel.chosen().map(str::to_owned);
            // A second click on the same task opens it, where there was no room to show it.
            if panel.roster.click(line) && before.as_deref() == panel.chosen() && panel.areas.pane.height == 0
            {
                (panel.zoomed, panel.focus) = (true, Focus::Pane);
            }
        }
        None if panel.areas.in_pane(at) => panel.focus = Focus::Pane,
        None => {}
    }
}

fn wheel(panel: &mut Panel, at: Position, by: isize) {
    match &mut panel.overlay {
        Some(Overlay::Question(_)) => {}
        Some(Overlay::Help(top)) => *top = top.saturating_add_signed(by),
        None if panel.areas.list.contains(at) => {
            // The wheel stops at the ends; only keys go round them.
            let last = panel.roster.len().saturating_sub(1);
            if (by < 0 && panel.roster.cursor() > 0) || (by > 0 && panel.roster.cursor() < last) {
                panel.roster.step(by);
            }
        }
        None if panel.areas.in_pane(at) => {
            let may_follow = panel.pane == Pane::Output;
            panel.pager().lines(by * NOTCH, may_follow);
        }
        None => {}
    }
}
