//! A panel with something to show, and a buffer to draw it into.
#![expect(
    clippy::unwrap_used,
    reason = "in a test, a panic is the report; helpers outside of #[test] are tests too"
)]

use homing_model::{Status, Timestamp};
use homing_tui::{
    Abilities, Background, Detail, Effect, Link, Message, Options, Panel, Piece, Row, Scrollback, Snapshot,
    Stream, Theme, View,
};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// When everything here happens.
pub(crate) const NOW: i64 = 1_789_000_000_000;

pub(crate) fn at(seconds_ago: i64) -> Timestamp {
    Timestamp::from_millis(NOW - seconds_ago * 1000)
}

pub(crate) const EVERYTHING: Abilities =
    Abilities { stop: true, pause: true, rerun: true, attach: true, acknowledge: true, copy: true };

pub(crate) fn theme(background: Background) -> Theme {
    Theme { background, ..Theme::default() }
}

/// An empty panel that can do everything.
pub(crate) fn empty(theme: Theme) -> Panel {
    let options = Options { theme, abilities: EVERYTHING, owner: "user".to_owned(), may_quit: true };
    let mut panel = Panel::new(options);
    panel.update(Message::Now(at(0)));
    panel
}

pub(crate) fn row(id: &str, command: &str, status: Status, age: i64) -> Row {
    let mut row = Row::new(id, command, status, at(age));
    row.owner = "user".to_owned();
    if status != Status::Queued {
        row.started_at = Some(at(age));
    }
    if status.is_terminal() {
        row.ended_at = Some(at(age - 5));
        row.duration_ms = Some(5_000);
    }
    row
}

/// A morning's work.
pub(crate) fn rows() -> Vec<Row> {
    let mut build = row("t-bbbbbbbbbb", "cargo build --workspace", Status::Running, 95);
    build.name = Some("build".to_owned());
    (build.percent, build.last_line) = (Some(40.0), "   Compiling homing-tui v0.1.0".to_owned());
    let mut server = row("t-cccccccccc", "python -m http.server", Status::Running, 7_200);
    server.last_line = "127.0.0.1 - - \"GET / HTTP/1.1\" 200".to_owned();
    let mut shell = row("t-dddddddddd", "read -p 'Sure? ' answer", Status::Running, 30);
    (shell.waiting_for_input, shell.accepts_input, shell.has_terminal) = (true, true, true);
    let mut failed = row("t-eeeeeeeeee", "make check", Status::Failed, 200);
    failed.sentence = "failed, exit 2".to_owned();
    failed.last_line = "make: *** [check] Error 1".to_owned();
    let mut lost = row("t-ffffffffff", "sleep 600", Status::Lost, 90_000);
    lost.sentence = "lost: machine rebooted".to_owned();
    let mut wide = row("t-gggggggggg", "echo 日本語テキスト", Status::Succeeded, 400);
    wide.last_line = "日本語テキスト".to_owned();
    vec![build, server, shell, failed, lost, wide, row("t-hhhhhhhhhh", "later", Status::Queued, 3)]
}

pub(crate) fn output() -> Scrollback {
    let mut output = Scrollback::default();
    let mut say =
        |stream, text: &str| output.push(&Piece { gap: 0, stream, bytes: text.as_bytes().to_vec() });
    for number in 1..=40 {
        say(Stream::Stdout, &format!("line {number}\n"));
    }
    say(Stream::Stdout, "\u{1b}[32m   Compiling\u{1b}[0m homing-tui v0.1.0\n");
    say(Stream::Stderr, "\u{1b}[1;33mwarning\u{1b}[0m: unused variable\n");
    say(Stream::Stdout, "\u{1b}[97mbright\u{1b}[0m and \u{1b}[41mground\u{1b}[0m 日本語\n");
    output
}

pub(crate) fn facts() -> Detail {
    let facts = [
        ("id", "t-hhhhhhhhhh"),
        ("status", "queued"),
        (
            "command",
            "later, after a very long list of words that has to be folded since nobody has a terminal of that width",
        ),
        ("notices", "task.completed, waits in the inbox"),
        ("deliveries", "https://example.invalid/hook: dead after 3 attempts"),
    ];
    Detail::new("t-hhhhhhhhhh", facts.map(|(label, text)| (label.to_owned(), text.to_owned())))
}

/// A panel with all of that.
pub(crate) fn busy(theme: Theme) -> Panel {
    let mut panel = empty(theme);
    let snapshot = Snapshot {
        rows: rows(),
        detail: facts(),
        output_of: Some("t-hhhhhhhhhh".to_owned()),
        output: output(),
        link: Link::Live,
    };
    panel.update(Message::Snapshot(Box::new(snapshot)));
    panel
}

pub(crate) fn press(panel: &mut Panel, code: KeyCode) -> Vec<Effect> {
    panel.update(Message::Key(KeyEvent::new(code, KeyModifiers::NONE)))
}

/// Types characters.
pub(crate) fn types(panel: &mut Panel, text: &str) -> Vec<Effect> {
    text.chars().flat_map(|c| press(panel, KeyCode::Char(c))).collect()
}

/// Draws it on a terminal of this size.
pub(crate) fn draw(panel: &mut Panel, width: u16, height: u16) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| frame.render_stateful_widget(View, frame.area(), panel)).unwrap();
    terminal.backend().buffer().clone()
}

/// The text of a buffer, line by line. The second half of a wide character is nothing.
pub(crate) fn lines(buffer: &Buffer) -> Vec<String> {
    use unicode_width::UnicodeWidthStr as _;
    (buffer.area.y..buffer.area.bottom())
        .map(|y| {
            let mut line = String::new();
            let mut x = buffer.area.x;
            while x < buffer.area.right() {
                let symbol = buffer[(x, y)].symbol();
                line.push_str(symbol);
                x += u16::try_from(symbol.width().max(1)).unwrap();
            }
            line.trim_end().to_owned()
        })
        .collect()
}

pub(crate) fn text(panel: &mut Panel, width: u16, height: u16) -> String {
    lines(&draw(panel, width, height)).join("\n")
}
