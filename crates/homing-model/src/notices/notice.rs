//! A notice: the same object in the inbox, the webhook, the event log, the command hook and the agent's turn.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::event::EventKind;
use crate::id::{NoticeId, TaskId};
use crate::mask::Masks;
use crate::outcome::Outcome;
use crate::sanitize::{Colour, Sanitizer};
use crate::status::Status;
use crate::time::Timestamp;

/// So many characters of output a notice carries at most.
pub const TAIL: usize = 2_000;

/// What somebody is told.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Notice {
    /// The idempotency key: the same on every retry and every channel.
    pub id: NoticeId,
    /// Its place in the event log.
    pub seq: u64,
    /// When it happened.
    pub at: Timestamp,
    /// To which task.
    pub task: About,
    /// What happened.
    #[serde(flatten)]
    pub body: Body,
}

/// What a notice says of its task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct About {
    /// Its id.
    pub id: TaskId,
    /// Its name.
    pub name: Option<String>,
    /// Whose it is.
    pub owner: String,
    /// The command in one line.
    pub command: String,
    /// Where it ran.
    pub cwd: Option<String>,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
}

/// What happened, by type.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type")]
pub enum Body {
    /// The task ended.
    #[serde(rename = "task.completed")]
    Completed(Box<Completed>),
    /// Its output matched the pattern that was watched for.
    #[serde(rename = "task.matched")]
    Matched {
        /// The pattern.
        pattern: String,
        /// The line.
        line: String,
        /// Matches since the last notice that were not told one by one.
        held_back: u64,
        /// Why this pattern is no longer watched for, in the last notice of it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        explanation: Option<String>,
    },
    /// It printed nothing for a while.
    #[serde(rename = "task.quiet")]
    Quiet {
        /// For how long.
        quiet_ms: u64,
        /// Whether it seems to wait for input.
        waiting_for_input: bool,
    },
    /// It runs, and printed something since the last time.
    #[serde(rename = "task.heartbeat")]
    Heartbeat {
        /// What is new, the end of it.
        new_output: String,
    },
    /// Its owner was woken as often as it may be in an hour; this and what else there is waits in the inbox.
    #[serde(rename = "wake.paused")]
    WakePaused {
        /// The budget.
        per_hour: u32,
        /// When there is room again; what waits is then handed over together.
        until: Timestamp,
        /// Notices that wait.
        held_back: u64,
    },
}

/// How a task ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Completed {
    /// The terminal state.
    pub status: Status,
    /// What the kernel and the shim say.
    pub outcome: Option<Outcome>,
    /// When its command was executed.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// How long it ran.
    pub duration_ms: Option<u64>,
    /// The end of its output, fit for any screen.
    pub output_tail: String,
    /// How much it printed in all.
    pub output_bytes: u64,
    /// Whether there is more than the tail.
    pub output_truncated: bool,
    /// The file with the first bytes.
    pub output_path: Option<String>,
    /// The answer of an agent.
    pub answer: Option<String>,
    /// Matches of what was watched for that no notice had told when it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_back: Option<u64>,
}

impl Body {
    /// The kind of event that it is in the log.
    #[must_use]
    pub const fn kind(&self) -> EventKind {
        match self {
            Self::Completed(_) => EventKind::TaskCompleted,
            Self::Matched { .. } => EventKind::TaskMatched,
            Self::Quiet { .. } => EventKind::TaskQuiet,
            Self::Heartbeat { .. } => EventKind::TaskHeartbeat,
            Self::WakePaused { .. } => EventKind::WakePaused,
        }
    }
}

