//! What each key does.

use homing_model::Status;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::entry::{Entry, Purpose, Typed};
use super::focus::Focus;
use super::roster::Shown;
use super::state::{Overlay, Pane, Panel, Question};
use crate::message::{Abilities, Effect};

/// The keys, what they do, and whether they are there.
pub(crate) type Help = (&'static str, &'static str, fn(&Abilities) -> bool);

/// All of them.
pub(crate) const HELP: &[Help] = &[
    ("↑ ↓ j k", "move; round the ends of the list", |_| true),
    ("PgUp PgDn Home End g G", "move further; Home: stay with the newest", |_| true),
    ("← →", "move long lines sideways", |_| true),
    ("Tab", "list or output", |_| true),
    ("Enter", "the whole screen for this task", |_| true),
    ("Esc", "back", |_| true),
    ("/", "filter the list, or search the output", |_| true),
    ("n N", "next, previous match", |_| true),
    ("f", "all, live, ended or failed tasks", |_| true),
    ("d", "details or output", |_| true),
    ("F", "follow the output", |_| true),
    ("x", "stop", |can| can.stop),
    ("p", "pause, or let go on", |can| can.pause),
    ("r", "run again", |can| can.rerun),
    ("t", "attach the terminal; ctrl-\\ leaves it", |can| can.attach),
    ("a", "acknowledge: take it out of the inbox", |can| can.acknowledge),
    ("c", "copy the id", |can| can.copy),
    ("?", "this help", |_| true),
    ("q", "leave; tasks run on", |_| true),
];

pub(super) fn press(panel: &mut Panel, key: KeyEvent) -> Vec<Effect> {
    if key.kind == KeyEventKind::Release {
        return Vec::new();
    }
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    if control && key.code == KeyCode::Char('c') && panel.options.may_quit {
        return vec![Effect::Quit];
    }
    if panel.entry.is_some() {
        enter(panel, key);
        return Vec::new();
    }
    if panel.overlay.is_some() {
        return answer(panel, key);
    }
    let code = match key.code {
        // As in less and vi.
        KeyCode::Char('d' | 'f') if control => KeyCode::PageDown,
        KeyCode::Char('u' | 'b') if control => KeyCode::PageUp,
        KeyCode::Char('n') if control => KeyCode::Down,
        KeyCode::Char('p') if control => KeyCode::Up,
        KeyCode::Char(_) if control || key.modifiers.contains(KeyModifiers::ALT) => return Vec::new(),
        code => code,
    };
    match code {
        KeyCode::Char('q') if panel.options.may_quit => return vec![Effect::Quit],
        KeyCode::Char('?') | KeyCode::F(1) => panel.overlay = Some(Overlay::Help(0)),
        KeyCode::Char('/') => begin_entry(panel),
        KeyCode::Char('n') => find(panel, true),
        KeyCode::Char('N') => find(panel, false),
        KeyCode::Char('f') => panel.set_shown(panel.roster.status.next()),
        KeyCode::Char('d') => {
            panel.pane = if panel.pane == Pane::Output { Pane::Detail } else { Pane::Output };
        }
        KeyCode::Char('F') => {
            panel.pane = Pane::Output;
            panel.output_pager.end(true);
        }
        KeyCode::Tab | KeyCode::BackTab => switch(panel),
        KeyCode::Enter => (panel.zoomed, panel.focus) = (panel.chosen().is_some(), pane_if(panel)),
        KeyCode::Esc => back(panel),
        KeyCode::Char(c @ ('x' | 'p' | 'r' | 't' | 'a' | 'c')) => return act(panel, c),
        code => travel(panel, code),
    }
    Vec::new()
}

fn pane_if(panel: &Panel) -> Focus {
    if panel.chosen().is_some() { Focus::Pane } else { Focus::List }
}

fn switch(panel: &mut Panel) {
    panel.focus = match panel.focus {
        // Of two parts of which one has no room, the other is opened.
        Focus::List if panel.areas.pane.height == 0 => {
            panel.zoomed = panel.chosen().is_some();
            pane_if(panel)
        }
        Focus::List => Focus::Pane,
        Focus::Pane => {
            panel.zoomed = false;
            Focus::List
        }
    };
}

/// Takes back what was done last: what lies over the rest, then a search, then a filter.
fn back(panel: &mut Panel) {
    if panel.focus == Focus::Pane && !panel.search.is_empty() {
        panel.search.clear();
        panel.output_pager.mark = None;
    } else if panel.zoomed || panel.focus == Focus::Pane {
        (panel.zoomed, panel.focus) = (false, Focus::List);
    } else if !panel.roster.filter.is_empty() {
        panel.set_filter("");
    } else if panel.roster.status != Shown::All {
        panel.set_shown(Shown::All);
    }
}

