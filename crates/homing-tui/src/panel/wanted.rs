//! What a panel would like to know, as of its last drawing: the rest need not be asked for.

use super::state::{Pane, Panel};

/// A task in sight whose last line is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Glimpse {
    /// Which.
    pub task: String,
    /// Whether there may be more to come.
    pub live: bool,
}

/// What is in sight.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Wanted {
    /// The task whose output is shown.
    pub output: Option<String>,
    /// The task whose details are shown.
    pub detail: Option<String>,
    /// The tasks whose last lines are shown.
    pub glimpses: Vec<Glimpse>,
}

impl Panel {
    /// What is in sight.
    #[must_use]
    pub fn wanted(&self) -> Wanted {
        let chosen = self.chosen().filter(|_| self.areas.pane.height > 0 && self.areas.pane.width > 0);
        let chosen = chosen.map(str::to_owned);
        let (output, detail) = match self.pane {
            Pane::Output => (chosen, None),
            Pane::Detail => (None, chosen),
        };
        let room = crate::view::shows_last_lines(self.areas.list.width);
        let height = if room { usize::from(self.areas.list.height) } else { 0 };
        let rows = self.roster.window(height).map(|(_, row)| row);
        let glimpses = rows.map(|row| Glimpse { task: row.id.clone(), live: !row.status.is_terminal() });
        Wanted { output, detail, glimpses: glimpses.collect() }
    }
}
