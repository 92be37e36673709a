//! Everything about one task, as labelled lines.

use crate::glyph::clean;

/// One line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact {
    /// What it is about; empty if that is what the line before was about.
    pub label: String,
    /// What there is to say.
    pub text: String,
}

/// All of it, for one task.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Detail {
    /// Which task.
    pub task: String,
    /// In order.
    pub facts: Vec<Fact>,
}

impl Detail {
    /// Of a task, from pairs of label and text.
    pub fn new(task: &str, facts: impl IntoIterator<Item = (String, String)>) -> Self {
        let facts = facts.into_iter().map(|(label, text)| Fact { label: clean(&label), text: clean(&text) });
        Self { task: task.to_owned(), facts: facts.collect() }
    }
}
