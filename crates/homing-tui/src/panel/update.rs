//! What each message changes.

use homing_model::Timestamp;

use super::entry::Purpose;
use super::keys;
use super::mouse;
use super::pager::Pager;
use super::state::Panel;
use crate::detail::Detail;
use crate::glyph::clean;
use crate::message::{Effect, Message};
use crate::output::Scrollback;
use crate::snapshot::Snapshot;

/// How long words for whoever looks stay.
const SAID: u64 = 6_000;

impl Panel {
    /// Takes a message in; what has to be done besides is the answer.
    pub fn update(&mut self, message: Message) -> Vec<Effect> {
        match message {
            Message::Key(key) => return keys::press(self, key),
            Message::Mouse(event) => mouse::use_it(self, event),
            Message::Paste(text) => self.paste(&text),
            Message::Now(now) => self.tick(now),
            Message::Snapshot(snapshot) => self.replace(*snapshot),
            Message::Rows(rows) => self.roster.replace(rows, self.now),
            Message::Row(row) => self.roster.put(*row, self.now),
            Message::Gone(id) => self.roster.remove(&id, self.now),
            Message::LastLine { task, line } => self.roster.last_line(&task, &line),
            Message::Detail(detail) => self.take_detail(detail),
            Message::OutputBegins { task } => self.begin_output(task, Scrollback::default()),
            Message::Output { task, pieces } => {
                if self.output_of.as_ref() == Some(&task) {
                    let before = self.output.dropped();
                    for piece in &pieces {
                        self.output.push(piece);
                    }
                    let dropped = usize::try_from(self.output.dropped() - before).unwrap_or(usize::MAX);
                    self.output_pager.dropped(dropped);
                }
            }
            Message::Remark { task, text } => {
                if self.output_of.as_ref() == Some(&task) {
                    self.output.remark(&text);
                }
            }
            Message::Link(link) => self.link = link,
            Message::Say(text) => self.say(&text),
        }
        Vec::new()
    }

    /// In how many milliseconds it looks otherwise by itself; never if nothing in it depends on the time.
    #[must_use]
    pub fn next_change(&self) -> Option<u64> {
        let said = self.said.as_ref().and_then(|(_, at)| SAID.checked_sub(self.now.millis_since(*at)));
        let height = usize::from(self.areas.list.height);
        let ages = crate::view::next_age(self, height);
        [said, ages, self.roster.next_change(self.now)].into_iter().flatten().min().map(|left| left.max(1))
    }

    pub(crate) fn say(&mut self, text: &str) {
        self.said = Some((clean(text), self.now));
    }

    fn tick(&mut self, now: Timestamp) {
        self.now = now;
        if self.said.as_ref().is_some_and(|(_, at)| now.millis_since(*at) >= SAID) {
            self.said = None;
        }
        self.roster.tick(now);
    }

    fn paste(&mut self, text: &str) {
        if let Some(entry) = &mut self.entry {
            let _ = entry.paste(text);
            self.typed();
        }
    }

    /// What is typed holds at once.
    pub(crate) fn typed(&mut self) {
        let Some(entry) = &self.entry else { return };
        let text = entry.text.clone();
        match entry.purpose {
            Purpose::Filter => self.set_filter(&text),
            Purpose::Search => (self.search, self.output_pager.mark) = (text, None),
        }
    }

    fn replace(&mut self, snapshot: Snapshot) {
        self.roster.replace(snapshot.rows, self.now);
        self.take_detail(snapshot.detail);
        if let Some(task) = snapshot.output_of {
            if self.output_of.as_ref() == Some(&task) {
                self.output = snapshot.output;
            } else {
                self.begin_output(task, snapshot.output);
            }
        } else {
            (self.output_of, self.output) = (None, Scrollback::default());
        }
        self.link = snapshot.link;
    }

    fn take_detail(&mut self, detail: Detail) {
        if self.detail.task != detail.task {
            self.detail_pager = Pager::at_start();
        }
        self.detail = detail;
    }

    fn begin_output(&mut self, task: String, output: Scrollback) {
        // The same task again is the same place again: it was only read anew.
        if self.output_of.as_ref() != Some(&task) {
            self.output_pager = Pager::following();
        }
        (self.output_of, self.output) = (Some(task), output);
    }
}
