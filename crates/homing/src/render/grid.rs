//! Rows in columns, fitted to the terminal: the last column takes what the others leave.

use crate::render::columns::{fit, of, pad};
use crate::render::console::{Console, Tint};

/// Below this many columns only what identifies a row, and its last column, are shown.
pub(crate) const NARROW: usize = 50;
/// Below this many, times and counts are not.
pub(crate) const MEDIUM: usize = 72;

/// A text and its colour.
pub(crate) type Cell = (String, Option<Tint>);

/// One line for the headings, then one for each row; none is longer than the terminal.
pub(crate) fn lines(heads: &[&str], rows: Vec<Vec<Cell>>, console: &Console) -> Vec<String> {
    let mut widths: Vec<usize> = heads.iter().map(|head| of(head)).collect();
    for row in &rows {
        for (width, (text, _)) in widths.iter_mut().zip(row) {
            *width = (*width).max(of(text));
        }
    }
    let heads = heads.iter().map(|head| ((*head).to_owned(), Some(Tint::Dim))).collect();
    std::iter::once(heads).chain(rows).map(|row| line(row, &widths, console)).collect()
}

fn line(row: Vec<Cell>, widths: &[usize], console: &Console) -> String {
    let mut room = console.width.unwrap_or(usize::MAX);
    let (mut out, last) = (String::new(), row.len().saturating_sub(1));
    for (column, ((text, tint), width)) in row.into_iter().zip(widths).enumerate() {
        let text = if column == last { text } else { pad(&text, width + 2) };
        // What is cut is the text, never the spaces behind it alone.
        let text = if of(&text) > room { pad(&fit(text.trim_end(), room), room) } else { text };
        room = room.saturating_sub(of(&text));
        out.push_str(&tint.map_or_else(|| text.clone(), |tint| console.tint(tint, &text)));
        if room == 0 {
            break;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_column_takes_what_is_left_and_no_line_is_longer_than_the_terminal() {
        let rows =
            || vec![vec![("日本".to_owned(), Some(Tint::Red)), ("long enough to be cut".to_owned(), None)]];
        let of_width = |width| lines(&["A", "B"], rows(), &Console::plain(width));
        assert_eq!(of_width(None), ["A     B", "日本  long enough to be cut"]);
        assert_eq!(of_width(Some(12)), ["A     B", "日本  long …"]);
        for width in 0..30 {
            assert!(of_width(Some(width)).iter().all(|line| of(line) <= width), "{width}");
        }
    }
}
