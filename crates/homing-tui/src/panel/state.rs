//! What the panel knows.

use homing_model::Timestamp;
use ratatui::layout::Rect;

use super::areas::Areas;
use super::entry::Entry;
use super::focus::Focus;
use super::pager::Pager;
use super::roster::{Roster, Shown};
use crate::detail::Detail;
use crate::message::{Abilities, Effect};
use crate::output::Scrollback;
use crate::snapshot::Link;
use crate::theme::Theme;

/// How a panel is to be.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Options {
    /// How it looks.
    pub theme: Theme,
    /// What it offers.
    pub abilities: Abilities,
    /// Whom it speaks for: what is another's is touched only after a question.
    pub owner: String,
    /// Whether `q` leaves. Another program's panel may not.
    pub may_quit: bool,
}

/// What is shown of the chosen task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Pane {
    #[default]
    Output,
    Detail,
}

/// Something that is done only if a person says yes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Question {
    pub(crate) text: String,
    pub(crate) effect: Effect,
}

/// What lies over the rest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Overlay {
    /// The keys, from this line on.
    Help(usize),
    Question(Question),
}

/// The panel: all that it shows, and what a person does with it.
#[derive(Debug, Clone)]
pub struct Panel {
    pub(crate) options: Options,
    pub(crate) now: Timestamp,
    pub(crate) link: Link,
    pub(crate) roster: Roster,
    pub(crate) detail: Detail,
    pub(crate) output_of: Option<String>,
    pub(crate) output: Scrollback,
    pub(crate) focus: Focus,
    pub(crate) pane: Pane,
    /// Whether one task has the whole place.
    pub(crate) zoomed: bool,
    pub(crate) output_pager: Pager,
    pub(crate) detail_pager: Pager,
    /// What is searched for in the output.
    pub(crate) search: String,
    pub(crate) entry: Option<Entry>,
    pub(crate) overlay: Option<Overlay>,
    /// Words for whoever looks, and when they were said.
    pub(crate) said: Option<(String, Timestamp)>,
    /// Where everything was drawn last.
    pub(crate) areas: Areas,
}

impl Panel {
    /// An empty one.
    #[must_use]
    pub fn new(options: Options) -> Self {
        Self {
            options,
            now: Timestamp::default(),
            link: Link::default(),
            roster: Roster::default(),
            detail: Detail::default(),
            output_of: None,
            output: Scrollback::default(),
            focus: Focus::default(),
            pane: Pane::default(),
            zoomed: false,
            output_pager: Pager::following(),
            detail_pager: Pager::at_start(),
            search: String::new(),
            entry: None,
            overlay: None,
            said: None,
            areas: Areas::default(),
        }
    }

    /// The id of the task that has the focus.
    #[must_use]
    pub fn chosen(&self) -> Option<&str> {
        self.roster.chosen_id()
    }

    /// Looks only at tasks with all these words in them.
    pub fn set_filter(&mut self, words: &str) {
        self.roster.filter = crate::glyph::clean(words);
        self.roster.arrange(self.now);
    }

    pub(crate) fn set_shown(&mut self, shown: Shown) {
        self.roster.status = shown;
        self.roster.arrange(self.now);
    }

    /// Finds the places for everything, and brings every window into range.
    pub(crate) fn place(&mut self, area: Rect) {
        self.areas = Areas::of(area, self.zoomed);
        if self.areas.pane.height == 0 && !self.zoomed {
            self.focus = Focus::List;
        }
        self.roster.settle(usize::from(self.areas.list.height));
        let (height, width) = (usize::from(self.areas.pane.height), usize::from(self.areas.pane.width));
        let room = width.saturating_sub(crate::view::GUTTER);
        self.output_pager.settle(self.output.len(), height, usize::MAX, room);
        let widest = self.output.widest(self.output_pager.top, height);
        self.output_pager.settle(self.output.len(), height, widest, room);
        let lines = crate::view::detail_lines(&self.detail, width).len();
        self.detail_pager.settle(lines, height, 0, width);
        if let Some(Overlay::Help(top)) = &mut self.overlay {
            let lines = crate::view::help_lines(&self.options, usize::from(self.areas.whole.width));
            *top = (*top).min(lines.len().saturating_sub(1));
        }
    }

    pub(crate) fn pager(&mut self) -> &mut Pager {
        match self.pane {
            Pane::Output => &mut self.output_pager,
            Pane::Detail => &mut self.detail_pager,
        }
    }

    /// Whether every part of it is in range, as of the last drawing: the focus on a task that is shown, every window on lines that there are. It
    /// always is; for tests.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.roster.is_sound(usize::from(self.areas.list.height))
            && self.output_pager.is_sound()
            && self.detail_pager.is_sound()
            && (self.zoomed || self.areas.pane.height > 0 || self.focus == Focus::List)
    }
}