fn travel(panel: &mut Panel, code: KeyCode) {
    let page = isize::try_from(panel.areas.list.height.max(2) - 1).unwrap_or(1);
    match panel.focus {
        Focus::List => match code {
            KeyCode::Up | KeyCode::Char('k') => panel.roster.step(-1),
            KeyCode::Down | KeyCode::Char('j') => panel.roster.step(1),
            KeyCode::PageUp => panel.roster.step(-page.max(2)),
            KeyCode::PageDown => panel.roster.step(page.max(2)),
            KeyCode::Home | KeyCode::Char('g') => panel.roster.home(),
            KeyCode::End | KeyCode::Char('G') => panel.roster.end(),
            KeyCode::Left => panel.output_pager.columns(-8),
            KeyCode::Right => panel.output_pager.columns(8),
            _ => {}
        },
        Focus::Pane => {
            let may_follow = panel.pane == Pane::Output;
            let pager = panel.pager();
            match code {
                KeyCode::Up | KeyCode::Char('k') => pager.lines(-1, may_follow),
                KeyCode::Down | KeyCode::Char('j') => pager.lines(1, may_follow),
                KeyCode::PageUp => pager.pages(-1, may_follow),
                KeyCode::PageDown | KeyCode::Char(' ') => pager.pages(1, may_follow),
                KeyCode::Home | KeyCode::Char('g') => pager.home(),
                KeyCode::End | KeyCode::Char('G') => pager.end(may_follow),
                KeyCode::Left => pager.columns(-8),
                KeyCode::Right => pager.columns(8),
                _ => {}
            }
        }
    }
}

fn begin_entry(panel: &mut Panel) {
    let entry = match panel.focus {
        Focus::List => Entry::new(Purpose::Filter, &panel.roster.filter),
        Focus::Pane => {
            panel.pane = Pane::Output;
            Entry::new(Purpose::Search, &panel.search)
        }
    };
    panel.entry = Some(entry);
    panel.typed();
}

fn enter(panel: &mut Panel, key: KeyEvent) {
    let Some(entry) = &mut panel.entry else { return };
    match entry.key(key) {
        Typed::Nothing => {}
        Typed::Changed => panel.typed(),
        Typed::GivenUp => {
            entry.text = entry.before.clone();
            panel.typed();
            panel.entry = None;
        }
        Typed::Done => {
            let purpose = entry.purpose;
            panel.entry = None;
            if purpose == Purpose::Search {
                find(panel, false);
            }
        }
    }
}

/// To the next line with what is searched for. The first search looks backwards from the end: what is new is what is looked for.
fn find(panel: &mut Panel, forwards: bool) {
    if panel.search.is_empty() {
        return;
    }
    let from = match panel.output_pager.mark {
        Some(line) => line,
        None if forwards => panel.output_pager.top,
        None => panel.output.len(),
    };
    match panel.output.find(&panel.search.to_lowercase(), from, forwards) {
        Some(line) => panel.output_pager.show(line),
        None => {
            let text = format!("nothing with `{}` in what is shown of the output", panel.search);
            panel.say(&text);
        }
    }
}

fn answer(panel: &mut Panel, key: KeyEvent) -> Vec<Effect> {
    match panel.overlay.take() {
        Some(Overlay::Question(question)) => match key.code {
            KeyCode::Char('y' | 'Y') => return vec![question.effect],
            KeyCode::Char('n' | 'N' | 'q') | KeyCode::Esc => {}
            _ => panel.overlay = Some(Overlay::Question(question)),
        },
        Some(Overlay::Help(top)) => match key.code {
            KeyCode::Down | KeyCode::Char('j') => panel.overlay = Some(Overlay::Help(top.saturating_add(1))),
            KeyCode::Up | KeyCode::Char('k') => panel.overlay = Some(Overlay::Help(top.saturating_sub(1))),
            _ => {}
        },
        None => {}
    }
    Vec::new()
}

fn act(panel: &mut Panel, key: char) -> Vec<Effect> {
    let can = panel.options.abilities;
    let Some(row) = panel.roster.chosen() else { return Vec::new() };
    let (task, status, owner) = (row.id.clone(), row.status, row.owner.clone());
    let called = crate::glyph::fit(row.name.as_ref().unwrap_or(&row.command), 40);
    let live = !status.is_terminal();
    let has_terminal = row.has_terminal;
    let refuse = |panel: &mut Panel, text: &str| {
        panel.say(text);
        Vec::new()
    };
    match key {
        'x' if can.stop && live => {
            let text = format!("Stop {called} ({task})?");
            ask(panel, text, Effect::Stop(task))
        }
        'x' if can.stop => refuse(panel, "it has ended"),
        'p' if can.pause && status == Status::Paused => vec![Effect::Resume(task)],
        'p' if can.pause && live => vec![Effect::Pause(task)],
        'p' if can.pause => refuse(panel, "it has ended"),
        'r' if can.rerun => {
            let text = format!("Run {called} again ({task})?");
            ask(panel, text, Effect::Rerun(task))
        }
        't' if can.attach && live && has_terminal => vec![Effect::Attach(task)],
        't' if can.attach && live => refuse(panel, "it has no terminal: `run --pty` gives one"),
        't' if can.attach => refuse(panel, "it has ended"),
        'a' if can.acknowledge && owner == panel.options.owner => vec![Effect::Acknowledge { task, owner }],
        'a' if can.acknowledge => {
            let text = format!("It is {owner}'s, who will not be told then. Acknowledge {called}?");
            ask(panel, text, Effect::Acknowledge { task, owner })
        }
        'c' if can.copy => {
            panel.say(&format!("copied {task}"));
            vec![Effect::Copy(task)]
        }
        _ => Vec::new(),
    }
}

fn ask(panel: &mut Panel, text: String, effect: Effect) -> Vec<Effect> {
    panel.overlay = Some(Overlay::Question(Question { text, effect }));
    Vec::new()
}
