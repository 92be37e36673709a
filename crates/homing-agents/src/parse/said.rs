//! What a stream came to.

use homing_model::agent::{Heard, Tokens};
use homing_model::answer;
use homing_model::sanitize;
use serde_json::Value;

/// So much of what it is at is shown, in characters.
const DOING: usize = 160;

/// A text that grows no longer than an answer may be; how long it would be is counted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Bounded {
    /// The text.
    pub text: String,
    /// Bytes in all.
    pub whole: usize,
}

impl Bounded {
    pub(crate) fn new(text: &str) -> Self {
        let mut bounded = Self::default();
        bounded.push(text);
        bounded
    }

    /// Whether something was left out.
    pub(crate) const fn is_full(&self) -> bool {
        self.whole > self.text.len()
    }

    /// So many bytes more were left out.
    pub(crate) const fn count(&mut self, bytes: usize) {
        self.whole += bytes;
    }

    pub(crate) fn push(&mut self, text: &str) {
        // Once something was left out nothing may follow it.
        if !self.is_full() {
            let room = answer::LONGEST.saturating_sub(self.text.len());
            self.text.push_str(homing_model::agent::head(text, room));
        }
        self.whole += text.len();
    }
}

/// What an agent said so far.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Said {
    /// Of itself.
    pub heard: Heard,
    /// The last message that is not an error.
    pub answer: Option<Bounded>,
    /// The failure that it reported, unless it took that back by going on.
    pub error: Option<String>,
    /// The last line of its stderr.
    pub complaint: Option<String>,
}

impl Said {
    /// A whole message: it is the answer until a later one is.
    pub(crate) fn message(&mut self, text: &str) {
        if !text.trim().is_empty() {
            self.answer = Some(Bounded::new(text));
            self.doing(text);
        }
    }

    /// More of the message that came last.
    pub(crate) fn more(&mut self, text: &str) {
        self.answer.get_or_insert_default().push(text);
    }

    /// It has a failure to report.
    pub(crate) fn fail(&mut self, why: &str) {
        let why = if why.trim().is_empty() { "the agent reported an error" } else { why.trim() };
        self.error = Some(homing_model::agent::head(why, answer::LONGEST).to_owned());
    }

    /// What it is at, by the first line of a text.
    pub(crate) fn doing(&mut self, text: &str) {
        let first = text.trim().lines().next().unwrap_or_default();
        let begin: String = first.chars().take(DOING + 1).collect();
        let mut line = sanitize::line(&begin);
        if let Some((cut, _)) = line.char_indices().nth(DOING) {
            line.truncate(cut);
            line.push('…');
        }
        if !line.is_empty() {
            self.heard.doing = Some(line);
        }
    }

    /// It calls a tool with these parameters.
    pub(crate) fn tool(&mut self, name: &str, input: &Value) {
        // What most tools are about, by the names that most of them use.
        const TELLING: &[&str] =
            &["command", "file_path", "filePath", "path", "pattern", "query", "url", "description", "prompt"];
        let about = TELLING.iter().find_map(|field| input.get(field).and_then(Value::as_str));
        match about {
            Some(about) => self.doing(&format!("{name}: {}", about.trim())),
            None => self.doing(name),
        }
    }

    /// It names its session.
    pub(crate) fn session(&mut self, id: Option<&Value>) {
        if let Some(id) = id.and_then(Value::as_str).filter(|id| is_session(id)) {
            self.heard.session_id = Some(id.to_owned());
        }
    }

    /// One turn more.
    pub(crate) fn turn(&mut self) {
        self.heard.turns = Some(self.heard.turns.unwrap_or(0) + 1);
    }

    /// Tokens of a step are added to those before.
    pub(crate) fn spend(&mut self, tokens: Tokens) {
        let before = self.heard.tokens.unwrap_or_default();
        self.heard.tokens = Some(Tokens {
            input: before.input + tokens.input,
            cached: before.cached + tokens.cached,
            output: before.output + tokens.output,
        });
    }
}

/// Whether a text is fit to name a session: it becomes an argument of the agent's program, and a part of the names of files.
#[must_use]
pub fn is_session(text: &str) -> bool {
    text.len() <= 128
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
}
