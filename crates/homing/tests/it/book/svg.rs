//! A terminal as a picture: plain SVG, whose rows appear when they did, and all at once for whoever wants no motion.

use std::fmt::Write as _;
use std::time::Duration;

use super::screen::{Look, Piece, Row};

const WIDTH: f64 = 8.4;
const HEIGHT: f64 = 20.0;
const MARGIN: f64 = 16.0;

/// A person types: the line comes, then its answer.
const TYPING: Duration = Duration::from_millis(900);

const LETTERS: &str = "#e6edf3";
const GROUND: &str = "#0d1117";

/// The colours of the terminal by their numbers; the first sixteen as they are legible on its ground.
fn colour(index: u8) -> String {
    const NAMED: [&str; 16] = [
        "#30363d", "#ff7b72", "#7ee787", "#e3b341", "#79c0ff", "#d2a8ff", "#76e3ea", LETTERS, "#8b949e",
        "#ffa198", "#aff5b4", "#f8e3a1", "#a5d6ff", "#e2c5ff", "#b3f0ff", "#ffffff",
    ];
    let step = |value: u8| if value == 0 { 0 } else { 55 + 40 * value };
    match index {
        0..16 => NAMED[usize::from(index)].to_owned(),
        16..232 => {
            let cube = index - 16;
            format!("#{:02x}{:02x}{:02x}", step(cube / 36), step(cube / 6 % 6), step(cube % 6))
        }
        grey => {
            let level = 8 + 10 * (grey - 232);
            format!("#{level:02x}{level:02x}{level:02x}")
        }
    }
}

/// The colours of letters and of what is behind them.
fn colours(look: Look) -> (String, String) {
    let or = |index: Option<u8>, without: &str| index.map_or_else(|| without.to_owned(), colour);
    let (letters, ground) = (or(look.colour, LETTERS), or(look.ground, GROUND));
    if look.inverse { (ground, letters) } else { (letters, ground) }
}

/// The picture.
pub(super) fn draw(rows: &[Row], columns: u16, title: &str) -> String {
    let width = f64::from(columns).mul_add(WIDTH, 2.0 * MARGIN);
    let height = rows.iter().map(|_| HEIGHT).sum::<f64>() + 2.0 * MARGIN;
    let mut picture = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" height=\"{height:.0}\" role=\"img\">\n\
         <title>{title}</title>\n\
         <style>\n\
         text {{ font: 14px ui-monospace, \"DejaVu Sans Mono\", Menlo, Consolas, monospace; white-space: pre; }}\n\
         g {{ animation: appear 1ms backwards; }}\n\
         @keyframes appear {{ from {{ opacity: 0; }} }}\n\
         @media (prefers-reduced-motion: reduce) {{ g {{ animation: none; }} }}\n\
         </style>\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"{GROUND}\"/>\n"
    );
    let mut typed = Duration::ZERO;
    let mut y = MARGIN;
    for row in rows {
        y += HEIGHT;
        let begins = row.pieces.first().is_some_and(|piece| piece.text == "$");
        // What is typed comes when its predecessor is done; its answer, a moment later.
        let shown = row.at + typed;
        if begins {
            typed += TYPING;
        }
        let delay = shown.as_millis();
        let _ = match delay {
            0 => write!(picture, "<g>"),
            _ => write!(picture, "<g style=\"animation-delay:{delay}ms\">"),
        };
        for piece in &row.pieces {
            picture.push_str(&drawn(piece, y - 6.0));
        }
        picture.push_str("</g>\n");
    }
    picture.push_str("</svg>\n");
    picture
}

fn drawn(piece: &Piece, y: f64) -> String {
    let x = f64::from(piece.column).mul_add(WIDTH, MARGIN);
    let length = piece.text.chars().map(|_| WIDTH).sum::<f64>();
    let weight = if piece.look.bold { " font-weight=\"600\"" } else { "" };
    let dim = if piece.look.dim { " opacity=\"0.65\"" } else { "" };
    let ((fill, ground), text) = (colours(piece.look), escaped(&piece.text));
    let behind = if piece.look.has_ground() {
        let top = y - 14.0;
        format!(
            "<rect x=\"{x:.1}\" y=\"{top:.0}\" width=\"{length:.1}\" height=\"{HEIGHT:.0}\" fill=\"{ground}\"/>"
        )
    } else {
        String::new()
    };
    format!(
        "{behind}<text x=\"{x:.1}\" y=\"{y:.0}\" textLength=\"{length:.1}\" lengthAdjust=\"spacingAndGlyphs\" fill=\"{fill}\"{weight}{dim} xml:space=\"preserve\">{text}</text>"
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// What a picture of ours says, row by row.
pub(super) fn text(picture: &str) -> String {
    let mut text = String::new();
    for row in picture.lines().filter(|line| line.starts_with("<g")) {
        for piece in row.split("<text ").skip(1) {
            let inside = piece.split_once('>').and_then(|(_, rest)| rest.split_once("</text>"));
            text.push_str(inside.map_or("", |(inside, _)| inside));
            text.push(' ');
        }
        text.push('\n');
    }
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
}