/// The end of an output: the last [`TAIL`] characters, with nothing that a terminal would obey, and whether there was more. Secrets are masked
/// before it is cut, also those that escapes ran through. `before` is what came right before the bytes, if they are not the beginning: they
/// may begin in the middle of a character or of an escape, and nothing of either is told.
#[must_use]
pub fn tail(before: Option<&[u8]>, bytes: &[u8], masks: &Masks) -> (String, bool) {
    let cut = before.is_some();
    let mut filter = Sanitizer::new(Colour::Strip);
    // Of characters only what belongs to these bytes is told; of what came before them only whether it was an escape counts.
    let _ = filter.push(before.unwrap_or_default());
    let bytes = if cut && !filter.is_inside() { whole_characters(bytes) } else { bytes };
    let mut text = filter.push(bytes);
    text.push_str(&filter.finish());
    masks.cover(&mut text);
    let surplus = text.chars().count().saturating_sub(TAIL);
    let begin = text.char_indices().nth(surplus).map_or(text.len(), |(at, _)| at);
    (text.split_off(if surplus == 0 { 0 } else { begin }), cut || surplus > 0)
}

/// Without the rest of a character whose beginning was cut off.
fn whole_characters(bytes: &[u8]) -> &[u8] {
    let rest = bytes.iter().take(3).take_while(|byte| (0x80..0xc0).contains(*byte)).count();
    bytes.get(rest..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_tail_is_never_longer_than_it_may_be_and_never_half_a_character(bytes: Vec<u8>, cut: bool) {
            let (text, _) = tail(cut.then_some(&[][..]), &bytes.repeat(40), &Masks::default());
            prop_assert!(text.chars().count() <= TAIL);
        }

        #[test]
        fn the_tail_of_plain_text_is_its_end(text in "[a-zäöü€😀\n]{0,3000}") {
            let (got, truncated) = tail(None, text.as_bytes(), &Masks::default());
            let all: Vec<char> = text.chars().collect();
            let want: String = all[all.len().saturating_sub(TAIL)..].iter().collect();
            prop_assert_eq!((got, truncated), (want, all.len() > TAIL));
        }
    }

    #[test]
    fn a_character_that_was_cut_in_two_is_left_out_whole() {
        let euro = "€".as_bytes();
        for cut in 1..3 {
            assert_eq!(
                tail(Some(&euro[..cut]), &[&euro[cut..], b"x"].concat(), &Masks::default()),
                ("x".to_owned(), true)
            );
        }
    }

    #[test]
    fn a_tail_that_begins_in_an_escape_tells_nothing_of_it() {
        let output = "\x1b[38;5;196mä\x1b]0;a title\x07b\x1b[0m".as_bytes();
        for cut in 0..=output.len() {
            let (text, truncated) = tail(Some(&output[..cut]), &output[cut..], &Masks::default());
            assert!(["äb", "b", ""].contains(&text.as_str()) && truncated, "{cut}: {text:?}");
        }
    }

    #[test]
    fn escapes_are_gone_from_a_tail() {
        assert_eq!(tail(None, b"\x1b[31mred\x1b[0m\x1b]0;title\x07!", &Masks::default()).0, "red!");
    }

    #[test]
    fn a_secret_is_masked_before_the_tail_is_cut() {
        let values = BTreeMap::from([("TOKEN".to_owned(), crate::OsText::from("hunter2"))]);
        let masks = Masks::new(1, &values, |_| true);
        for rest in TAIL - 8..=TAIL {
            let output = format!("hun\x1b[1mter2{}", "x".repeat(rest));
            let (text, truncated) = tail(None, output.as_bytes(), &masks);
            assert!(truncated && !text.contains("r2") && !text.contains("hunter"), "{rest}");
        }
    }

    #[test]
    fn the_type_stands_beside_the_rest() {
        let notice = Notice {
            id: NoticeId::from_entropy(1),
            seq: 7,
            at: Timestamp::from_millis(0),
            task: About {
                id: TaskId::from_entropy(2),
                name: None,
                owner: "ann".into(),
                command: "true".into(),
                cwd: None,
                labels: BTreeMap::new(),
            },
            body: Body::Quiet { quiet_ms: 5, waiting_for_input: false },
        };
        let json = serde_json::to_value(&notice).unwrap();
        assert_eq!((&json["type"], &json["quiet_ms"]), (&"task.quiet".into(), &5.into()));
        assert_eq!(serde_json::from_value::<Notice>(json).unwrap(), notice);
    }
}
