//! What the panel looks like, as files: first the text, then the styles of each line that has any.
//!
//! `HOMING_UPDATE_SNAPSHOTS=1 cargo test -p homing-tui --test it` writes them anew; the difference is then for a person to judge.
#![expect(
    clippy::unwrap_used,
    reason = "in a test, a panic is the report; helpers outside of #[test] are tests too"
)]

use std::path::PathBuf;

use homing_tui::{Background, Panel, Theme};
use ratatui::buffer::{Buffer, Cell};
use ratatui::crossterm::event::KeyCode;
use ratatui::style::{Color, Modifier};

use crate::stage::{busy, draw, empty, lines, press, theme, types};

const SIZES: [(u16, u16); 3] = [(20, 5), (80, 24), (200, 60)];

/// `4-9 fg=Green bold`, for each stretch that is not plain.
fn styles(buffer: &Buffer) -> Vec<String> {
    let mut all = Vec::new();
    for y in 0..buffer.area.height {
        let mut runs: Vec<(u16, u16, String)> = Vec::new();
        for x in 0..buffer.area.width {
            let style = style(&buffer[(x, y)]);
            match runs.last_mut() {
                Some((_, to, last)) if *last == style => *to = x,
                _ => runs.push((x, x, style)),
            }
        }
        let runs: Vec<_> = runs.into_iter().filter(|(_, _, style)| !style.is_empty()).collect();
        let runs: Vec<_> = runs.into_iter().map(|(from, to, style)| format!("{from}-{to}{style}")).collect();
        if !runs.is_empty() {
            all.push(format!("{y}: {}", runs.join("; ")));
        }
    }
    all
}

fn style(cell: &Cell) -> String {
    let mut text = String::new();
    if cell.fg != Color::Reset {
        text.push_str(&format!(" fg={}", cell.fg));
    }
    if cell.bg != Color::Reset {
        text.push_str(&format!(" bg={}", cell.bg));
    }
    for (name, _) in Modifier::all().iter_names().filter(|(_, modifier)| cell.modifier.contains(*modifier)) {
        text.push_str(&format!(" {}", name.to_lowercase()));
    }
    text
}

/// Compares with the file of that name, or writes it.
fn check(name: &str, panel: &mut Panel, width: u16, height: u16) {
    let buffer = draw(panel, width, height);
    let seen = format!("{}\n--- styles ---\n{}\n", lines(&buffer).join("\n"), styles(&buffer).join("\n"));
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots").join(format!("{name}.txt"));
    #[expect(
        clippy::disallowed_methods,
        reason = "a test that writes its own expectation only if it is told to"
    )]
    let update = std::env::var_os("HOMING_UPDATE_SNAPSHOTS").is_some();
    if update {
        std::fs::write(&path, &seen).unwrap();
        return;
    }
    let known = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert_eq!(seen, known, "{name} looks otherwise; HOMING_UPDATE_SNAPSHOTS=1 writes it anew:\n{seen}");
}

fn everywhere(name: &str, make: impl Fn(Theme) -> Panel) {
    for (width, height) in SIZES {
        for (word, background) in [("dark", Background::Dark), ("light", Background::Light)] {
            let mut panel = make(theme(background));
            // Once before, so that keys know the size.
            let _ = draw(&mut panel, width, height);
            check(&format!("{name}-{width}x{height}-{word}"), &mut panel, width, height);
        }
    }
}

#[test]
fn a_busy_panel_looks_as_it_did() {
    everywhere("busy", busy);
}

#[test]
fn an_empty_panel_looks_as_it_did() {
    everywhere("empty", empty);
}

#[test]
fn details_look_as_they_did() {
    everywhere("details", |theme| {
        let mut panel = busy(theme);
        press(&mut panel, KeyCode::Char('d'));
        press(&mut panel, KeyCode::Enter);
        panel
    });
}

#[test]
fn help_and_questions_look_as_they_did() {
    everywhere("help", |theme| {
        let mut panel = busy(theme);
        types(&mut panel, "?");
        panel
    });
    everywhere("question", |theme| {
        let mut panel = busy(theme);
        types(&mut panel, "x");
        panel
    });
}

#[test]
fn a_search_looks_as_it_did() {
    everywhere("search", |theme| {
        let mut panel = busy(theme);
        press(&mut panel, KeyCode::Enter);
        types(&mut panel, "/LINE 3");
        press(&mut panel, KeyCode::Enter);
        panel
    });
}

#[test]
fn without_colours_and_symbols_it_looks_as_it_did() {
    let plain = Theme { colour: false, symbols: false, ..Theme::default() };
    for (width, height) in [(40, 12), (80, 24)] {
        check(&format!("plain-{width}x{height}"), &mut busy(plain), width, height);
    }
}

#[test]
fn at_forty_columns_neither_the_title_nor_the_help_is_cut() {
    let mut panel = busy(Theme::default());
    let title = lines(&draw(&mut panel, 40, 12))[0].clone();
    assert!(title.contains("queued") || title.contains("wait"), "{title}");
    assert!(title.contains("end") && title.contains("live") && !title.contains('…'), "{title}");
    for (width, height) in [(40, 24), (40, 8), (20, 5)] {
        let mut panel = busy(Theme::default());
        let _ = draw(&mut panel, width, height);
        types(&mut panel, "?");
        let mut seen = String::new();
        for _ in 0..60 {
            let screen = lines(&draw(&mut panel, width, height)).join("\n");
            assert!(!screen.contains('…') || width < 40, "{screen}");
            seen.push_str(&screen);
            press(&mut panel, KeyCode::Down);
        }
        let words: String = seen.split_whitespace().collect::<Vec<_>>().join(" ");
        for last in ["tasks run on", "take it out", "of the inbox"] {
            let found = last.split(' ').all(|word| words.contains(word));
            assert!(found, "{width}x{height}: {last} is nowhere in {seen}");
        }
    }
}
