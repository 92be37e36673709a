//! What a terminal shows, row by row, in stretches of one look.

use std::time::Duration;

/// A row of the terminal, at last, and when it came to be so.
pub(super) struct Row {
    pub(super) at: Duration,
    pub(super) pieces: Vec<Piece>,
}

/// A stretch of one look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) column: u16,
    pub(super) text: String,
    pub(super) look: Look,
}

/// How letters look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Look {
    pub(super) colour: Option<u8>,
    pub(super) ground: Option<u8>,
    pub(super) bold: bool,
    pub(super) dim: bool,
    pub(super) inverse: bool,
}

impl Look {
    fn of(cell: &vt100::Cell) -> Self {
        let index = |colour| match colour {
            vt100::Color::Idx(index) => Some(index),
            _ => None,
        };
        let (colour, ground) = (index(cell.fgcolor()), index(cell.bgcolor()));
        Self { colour, ground, bold: cell.bold(), dim: cell.dim(), inverse: cell.inverse() }
    }

    /// Whether blanks can be seen.
    pub(super) fn has_ground(self) -> bool {
        self.inverse || self.ground.is_some()
    }
}

impl Row {
    /// What is written there; how wide the gaps are is of no account.
    pub(super) fn text(&self) -> String {
        self.pieces.iter().map(|piece| piece.text.as_str()).collect::<Vec<_>>().join(" ")
    }
}

/// The stretches of a row.
pub(super) fn pieces(screen: &vt100::Screen, row: u16) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    for column in 0..screen.size().1.get() {
        let Some(cell) = screen.cell(row, column) else { continue };
        let text = if cell.has_contents() { cell.contents() } else { " " };
        let look = Look::of(cell);
        match pieces.last_mut() {
            Some(last) if last.look == look => last.text.push_str(text),
            _ => pieces.push(Piece { column, text: text.to_owned(), look }),
        }
    }
    for piece in pieces.iter_mut().filter(|piece| !piece.look.has_ground()) {
        piece.text.truncate(piece.text.trim_end().len());
    }
    pieces.retain(|piece| !piece.text.is_empty());
    pieces
}

/// All that is shown.
pub(super) fn text(rows: &[Row]) -> String {
    rows.iter().map(|row| row.text() + "\n").collect()
}
