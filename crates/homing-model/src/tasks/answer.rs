//! The answer of a task that has one: what was told, or words that say why nothing was, so that nobody waits for what cannot come.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::agent::head;
use crate::outcome::Outcome;
use crate::sanitize;
use crate::status::Status;
use crate::words::words;

/// The longest answer that is taken, in bytes.
pub const LONGEST: usize = 256 * 1024;

/// So much of an agent's answer is kept in the ledger, in bytes; its output has the rest.
pub const KEPT: usize = 64 * 1024;

/// So much of an answer is kept where the disk is full, in bytes.
pub const SHORT: usize = 1_000;

/// Instead of an answer, where the task succeeded and told none.
pub const NONE: &str = "(no answer produced)";

/// So much of an answer makes the reason of a failure, in characters.
const REASON: usize = 200;

/// Whether an answer is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AnswerState {
    /// It is.
    Ok,
    /// There was none.
    None,
    /// The task did not get that far.
    Failed,
}

words! {
    AnswerState is "a state of an answer":
    Ok = "ok",
    None = "none",
    Failed = "failed",
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Its words, or those that stand for it.
    pub text: String,
    /// Whether it is one.
    pub state: AnswerState,
}

impl Answer {
    /// What a task that ended like this has for an answer. There always is one.
    #[must_use]
    pub fn at_end(status: Status, outcome: &Outcome, told: Option<String>) -> Self {
        let told = told.filter(|text| !text.trim().is_empty());
        if status == Status::Succeeded {
            return match told {
                Some(text) => Self { text, state: AnswerState::Ok },
                None => Self { text: NONE.to_owned(), state: AnswerState::None },
            };
        }
        let why = match (told, &outcome.stopped_by, &outcome.reason) {
            (Some(text), _, _) => text,
            (None, Some(by), _) if status == Status::Stopped => format!("stopped by {by}"),
            (None, _, Some(reason)) => reason.clone(),
            (None, _, None) => match (outcome.exit_code, outcome.signal) {
                (Some(code), _) => format!("exit {code}"),
                (None, Some(signal)) => format!("ended by signal {signal}"),
                (None, None) => status.to_string(),
            },
        };
        Self { text: format!("(background task failed: {why})"), state: AnswerState::Failed }
    }
}

/// An agent's answer as it is kept: whole, or the beginning of it with a word on the rest. It would be `whole` bytes long.
#[must_use]
pub fn kept(mut text: String, whole: usize) -> String {
    if text.len() > KEPT || whole > KEPT {
        let whole = whole.max(text.len());
        text.truncate(head(&text, KEPT).len());
        text.push_str(&format!("\n[cut: {whole} bytes in all, `homing output` has the rest]"));
    }
    text
}

/// The answer of an end that is recorded on a full disk: whole if it is short, else the beginning of it.
#[must_use]
pub fn shortened(mut text: String) -> String {
    if text.len() > SHORT {
        let whole = text.len();
        text.truncate(head(&text, SHORT).len());
        text.push_str(&format!("\n[cut: the disk was full; {whole} bytes in all]"));
    }
    text
}

/// The reason of an end that was reported as a failure: the beginning of what was told, on one line.
#[must_use]
pub fn reason(told: Option<&str>) -> String {
    match told.map(str::trim).filter(|text| !text.is_empty()) {
        Some(text) => {
            let begin: String = text.chars().take(REASON + 1).collect();
            let mut line = sanitize::line(&begin);
            if let Some((cut, _)) = line.char_indices().nth(REASON) {
                line.truncate(cut);
                line.push('…');
            }
            line
        }
        None => "reported as failed".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at_end(status: Status, told: Option<&str>) -> (String, AnswerState) {
        let outcome = Outcome {
            reason: Some("why".into()),
            stopped_by: (status == Status::Stopped).then(|| "ann".into()),
            ..Outcome::default()
        };
        let answer = Answer::at_end(status, &outcome, told.map(str::to_owned));
        (answer.text, answer.state)
    }

    #[test]
    fn every_end_has_an_answer_and_only_a_success_has_a_real_one() {
        let ok = at_end(Status::Succeeded, Some(" 42\n"));
        assert_eq!(ok, (" 42\n".to_owned(), AnswerState::Ok), "as it was told");
        for blank in [None, Some(""), Some(" \n")] {
            assert_eq!(at_end(Status::Succeeded, blank), (NONE.to_owned(), AnswerState::None));
        }
        let failed = |why: &str| (format!("(background task failed: {why})"), AnswerState::Failed);
        assert_eq!(at_end(Status::Failed, Some("no disk")), failed("no disk"));
        assert_eq!(at_end(Status::Failed, None), failed("why"));
        assert_eq!(at_end(Status::Stopped, None), failed("stopped by ann"));
        assert_eq!(at_end(Status::Lost, None), failed("why"));
    }

    #[test]
    fn an_end_without_words_is_told_by_its_code_or_signal() {
        let why = |outcome: &Outcome| Answer::at_end(Status::Failed, outcome, None).text;
        let code = Outcome { exit_code: Some(3), ..Outcome::default() };
        let signal = Outcome { signal: Some(9), ..Outcome::default() };
        assert_eq!(why(&code), "(background task failed: exit 3)");
        assert_eq!(why(&signal), "(background task failed: ended by signal 9)");
        assert_eq!(why(&Outcome::default()), "(background task failed: failed)");
    }

    #[test]
    fn a_long_answer_is_cut_where_a_character_ends_and_says_so() {
        assert_eq!(kept("ä".repeat(KEPT / 2), KEPT), "ä".repeat(KEPT / 2));
        let long = kept(format!("x{}", "ä".repeat(KEPT)), 1 + 2 * KEPT);
        assert!(long.starts_with("xä") && long.len() < KEPT + 100, "{}", long.len());
        assert!(long.ends_with("ä\n[cut: 131073 bytes in all, `homing output` has the rest]"));
    }

    #[test]
    fn an_answer_that_a_full_disk_cuts_says_so() {
        assert_eq!(shortened("x".repeat(SHORT)), "x".repeat(SHORT));
        let long = shortened("ä".repeat(SHORT));
        assert!(long.ends_with("ä\n[cut: the disk was full; 2000 bytes in all]"), "{long}");
        assert!(long.len() < SHORT + 100);
    }

    #[test]
    fn a_reason_is_short_and_on_one_line() {
        assert_eq!(reason(Some(" a\nb ")), sanitize::line("a\nb"));
        assert_eq!(reason(Some(" ")), "reported as failed");
        let long = reason(Some(&"ä".repeat(1_000)));
        assert_eq!(long.chars().count(), REASON + 1);
    }

    #[test]
    fn states_read_back() {
        for state in [AnswerState::Ok, AnswerState::None, AnswerState::Failed] {
            assert_eq!(state.as_str().parse(), Ok(state));
        }
        assert!("".parse::<AnswerState>().is_err());
    }
}
