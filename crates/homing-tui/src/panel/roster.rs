//! The tasks, in order, those that a filter lets through, and which of them has the focus.
//!
//! What lives, or ended within the last minute, comes first, newest first; then the rest, newest first. So a task that ends does not run away from under
//! the eyes. Until somebody moves the focus it stays at the top, on the newest; then it stays with its task, and where that vanishes, at its place.

use homing_model::{Status, Timestamp};

use crate::row::Row;

/// Ended tasks that are kept: the oldest beyond them are left out, so that a panel can stay open for weeks.
const ENDED: usize = 1_000;

/// Which tasks, by where they are in their lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Shown {
    #[default]
    All,
    Live,
    Ended,
    /// Ended otherwise than well.
    Failed,
}

impl Shown {
    pub(crate) const fn next(self) -> Self {
        match self {
            Self::All => Self::Live,
            Self::Live => Self::Ended,
            Self::Ended => Self::Failed,
            Self::Failed => Self::All,
        }
    }

    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Live => "live",
            Self::Ended => "ended",
            Self::Failed => "failed",
        }
    }

    fn shows(self, status: Status) -> bool {
        match self {
            Self::All => true,
            Self::Live => !status.is_terminal(),
            Self::Ended => status.is_terminal(),
            Self::Failed => status.is_terminal() && status != Status::Succeeded,
        }
    }
}

/// How many there are of each sort.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Tally {
    pub(crate) queued: usize,
    pub(crate) running: usize,
    pub(crate) ended: usize,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Roster {
    rows: Vec<Row>,
    /// Places in `rows` of what is shown, in order.
    shown: Vec<usize>,
    /// Place in `shown`.
    cursor: usize,
    /// The task there.
    chosen: Option<String>,
    /// Whether somebody moved the focus.
    pinned: bool,
    /// When the order changes by itself: what has just ended is no longer recent then.
    turns_at: Option<Timestamp>,
    /// The first place that is drawn.
    pub(crate) top: usize,
    pub(crate) filter: String,
    pub(crate) status: Shown,
}

impl Roster {
    pub(crate) fn replace(&mut self, rows: Vec<Row>, now: Timestamp) {
        let mut rows: Vec<Row> = rows.into_iter().map(Row::cleaned).collect();
        for row in rows.iter_mut().filter(|row| row.last_line.is_empty()) {
            if let Some(known) = self.rows.iter_mut().find(|known| known.id == row.id) {
                row.last_line = std::mem::take(&mut known.last_line);
            }
        }
        rows.sort_by(|one, other| one.id.cmp(&other.id));
        rows.dedup_by(|one, other| one.id == other.id);
        self.rows = rows;
        self.arrange(now);
    }

    pub(crate) fn put(&mut self, row: Row, now: Timestamp) {
        let row = row.cleaned();
        match self.rows.iter_mut().find(|known| known.id == row.id) {
            Some(known) => {
                let last_line = std::mem::take(&mut known.last_line);
                *known = row;
                if known.last_line.is_empty() {
                    known.last_line = last_line;
                }
            }
            None => self.rows.push(row),
        }
        self.arrange(now);
    }

    pub(crate) fn remove(&mut self, id: &str, now: Timestamp) {
        self.rows.retain(|row| row.id != id);
        self.arrange(now);
    }

    pub(crate) fn last_line(&mut self, id: &str, line: &str) {
        if let Some(row) = self.rows.iter_mut().find(|row| row.id == id) {
            row.last_line = crate::glyph::clean(line);
        }
    }

    /// It is this late. Nothing is ordered anew before something in the order depends on it.
    pub(crate) fn tick(&mut self, now: Timestamp) {
        if self.turns_at.is_some_and(|at| now >= at) {
            self.arrange(now);
        }
    }

