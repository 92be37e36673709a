//! A task as a line of the list shows it: plain data, which any program can make.

use homing_model::{Kind, Status, Task, Timestamp};

use crate::glyph::clean;

/// How long a task that has ended stays among those that run.
const RECENT: u64 = 60_000;

/// One task.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Its id, which no other has.
    pub id: String,
    /// What people call it.
    pub name: Option<String>,
    /// What runs, or what it is for.
    pub command: String,
    /// Whose it is.
    pub owner: String,
    /// Where it is in its life.
    pub status: Status,
    /// How it ended, or where it is, in a line.
    pub sentence: String,
    /// When it was accepted.
    pub created_at: Timestamp,
    /// When it began.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// How long it ran.
    pub duration_ms: Option<u64>,
    /// How far it is, in percent.
    pub percent: Option<f64>,
    /// What it says of how far it is.
    pub progress: Option<String>,
    /// Whether it seems to wait for somebody to type.
    pub waiting_for_input: bool,
    /// Whether it has a terminal or an open input.
    pub accepts_input: bool,
    /// Whether it has a terminal to attach to.
    pub has_terminal: bool,
    /// The last line that it printed.
    pub last_line: String,
}

impl Row {
    /// A task of which only this is known.
    #[must_use]
    pub fn new(id: &str, command: &str, status: Status, created_at: Timestamp) -> Self {
        Self {
            id: clean(id),
            name: None,
            command: clean(command),
            owner: String::new(),
            status,
            sentence: status.to_string(),
            created_at,
            started_at: None,
            ended_at: None,
            duration_ms: None,
            percent: None,
            progress: None,
            waiting_for_input: false,
            accepts_input: false,
            has_terminal: false,
            last_line: String::new(),
        }
    }

    /// Makes all its texts fit for a cell. What [`From<&Task>`] makes is.
    pub(crate) fn cleaned(mut self) -> Self {
        for text in
            [&mut self.id, &mut self.command, &mut self.owner, &mut self.sentence, &mut self.last_line]
        {
            *text = clean(text);
        }
        self.name = self.name.as_deref().map(clean);
        self.progress = self.progress.as_deref().map(clean);
        self
    }

    /// Name and command on one line.
    pub(crate) fn title(&self) -> String {
        match &self.name {
            Some(name) if *name != self.command => format!("{name}: {}", self.command),
            Some(_) | None => self.command.clone(),
        }
    }

    /// Whether it runs or waits, or has just ended: what moves stays in sight.
    pub(crate) fn is_recent(&self, now: Timestamp) -> bool {
        !self.status.is_terminal() || self.ended_at.is_some_and(|at| now.millis_since(at) < RECENT)
    }

    /// When it is no longer recent, counted from now.
    pub(crate) fn recent_for(&self, now: Timestamp) -> Option<u64> {
        let at = self.ended_at.filter(|_| self.status.is_terminal())?;
        RECENT.checked_sub(now.millis_since(at)).filter(|left| *left > 0)
    }

    /// How long it ran, or has been running.
    pub(crate) fn running_time(&self, now: Timestamp) -> Option<u64> {
        self.duration_ms.or_else(|| match self.ended_at {
            Some(_) => None,
            None => self.started_at.map(|at| now.millis_since(at)),
        })
    }

    /// Whether all words of a filter, in lower case, are somewhere in it.
    pub(crate) fn matches(&self, words: &[String]) -> bool {
        if words.is_empty() {
            return true;
        }
        let text = format!(
            "{} {} {} {} {} {}",
            self.id,
            self.name.as_deref().unwrap_or_default(),
            self.command,
            self.owner,
            self.status,
            self.last_line
        );
        let text = text.to_lowercase();
        words.iter().all(|word| text.contains(word.as_str()))
    }
}

impl From<&Task> for Row {
    fn from(task: &Task) -> Self {
        let what = match &task.description {
            Some(description) if task.kind == Kind::External => description,
            Some(_) | None => &task.command,
        };
        Self {
            name: task.name.as_deref().map(clean),
            owner: clean(&task.owner),
            sentence: clean(&task.sentence()),
            started_at: task.started_at,
            ended_at: task.ended_at,
            duration_ms: task.duration_ms,
            percent: task.progress.as_ref().and_then(|progress| progress.percent),
            progress: task.progress.as_ref().and_then(|progress| progress.text.as_deref()).map(clean),
            waiting_for_input: task.waiting_for_input,
            accepts_input: task.accepts_input,
            has_terminal: task.pty,
            ..Self::new(task.id.as_str(), what, task.status, task.created_at)
        }
    }
}
