//! A line that is being typed.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::glyph::clean;

/// The longest text that can be typed.
const MOST: usize = 200;

/// What it is typed for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To show only tasks that match; what was there before comes back if it is given up.
    Filter,
    /// To find it in the output.
    Search,
}

/// The line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) purpose: Purpose,
    pub(crate) text: String,
    /// What holds again if it is given up.
    pub(crate) before: String,
}

/// What a key did to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Typed {
    Changed,
    Done,
    GivenUp,
    Nothing,
}

impl Entry {
    pub(crate) fn new(purpose: Purpose, before: &str) -> Self {
        Self { purpose, text: String::new(), before: before.to_owned() }
    }

    pub(crate) fn key(&mut self, key: KeyEvent) -> Typed {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Enter => Typed::Done,
            KeyCode::Esc => Typed::GivenUp,
            KeyCode::Char('u') if control => {
                self.text.clear();
                Typed::Changed
            }
            KeyCode::Char('h') if control => self.back(),
            KeyCode::Backspace => self.back(),
            KeyCode::Char(c) if !control && !key.modifiers.contains(KeyModifiers::ALT) => {
                self.paste(c.encode_utf8(&mut [0; 4]))
            }
            _ => Typed::Nothing,
        }
    }

    pub(crate) fn paste(&mut self, text: &str) -> Typed {
        let room = MOST.saturating_sub(self.text.chars().count());
        self.text = clean(&format!("{}{}", self.text, text.chars().take(room).collect::<String>()));
        Typed::Changed
    }

    fn back(&mut self) -> Typed {
        // With nothing left to take away, it was meant to leave.
        if self.text.pop().is_some() { Typed::Changed } else { Typed::GivenUp }
    }
}