    /// Orders and filters anew, and finds the focus again.
    pub(crate) fn arrange(&mut self, now: Timestamp) {
        let key = |row: &Row| (!row.is_recent(now), std::cmp::Reverse(row.created_at.as_millis()));
        if self.rows.iter().filter(|row| row.status.is_terminal()).count() > ENDED {
            self.rows.sort_by_key(|row| (row.status.is_terminal(), std::cmp::Reverse(row.ended_at)));
            let live = self.rows.iter().filter(|row| !row.status.is_terminal()).count();
            self.rows.truncate(live + ENDED);
        }
        let mut order: Vec<usize> = (0..self.rows.len()).collect();
        order.sort_by(|one, other| {
            let (one, other) = (&self.rows[*one], &self.rows[*other]);
            key(one).cmp(&key(other)).then_with(|| one.id.cmp(&other.id))
        });
        let words: Vec<String> = self.filter.to_lowercase().split_whitespace().map(str::to_owned).collect();
        order.retain(|place| {
            let row = &self.rows[*place];
            self.status.shows(row.status) && row.matches(&words)
        });
        self.shown = order;
        let left = self.rows.iter().filter_map(|row| row.recent_for(now)).min();
        self.turns_at = left.map(|left| now.after_millis(left));
        let found = self.chosen.as_ref().filter(|_| self.pinned);
        let found = found.and_then(|id| self.shown.iter().position(|place| self.rows[*place].id == *id));
        let cursor = if self.pinned { found.unwrap_or(self.cursor) } else { 0 };
        self.choose(cursor);
    }

    fn choose(&mut self, cursor: usize) {
        self.cursor = cursor.min(self.shown.len().saturating_sub(1));
        self.chosen = self.shown.get(self.cursor).map(|place| self.rows[*place].id.clone());
    }

    /// Moves the focus by so many places, round the ends if it is one.
    pub(crate) fn step(&mut self, by: isize) {
        let count = self.shown.len();
        if count == 0 {
            return;
        }
        self.pinned = true;
        let next = match (by, self.cursor) {
            (-1, 0) => count - 1,
            (1, cursor) if cursor + 1 == count => 0,
            (by, cursor) => cursor.saturating_add_signed(by).min(count - 1),
        };
        self.choose(next);
    }

    /// To the newest, and stays there.
    pub(crate) fn home(&mut self) {
        self.pinned = false;
        self.choose(0);
    }

    pub(crate) fn end(&mut self) {
        self.pinned = true;
        self.choose(usize::MAX);
    }

    /// To the task that is drawn so many lines below the first; whether there is one.
    pub(crate) fn click(&mut self, line: usize) -> bool {
        let place = self.top + line;
        if place >= self.shown.len() {
            return false;
        }
        self.pinned = true;
        self.choose(place);
        true
    }

    /// Moves what is drawn so that the focus is in it.
    pub(crate) fn settle(&mut self, height: usize) {
        let last = self.shown.len().saturating_sub(height.max(1));
        self.top = self.top.min(self.cursor).min(last);
        if height > 0 && self.cursor >= self.top + height {
            self.top = self.cursor + 1 - height;
        }
    }

    pub(crate) fn chosen(&self) -> Option<&Row> {
        self.shown.get(self.cursor).map(|place| &self.rows[*place])
    }

    pub(crate) fn chosen_id(&self) -> Option<&str> {
        self.chosen.as_deref()
    }

    /// Place of the focus among what is shown.
    pub(crate) const fn cursor(&self) -> usize {
        self.cursor
    }

    /// How many are shown.
    pub(crate) fn len(&self) -> usize {
        self.shown.len()
    }

    /// How many there are.
    pub(crate) fn all(&self) -> usize {
        self.rows.len()
    }

    /// Those in a window of this height, with their places.
    pub(crate) fn window(&self, height: usize) -> impl Iterator<Item = (usize, &Row)> {
        let places = self.shown.iter().enumerate().skip(self.top).take(height);
        places.map(|(place, index)| (place, &self.rows[*index]))
    }

    /// When the order changes by itself.
    pub(crate) fn next_change(&self, now: Timestamp) -> Option<u64> {
        self.turns_at.map(|at| at.millis_since(now))
    }

    pub(crate) fn tally(&self) -> Tally {
        let mut tally = Tally::default();
        for row in &self.rows {
            match row.status {
                Status::Queued => tally.queued += 1,
                status if status.is_terminal() => tally.ended += 1,
                _ => tally.running += 1,
            }
        }
        tally
    }

    /// Whether the focus is on a task that is shown, if one is, and drawn.
    pub(crate) fn is_sound(&self, height: usize) -> bool {
        let chosen = self.chosen().map(|row| row.id.as_str());
        let drawn =
            self.shown.is_empty() || height == 0 || (self.top..self.top + height).contains(&self.cursor);
        chosen == self.chosen_id() && chosen.is_some() != self.shown.is_empty() && drawn
    }
}
