//! Any command: what it prints on stdout is the answer, without what a terminal would obey.

use homing_model::sanitize::{Colour, Sanitizer};

use super::said::{Bounded, Said};

/// So much of an output that is long enough already is looked at, in bytes.
const SHOWN: usize = 1024;

#[derive(Debug)]
pub(crate) struct Text {
    filter: Sanitizer,
}

impl Default for Text {
    fn default() -> Self {
        Self { filter: Sanitizer::new(Colour::Strip) }
    }
}

impl Text {
    pub(crate) fn push(&mut self, bytes: &[u8], said: &mut Said) {
        // What is beyond the longest answer is counted, and looked at only for what it is at.
        if said.answer.as_ref().is_some_and(Bounded::is_full) {
            let mut last = Sanitizer::new(Colour::Strip);
            show(&last.push(bytes.get(bytes.len().saturating_sub(SHOWN)..).unwrap_or_default()), said);
            return said.answer.get_or_insert_default().count(bytes.len());
        }
        add(&self.filter.push(bytes), said);
    }

    pub(crate) fn gap(&mut self, missing: u64, said: &mut Said) {
        add(&format!("\n[{missing} bytes were not kept]\n"), said);
    }

    pub(crate) fn finish(&mut self, said: &mut Said) {
        add(&self.filter.finish(), said);
        // As a shell takes what a command prints: without the line feeds at its end.
        if let Some(answer) = &mut said.answer
            && !answer.is_full()
        {
            answer.text.truncate(answer.text.trim_end().len());
            answer.whole = answer.text.len();
        }
    }
}

fn add(text: &str, said: &mut Said) {
    if text.is_empty() {
        return;
    }
    said.more(text);
    show(text, said);
}

fn show(text: &str, said: &mut Said) {
    if let Some(last) = text.lines().rfind(|line| !line.trim().is_empty()) {
        said.doing(last);
    }
}
