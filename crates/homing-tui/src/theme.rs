//! Colours that can be read on a dark ground, on a light one, or not at all.

use homing_model::Status;
use ratatui::style::{Color, Modifier, Style};

/// What the terminal's ground is like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Background {
    /// Bright letters on it.
    #[default]
    Dark,
    /// Dark letters on it.
    Light,
}

impl Background {
    /// What `COLORFGBG` says, which some terminals set: `15;0`, or with something between; the last number is the ground.
    #[must_use]
    pub fn from_colorfgbg(text: &str) -> Option<Self> {
        let ground: u8 = text.rsplit(';').next()?.trim().parse().ok()?;
        Some(if matches!(ground, 7 | 9..=15) { Self::Light } else { Self::Dark })
    }
}

/// How things look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Theme {
    /// The ground.
    pub background: Background,
    /// Whether there are colours (`NO_COLOR`).
    pub colour: bool,
    /// Whether symbols beyond ASCII can be expected to show.
    pub symbols: bool,
}

impl Default for Theme {
    fn default() -> Self {
        Self { background: Background::Dark, colour: true, symbols: true }
    }
}

/// What a text is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    Plain,
    Strong,
    Dim,
    Good,
    Bad,
    Busy,
    Caution,
    Bar,
    Focus,
    /// The line that would have the focus if the list had it.
    Chosen,
    Found,
}

impl Theme {
    pub(crate) fn style(self, tone: Tone) -> Style {
        let light = self.background == Background::Light;
        let plain = Style::new();
        let colour = |dark: Color, on_light: Color| match (self.colour, light) {
            (false, _) => plain,
            (true, false) => plain.fg(dark),
            (true, true) => plain.fg(on_light),
        };
        match tone {
            Tone::Plain => plain,
            Tone::Strong => plain.add_modifier(Modifier::BOLD),
            Tone::Dim if self.colour => colour(Color::DarkGray, Color::Indexed(242)),
            Tone::Dim => plain.add_modifier(Modifier::DIM),
            Tone::Good => colour(Color::Green, Color::Indexed(28)),
            Tone::Bad => colour(Color::LightRed, Color::Indexed(124)),
            Tone::Busy => colour(Color::LightBlue, Color::Indexed(25)),
            Tone::Caution => colour(Color::Yellow, Color::Indexed(94)),
            Tone::Bar if self.colour && light => plain.fg(Color::Indexed(236)).bg(Color::Indexed(253)),
            Tone::Bar if self.colour => plain.fg(Color::Indexed(252)).bg(Color::Indexed(237)),
            Tone::Bar => plain.add_modifier(Modifier::REVERSED),
            // One colour for the whole line: what was dim would be dim on dim.
            Tone::Focus => plain.fg(Color::Reset).bg(Color::Reset).add_modifier(Modifier::REVERSED),
            Tone::Chosen => plain.add_modifier(Modifier::BOLD | Modifier::UNDERLINED),
            Tone::Found => plain.add_modifier(Modifier::REVERSED | Modifier::BOLD),
        }
    }

    /// A style that a task chose, as it can be read here.
    pub(crate) fn of_task(self, style: Style) -> Style {
        if !self.colour {
            return Style { fg: None, bg: None, ..style };
        }
        if self.background == Background::Dark || style.bg.is_some() {
            return style;
        }
        match style.fg {
            Some(Color::White | Color::Gray) => Style { fg: None, ..style },
            Some(Color::Yellow | Color::LightYellow) => style.fg(Color::Indexed(94)),
            _ => style,
        }
    }

    /// The symbol of a status, and how it looks. Nothing is said by colour alone: the word stands beside it.
    pub(crate) fn status(self, status: Status) -> (&'static str, Tone) {
        let (symbol, ascii, tone) = match status {
            Status::Queued => ("○", ".", Tone::Dim),
            Status::Starting => ("◌", ".", Tone::Busy),
            Status::Running => ("●", "*", Tone::Busy),
            Status::Paused => ("‖", "=", Tone::Caution),
            Status::Stopping => ("◍", "~", Tone::Caution),
            Status::Succeeded => ("✓", "+", Tone::Good),
            Status::Failed | Status::StartFailed => ("✗", "x", Tone::Bad),
            Status::Stopped => ("■", "#", Tone::Caution),
            Status::TimedOut => ("⧗", "!", Tone::Bad),
            Status::Lost => ("?", "?", Tone::Bad),
        };
        (if self.symbols { symbol } else { ascii }, tone)
    }

    /// One of two ways to draw something.
    pub(crate) const fn pick(self, symbol: &'static str, ascii: &'static str) -> &'static str {
        if self.symbols { symbol } else { ascii }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ground_is_what_the_terminal_says() {
        for (text, ground) in [
            ("15;0", Some(Background::Dark)),
            ("0;15", Some(Background::Light)),
            ("0;default;15", Some(Background::Light)),
            ("12;8", Some(Background::Dark)),
            ("0;7", Some(Background::Light)),
            ("0;default", None),
            ("", None),
        ] {
            assert_eq!(Background::from_colorfgbg(text), ground, "{text}");
        }
    }

    #[test]
    fn without_colours_there_are_none() {
        let theme = Theme { colour: false, ..Theme::default() };
        let loud = Style::new().fg(Color::Red).bg(Color::Blue).add_modifier(Modifier::BOLD);
        assert_eq!(theme.of_task(loud), Style::new().add_modifier(Modifier::BOLD));
        for tone in [Tone::Good, Tone::Bad, Tone::Busy, Tone::Caution, Tone::Bar, Tone::Dim] {
            assert_eq!((theme.style(tone).fg, theme.style(tone).bg), (None, None), "{tone:?}");
        }
    }
}
