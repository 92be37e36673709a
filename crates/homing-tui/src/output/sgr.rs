//! Colours: `ESC [ … m` to a style. Everything has a bound, and what is not known changes nothing.

use ratatui::style::{Color, Modifier, Style};

/// Numbers that are read of one sequence.
const MOST: usize = 32;

/// What the sequence with these parameters (`1;38;5;9`) makes of a style.
pub(super) fn apply(style: Style, parameters: &str) -> Style {
    let mut numbers = [0_u16; MOST];
    let mut count = 0;
    for part in parameters.split([';', ':']).take(MOST) {
        // An absent number is 0; one that is too large means nothing.
        numbers[count] = if part.is_empty() { 0 } else { part.parse().unwrap_or(u16::MAX) };
        count += 1;
    }
    let mut numbers = numbers.into_iter().take(count);
    let mut style = style;
    while let Some(number) = numbers.next() {
        style = match number {
            0 => Style::new(),
            1 => style.add_modifier(Modifier::BOLD),
            2 => style.add_modifier(Modifier::DIM),
            3 => style.add_modifier(Modifier::ITALIC),
            4 | 21 => style.add_modifier(Modifier::UNDERLINED),
            7 => style.add_modifier(Modifier::REVERSED),
            9 => style.add_modifier(Modifier::CROSSED_OUT),
            22 => without(style, Modifier::BOLD | Modifier::DIM),
            23 => without(style, Modifier::ITALIC),
            24 => without(style, Modifier::UNDERLINED),
            27 => without(style, Modifier::REVERSED),
            29 => without(style, Modifier::CROSSED_OUT),
            30..=37 => style.fg(basic(number - 30)),
            90..=97 => style.fg(bright(number - 90)),
            40..=47 => style.bg(basic(number - 40)),
            100..=107 => style.bg(bright(number - 100)),
            39 => Style { fg: None, ..style },
            49 => Style { bg: None, ..style },
            38 => chosen(&mut numbers).map_or(style, |colour| style.fg(colour)),
            48 => chosen(&mut numbers).map_or(style, |colour| style.bg(colour)),
            // Of the colour of lines only the numbers are taken, which would mean something else.
            58 => {
                let _ = chosen(&mut numbers);
                style
            }
            // Blinking and hidden text among them: neither helps whoever reads.
            _ => style,
        };
    }
    style
}

fn without(style: Style, modifier: Modifier) -> Style {
    Style { add_modifier: style.add_modifier - modifier, ..style }
}

/// `5;N` or `2;R;G;B`.
fn chosen(numbers: &mut impl Iterator<Item = u16>) -> Option<Color> {
    let byte = |numbers: &mut dyn Iterator<Item = u16>| u8::try_from(numbers.next()?).ok();
    match numbers.next()? {
        5 => byte(numbers).map(Color::Indexed),
        2 => {
            let (red, green, blue) = (byte(numbers), byte(numbers), byte(numbers));
            Some(Color::Rgb(red?, green?, blue?))
        }
        _ => None,
    }
}

const fn basic(number: u16) -> Color {
    match number {
        0 => Color::Black,
        1 => Color::Red,
        2 => Color::Green,
        3 => Color::Yellow,
        4 => Color::Blue,
        5 => Color::Magenta,
        6 => Color::Cyan,
        _ => Color::Gray,
    }
}

const fn bright(number: u16) -> Color {
    match number {
        0 => Color::DarkGray,
        1 => Color::LightRed,
        2 => Color::LightGreen,
        3 => Color::LightYellow,
        4 => Color::LightBlue,
        5 => Color::LightMagenta,
        6 => Color::LightCyan,
        _ => Color::White,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_and_attributes_come_and_go() {
        let plain = Style::new();
        assert_eq!(apply(plain, "31"), plain.fg(Color::Red));
        assert_eq!(apply(plain, "1;38;5;200;48;2;1;2;3"), {
            plain.fg(Color::Indexed(200)).bg(Color::Rgb(1, 2, 3)).add_modifier(Modifier::BOLD)
        });
        let bold = plain.add_modifier(Modifier::BOLD);
        assert_eq!(apply(bold, "22"), plain);
        assert_eq!(apply(bold.fg(Color::Red), "39"), bold);
        assert_eq!(apply(bold, ""), plain);
        assert_eq!(apply(bold, "0"), plain);
    }

    #[test]
    fn nonsense_changes_nothing_and_ends() {
        let plain = Style::new();
        for text in ["38", "38;5", "38;5;999", "38;2;1;2", "99999999", "5;8;73", "58;5;31", "38;9;9"] {
            assert_eq!(apply(plain, text).fg, None, "{text}");
        }
        let _ = apply(plain, &"1;".repeat(100_000));
    }
}
