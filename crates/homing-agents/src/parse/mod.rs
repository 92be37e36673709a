//! Parsers: what the lines of an agent mean. Each is a state machine that takes one line after the other and touches nothing else.
//!
//! Whatever is not a line that the parser knows is passed over: warnings between the lines, lines of a later release, the half of one. An
//! agent's word on a failure counts, whatever its exit code says; its last word counts.

mod lines;
mod pointers;
mod said;
mod stdout;
pub(crate) mod words;

use std::fmt;

use homing_model::agent::Driver;
use serde_json::Value;

pub use said::{Bounded, Said, is_session};

use crate::registry;
use lines::Lines;

/// Understands the JSON lines of one agent.
pub trait Parse: fmt::Debug + Send {
    /// Takes in one line.
    fn read(&mut self, line: &Value, said: &mut Said);
}

/// How stdout is taken.
#[derive(Debug)]
enum Stdout {
    Lines(Lines, Box<dyn Parse>),
    Text(stdout::Text),
}

/// Understands what one agent prints.
#[derive(Debug)]
pub struct Listening {
    stdout: Stdout,
    stderr: words::LastLine,
    said: Said,
}

impl Listening {
    /// Reads what this driver prints.
    #[must_use]
    pub fn new(driver: &Driver) -> Self {
        let lines = |parser| Stdout::Lines(Lines::default(), parser);
        let stdout = match driver {
            Driver::Agent(name) => match registry::find(name.as_str()) {
                Some(agent) => lines(agent.parser()),
                None => Stdout::Text(stdout::Text::default()),
            },
            Driver::Lines { answer, error, session } => {
                lines(Box::new(pointers::Pointers::new(answer, error.as_deref(), session.as_deref())))
            }
            Driver::Stdout => Stdout::Text(stdout::Text::default()),
        };
        Self { stdout, stderr: words::LastLine::default(), said: Said::default() }
    }

    /// More of its stdout.
    pub fn stdout(&mut self, bytes: &[u8]) {
        let Self { stdout, said, .. } = self;
        match stdout {
            Stdout::Lines(lines, machine) => {
                lines.push(bytes, |line| understand(line, machine.as_mut(), said));
            }
            Stdout::Text(text) => text.push(bytes, said),
        }
    }

    /// More of its stderr: its last line is what a failure without a word is told by.
    pub fn stderr(&mut self, bytes: &[u8]) {
        self.stderr.push(bytes);
    }

    /// So many bytes were not kept: a line that they cut ends there.
    pub fn gap(&mut self, missing: u64) {
        let Self { stdout, said, .. } = self;
        match stdout {
            Stdout::Lines(lines, machine) => lines.finish(|line| understand(line, machine.as_mut(), said)),
            Stdout::Text(text) => text.gap(missing, said),
        }
    }

    /// What it came to so far.
    #[must_use]
    pub const fn said(&self) -> &Said {
        &self.said
    }

    /// Nothing more comes. A last line without a line feed counts if it is whole.
    #[must_use]
    pub fn finish(mut self) -> Said {
        let Self { stdout, said, .. } = &mut self;
        match stdout {
            Stdout::Lines(lines, machine) => lines.finish(|line| understand(line, machine.as_mut(), said)),
            Stdout::Text(text) => text.finish(said),
        }
        self.said.complaint = self.stderr.finish();
        self.said
    }
}

/// Hands a line to its driver, if it is an object of JSON.
fn understand(line: &[u8], machine: &mut dyn Parse, said: &mut Said) {
    if line.trim_ascii_start().first() != Some(&b'{') {
        return;
    }
    // Bytes that are not UTF-8 spoil a character, and not the line that it is in.
    let text = String::from_utf8_lossy(line);
    if let Ok(value) = serde_json::from_str(&text) {
        machine.read(&value, said);
    }
}

#[cfg(test)]
mod tests;
