//! Drivers: what an agent's lines mean. Each is a state machine that takes one line after the other and touches nothing else.
//!
//! Whatever is not a line that the driver knows is passed over: warnings between the lines, lines of a later release, the half of one. An
//! agent's word on a failure counts, whatever its exit code says; its last word counts.

mod claude;
mod codex;
mod gemini;
mod opencode;
mod pointers;
mod said;
mod stdout;
mod words;

use homing_model::agent::Driver;
use serde_json::Value;

#[cfg(test)]
pub(crate) use said::Bounded;
pub(crate) use said::{Said, is_session};

use super::lines::Lines;

/// A driver at work.
#[derive(Debug)]
enum Machine {
    Claude(claude::Claude),
    Codex(codex::Codex),
    Opencode(opencode::Opencode),
    Gemini(gemini::Gemini),
    Pointers(pointers::Pointers),
}

impl Machine {
    fn read(&mut self, line: &Value, said: &mut Said) {
        match self {
            Self::Claude(claude) => claude.read(line, said),
            Self::Codex(codex) => codex.read(line, said),
            Self::Opencode(opencode) => opencode.read(line, said),
            Self::Gemini(gemini) => gemini.read(line, said),
            Self::Pointers(pointers) => pointers.read(line, said),
        }
    }
}

/// How stdout is taken.
#[derive(Debug)]
enum Stdout {
    Lines(Lines, Machine),
    Text(stdout::Text),
}

/// Understands what one agent prints.
#[derive(Debug)]
pub(super) struct Listening {
    stdout: Stdout,
    stderr: words::LastLine,
    said: Said,
}

impl Listening {
    pub(super) fn new(driver: &Driver) -> Self {
        let machine = match driver {
            Driver::Claude => Machine::Claude(claude::Claude::default()),
            Driver::Codex => Machine::Codex(codex::Codex),
            Driver::Opencode => Machine::Opencode(opencode::Opencode::default()),
            Driver::Gemini => Machine::Gemini(gemini::Gemini::default()),
            Driver::Lines { answer, error, session } => {
                Machine::Pointers(pointers::Pointers::new(answer, error.as_deref(), session.as_deref()))
            }
            Driver::Stdout => {
                let stdout = Stdout::Text(stdout::Text::default());
                return Self { stdout, stderr: words::LastLine::default(), said: Said::default() };
            }
        };
        let stdout = Stdout::Lines(Lines::default(), machine);
        Self { stdout, stderr: words::LastLine::default(), said: Said::default() }
    }

    /// More of its stdout.
    pub(super) fn stdout(&mut self, bytes: &[u8]) {
        let Self { stdout, said, .. } = self;
        match stdout {
            Stdout::Lines(lines, machine) => lines.push(bytes, |line| understand(line, machine, said)),
            Stdout::Text(text) => text.push(bytes, said),
        }
    }

    /// More of its stderr: its last line is what a failure without a word is told by.
    pub(super) fn stderr(&mut self, bytes: &[u8]) {
        self.stderr.push(bytes);
    }

    /// So many bytes were not kept: a line that they cut ends there.
    pub(super) fn gap(&mut self, missing: u64) {
        let Self { stdout, said, .. } = self;
        match stdout {
            Stdout::Lines(lines, machine) => lines.finish(|line| understand(line, machine, said)),
            Stdout::Text(text) => text.gap(missing, said),
        }
    }

    /// What it came to so far.
    pub(super) const fn said(&self) -> &Said {
        &self.said
    }

    /// Nothing more comes. A last line without a line feed counts if it is whole.
    pub(super) fn finish(mut self) -> Said {
        let Self { stdout, said, .. } = &mut self;
        match stdout {
            Stdout::Lines(lines, machine) => lines.finish(|line| understand(line, machine, said)),
            Stdout::Text(text) => text.finish(said),
        }
        self.said.complaint = self.stderr.finish();
        self.said
    }
}

/// Hands a line to its driver, if it is an object of JSON.
fn understand(line: &[u8], machine: &mut Machine, said: &mut Said) {
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
