//! What an agent hands to its hooks: JSON, of which only a few fields matter here.

use serde::Deserialize;
use serde_json::Value;

use crate::agent::Agent;

/// The fields that matter.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Input {
    /// Which conversation.
    pub session: String,
    /// It is not the conversation itself that calls, but an agent that it has started.
    pub subagent: bool,
    /// The turn that ends is the going on after an end that was put off.
    pub continued: bool,
    /// The turn that ends had no answer of its model, so that nothing shows what it read. Not every agent says so.
    pub unanswered: bool,
    /// How long the answer of the turn that ends is so far, in bytes. Not every agent says so.
    pub answer_bytes: Option<usize>,
    /// Notices that are among the session's messages already. Only a plugin of homing says so.
    pub known: Vec<String>,
    /// Why a session begins.
    source: Option<String>,
}

impl Input {
    /// Whether a session goes on that may have lost sight of what it started.
    #[must_use]
    pub fn after_a_break(&self) -> bool {
        matches!(self.source.as_deref(), Some("resume" | "compact"))
    }
}

/// What is read of it. All else is passed over without being kept: a prompt may hold anything, and a million small things take far more room
/// in memory than as text.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Given {
    session_id: Value,
    agent_id: Value,
    stop_hook_active: Value,
    prompt_response: Value,
    homing_unanswered: Value,
    homing_known: Value,
    source: Value,
}

/// The fields of what an agent hands to its hook; `None` where it makes no sense.
#[must_use]
pub fn parse(agent: &dyn Agent, text: &[u8]) -> Option<Input> {
    // A list would be taken for the fields in their order.
    let text = Some(text.trim_ascii()).filter(|text| text.starts_with(b"{"))?;
    let given: Given = serde_json::from_slice(text).ok()?;
    let answer = given.prompt_response.as_str();
    let none = agent.hooks().no_answer;
    let no_answer = answer.is_some_and(|said| said.trim().is_empty() || Some(said.trim()) == none);
    let text = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    Some(Input {
        session: text(&given.session_id)?,
        subagent: text(&given.agent_id).is_some(),
        continued: given.stop_hook_active.as_bool().unwrap_or(false),
        unanswered: no_answer || given.homing_unanswered.as_bool().unwrap_or(false),
        answer_bytes: answer.map(str::len),
        known: given.homing_known.as_array().into_iter().flatten().filter_map(text).collect(),
        source: text(&given.source),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::find;

    fn parse(text: &[u8]) -> Option<Input> {
        super::parse(find("gemini").unwrap(), text)
    }

    #[test]
    fn what_matters_is_found_among_what_does_not() {
        let input = parse(
            br#" {"hook_event_name":"Stop","session_id":"s","stop_hook_active":true,"new":{"x":[1]}} "#,
        );
        assert_eq!(input, Some(Input { session: "s".into(), continued: true, ..Input::default() }));
        // What has an unforeseen shape says nothing, and takes nothing from the rest.
        let odd = parse(br#"{"session_id":"s","agent_id":{},"source":[7],"stop_hook_active":"yes"}"#);
        assert_eq!(odd, Some(Input { session: "s".into(), ..Input::default() }));
        assert!(parse(br#"{"session_id":"s","agent_id":"a"}"#).is_some_and(|input| input.subagent));
        assert!(
            parse(br#"{"session_id":"s","agent_id":null,"source":"resume"}"#)
                .is_some_and(|input| !input.subagent && input.after_a_break())
        );
    }

    #[test]
    fn a_turn_of_gemini_without_a_response_is_unanswered() {
        let unanswered = |response: &str| {
            let text = format!(r#"{{"session_id":"s","prompt_response":{response}}}"#);
            parse(text.as_bytes()).expect("an input").unanswered
        };
        assert!(unanswered(r#""[no response text]""#) && unanswered(r#""""#));
        assert!(!unanswered(r#""Done.""#) && !unanswered("null"));
    }

    #[test]
    fn what_makes_no_sense_is_nothing() {
        for text in [
            &b""[..],
            b"{",
            b"[]",
            b"null",
            b"{}",
            br#"{"session_id":7}"#,
            br#"{"session_id":""}"#,
            b"\xff\xfe",
            b"\0\0",
            b"[\"s\"]",
            "[".repeat(100_000).as_bytes(),
        ] {
            assert_eq!(parse(text), None, "{text:?}");
        }
    }
}
