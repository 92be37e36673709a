//! Thousands of random resizes, keys, clicks and news: it never panics, and what has to hold holds after each.
#![expect(
    clippy::unwrap_used,
    reason = "in a test, a panic is the report; helpers outside of #[test] are tests too"
)]

use homing_model::{Status, Timestamp};
use homing_tui::{Background, Detail, Effect, Link, Message, Panel, Piece, Row, Snapshot, Stream, View};
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::Rect;
use ratatui::widgets::StatefulWidget as _;

use crate::stage::{NOW, busy, empty, output, theme};

/// Numbers that are the same every time (splitmix64).
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, most: u64) -> u64 {
        self.next() % most.max(1)
    }

    fn size(&mut self, most: u64) -> u16 {
        u16::try_from(self.below(most)).unwrap()
    }

    fn pick<T: Clone>(&mut self, of: &[T]) -> T {
        of[usize::try_from(self.below(of.len() as u64)).unwrap()].clone()
    }
}

fn id(dice: &mut Dice) -> String {
    format!("t-{}", dice.below(40))
}

fn row(dice: &mut Dice) -> Row {
    let created = Timestamp::from_millis(NOW - i64::try_from(dice.below(200_000)).unwrap());
    let command = dice.pick(&["make", "", "日本語 long command line", "\u{1b}[2J\u{202e}evil\0"]);
    let mut row = Row::new(&id(dice), command, dice.pick(&Status::ALL), created);
    if row.status.is_terminal() {
        row.ended_at = Some(created.plus_millis(i64::try_from(dice.below(300_000)).unwrap()));
    }
    if dice.below(2) == 0 {
        row.started_at = Some(created);
        row.percent = Some(dice.pick(&[0.0, 50.0, 100.0, f64::NAN, -1e300, 1e300]));
    }
    row.name = dice.pick(&[None, Some("name".to_owned()), Some("\n\t\u{7}".to_owned())]);
    row
}

fn bytes(dice: &mut Dice) -> Vec<u8> {
    match dice.below(4) {
        0 => (0..dice.below(300)).map(|_| u8::try_from(dice.below(256)).unwrap()).collect(),
        1 => dice.pick(&["\u{1b}[31mred", "\r", "\u{8}\u{8}", "\n\n\n", "語", "\u{301}"]).as_bytes().to_vec(),
        2 => vec![b'x'; usize::try_from(dice.below(9_000)).unwrap()],
        _ => format!("line {}\n", dice.below(1_000)).into_bytes(),
    }
}

fn key(dice: &mut Dice) -> KeyEvent {
    let letters: Vec<char> = "jkgGnNfdFxprtacyq?/ 1é日\u{1b}\0".chars().collect();
    let code = match dice.below(20) {
        0 => KeyCode::Up,
        1 => KeyCode::Down,
        2 => KeyCode::PageUp,
        3 => KeyCode::PageDown,
        4 => KeyCode::Home,
        5 => KeyCode::End,
        6 => KeyCode::Left,
        7 => KeyCode::Right,
        8 => KeyCode::Tab,
        9 => KeyCode::Enter,
        10 => KeyCode::Esc,
        11 => KeyCode::Backspace,
        12 => KeyCode::F(u8::try_from(dice.below(13)).unwrap()),
        _ => KeyCode::Char(dice.pick(&letters)),
    };
    let modifiers = if dice.below(8) == 0 { KeyModifiers::CONTROL } else { KeyModifiers::NONE };
    KeyEvent::new(code, modifiers)
}

fn message(dice: &mut Dice) -> Message {
    match dice.below(24) {
        0 => Message::Rows((0..dice.below(60)).map(|_| row(dice)).collect()),
        1 | 2 => Message::Row(Box::new(row(dice))),
        3 => Message::Gone(id(dice)),
        4 => Message::LastLine { task: id(dice), line: String::from_utf8_lossy(&bytes(dice)).into_owned() },
        5 => {
            let facts = (0..dice.below(30))
                .map(|n| (format!("label {n}"), "word ".repeat(usize::try_from(n).unwrap())));
            Message::Detail(Detail::new(&id(dice), facts))
        }
        6 => Message::OutputBegins { task: id(dice) },
        7 | 8 => {
            let stream = dice.pick(&[Stream::Stdout, Stream::Stderr]);
            let piece = Piece { gap: dice.below(3), stream, bytes: bytes(dice) };
            Message::Output { task: id(dice), pieces: vec![piece] }
        }
        9 => Message::Link(dice.pick(&[
            Link::Live,
            Link::Connecting,
            Link::Lost("\u{1b}]0;x\u{7}".to_owned()),
        ])),
        10 => Message::Say("said \u{202e}".to_owned()),
        11 => {
            Message::Now(Timestamp::from_millis(NOW + i64::try_from(dice.below(400_000)).unwrap() - 100_000))
        }
        12 => {
            let snapshot = Snapshot { output_of: Some(id(dice)), output: output(), ..Snapshot::default() };
            Message::Snapshot(Box::new(snapshot))
        }
        13 => Message::Paste("pasted\n".repeat(usize::try_from(dice.below(100)).unwrap())),
        14..=16 => {
            let kind = dice.pick(&[
                MouseEventKind::Down(MouseButton::Left),
                MouseEventKind::ScrollUp,
                MouseEventKind::ScrollDown,
                MouseEventKind::ScrollLeft,
                MouseEventKind::ScrollRight,
                MouseEventKind::Moved,
            ]);
            let (column, row) = (dice.size(260), dice.size(100));
            Message::Mouse(MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE })
        }
        17 => Message::Remark { task: id(dice), text: "remark".to_owned() },
        _ => Message::Key(key(dice)),
    }
}

fn area(dice: &mut Dice) -> Rect {
    let (most_wide, most_high) = dice.pick(&[(3, 3), (30, 10), (100, 40), (250, 90)]);
    Rect::new(dice.size(4), dice.size(4), dice.size(most_wide), dice.size(most_high))
}

fn draw(panel: &mut Panel, area: Rect) {
    let mut buffer = Buffer::empty(Rect::new(0, 0, area.right(), area.bottom()));
    View.render(area, &mut buffer, panel);
}

/// What anybody can see: what is wanted is there, and an effect is about a task.
fn check(panel: &Panel, effects: &[Effect]) {
    let wanted = panel.wanted();
    for task in wanted.output.iter().chain(&wanted.detail) {
        assert_eq!(Some(task.as_str()), panel.chosen());
    }
    assert!(panel.next_change().is_none_or(|millis| millis > 0));
    for effect in effects {
        match effect {
            Effect::Quit => {}
            Effect::Stop(task)
            | Effect::Pause(task)
            | Effect::Resume(task)
            | Effect::Rerun(task)
            | Effect::Attach(task)
            | Effect::Copy(task)
            | Effect::Acknowledge { task, .. } => assert!(task.starts_with("t-"), "{effect:?}"),
        }
    }
}

#[test]
fn random_resizes_keys_clicks_and_news_never_panic_it() {
    for seed in 0..8 {
        let mut dice = Dice(seed);
        let ground = theme(dice.pick(&[Background::Dark, Background::Light]));
        let mut panel = if seed % 2 == 0 { busy(ground) } else { empty(ground) };
        let mut place = area(&mut dice);
        for _ in 0..1_000 {
            if dice.below(4) == 0 {
                place = area(&mut dice);
            }
            let effects = panel.update(message(&mut dice));
            check(&panel, &effects);
            draw(&mut panel, place);
            check(&panel, &[]);
            assert!(panel.is_sound(), "seed {seed}: {panel:?}");
        }
    }
}
