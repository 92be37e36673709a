//! What a task prints, is called or says stays in its box.
#![expect(
    clippy::unwrap_used,
    reason = "in a test, a panic is the report; helpers outside of #[test] are tests too"
)]

use homing_model::Status;
use homing_tui::{Background, Detail, Message, Panel, Piece, Row, Stream};
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::KeyCode;
use ratatui::layout::Rect;
use ratatui::widgets::StatefulWidget as _;
use unicode_width::UnicodeWidthStr as _;

use crate::stage::{at, empty, press, theme};

const ID: &str = "t-bbbbbbbbbb";

/// Escapes, titles, clipboards, cursors, bidi, NULs, joiners, towers, flags, wide characters, broken ones, and lines without end.
fn nasty() -> Vec<u8> {
    let mut all = Vec::new();
    let texts = [
        "\u{1b}[2J\u{1b}[H\u{1b}[999;999HEVIL\u{1b}[?1049l\u{1b}c",
        "\u{1b}]0;title\u{7}\u{1b}]52;c;ZXZpbA==\u{7}\u{1b}P+q544e\u{1b}\\\u{1b}_apc\u{1b}\\",
        "\u{9b}31m\u{90}dcs\u{9c}\u{85}next\u{2028}line\u{2029}par",
        "\u{202e}abc\u{2066}def\u{2069}\u{200f}\u{feff}\u{e0041}",
        "a\0b\u{7}c\u{8}\u{8}\u{8}\u{8}\u{b}d\u{c}e\u{7f}f",
        "👩\u{200d}👩\u{200d}👧 🇩🇪🇫🇷 ❤\u{fe0f} 1\u{fe0f}\u{20e3} 👍\u{1f3ff} ﷽ \u{3164}\u{ffa0}",
        "日本語한국어\u{1100}\u{1161}\u{11a8}",
        "\u{1b}[38;5;999999999999m\u{1b}[;;;;;;;;m\u{1b}[38;2;1;2m\u{1b}[1",
        "\r\r\r\u{1b}[K over \t\t\t tabs",
    ];
    for text in texts {
        all.extend_from_slice(text.as_bytes());
        all.push(b'\n');
    }
    all.extend_from_slice(&b"\xff\xfe\xc3\x28\xf0\x9f\n".repeat(3));
    all.extend_from_slice(format!("z{}", "\u{301}\u{20dd}".repeat(500)).as_bytes());
    all.extend_from_slice(&vec![b'x'; 300_000]);
    all.push(b'\n');
    all.extend_from_slice("語".repeat(100_000).as_bytes());
    all
}

fn panel() -> Panel {
    let mut panel = empty(theme(Background::Dark));
    let nasty = nasty();
    let text = String::from_utf8_lossy(&nasty[..2_000]).into_owned();
    let mut row = Row::new(ID, &text, Status::Running, at(5));
    (row.name, row.owner, row.sentence) = (Some(text.clone()), text.clone(), format!("running{text}"));
    (row.progress, row.last_line) = (Some(text.clone()), text.clone());
    panel.update(Message::Rows(vec![row]));
    panel.update(Message::Detail(Detail::new(ID, [(text.clone(), text.clone())])));
    panel.update(Message::OutputBegins { task: ID.to_owned() });
    for (index, bytes) in nasty.chunks(777).enumerate() {
        let stream = if index % 3 == 0 { Stream::Stderr } else { Stream::Stdout };
        let pieces = vec![Piece { gap: u64::from(index % 50 == 7), stream, bytes: bytes.to_vec() }];
        panel.update(Message::Output { task: ID.to_owned(), pieces });
    }
    panel.update(Message::Say(text));
    panel
}

/// Draws into a rectangle of a larger buffer, and looks at every cell of both.
fn draw_and_look(panel: &mut Panel, area: Rect) {
    let whole = Rect::new(0, 0, area.right() + 3, area.bottom() + 3);
    let mut buffer = Buffer::empty(whole);
    for cell in &mut buffer.content {
        cell.set_symbol("#");
    }
    homing_tui::View.render(area, &mut buffer, panel);
    for y in 0..whole.height {
        let mut x = 0;
        while x < whole.width {
            let symbol = buffer[(x, y)].symbol();
            if !area.contains((x, y).into()) {
                assert_eq!(symbol, "#", "outside of its box at {x},{y} in {area:?}");
                x += 1;
                continue;
            }
            let hidden = |c: char| {
                c.is_control()
                    || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}' | '\u{fe00}'..='\u{fe0f}' | '\u{e0000}'..='\u{e007f}')
            };
            assert!(!symbol.chars().any(hidden), "{symbol:?} at {x},{y}");
            assert!(symbol.chars().count() <= 4, "{symbol:?} at {x},{y}");
            let width = u16::try_from(symbol.width()).unwrap();
            assert!(width <= 2 && x + width <= area.right(), "{symbol:?} at {x},{y} in {area:?}");
            x += width.max(1);
        }
    }
}

#[test]
fn nothing_that_is_printed_named_or_said_leaves_its_box() {
    let mut panel = panel();
    let sizes = [(20, 5), (40, 12), (80, 24), (79, 23), (200, 60), (1, 1), (3, 2), (7, 40)];
    for (width, height) in sizes {
        for keys in ["", "\t", "gG", "k", "d", "d", "F"] {
            for key in keys.chars() {
                press(&mut panel, if key == '\t' { KeyCode::Tab } else { KeyCode::Char(key) });
            }
            for _ in 0..3 {
                draw_and_look(&mut panel, Rect::new(2, 1, width, height));
                press(&mut panel, KeyCode::Right);
                press(&mut panel, KeyCode::PageUp);
            }
        }
        press(&mut panel, KeyCode::Char('x'));
        draw_and_look(&mut panel, Rect::new(2, 1, width, height));
        press(&mut panel, KeyCode::Esc);
        press(&mut panel, KeyCode::Enter);
        press(&mut panel, KeyCode::Char('?'));
        draw_and_look(&mut panel, Rect::new(2, 1, width, height));
        press(&mut panel, KeyCode::Esc);
        press(&mut panel, KeyCode::Char('F'));
        draw_and_look(&mut panel, Rect::new(2, 1, width, height));
        press(&mut panel, KeyCode::Esc);
        press(&mut panel, KeyCode::Esc);
    }
}
