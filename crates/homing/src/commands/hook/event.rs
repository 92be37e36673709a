//! The events of agents, and the words in which each agent wants to hear of something.

use homing_model::Agent;
use serde_json::{Value, json};

use super::input::Input;

/// A turn in the life of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event {
    /// A turn ends.
    Stop,
    /// A session begins, or goes on after a break.
    SessionStart,
    /// A turn begins.
    Prompt,
    /// A session ends.
    SessionEnd,
    /// Waits in the background, and wakes the session.
    Rewake,
}

impl Event {
    /// As they are usually written.
    pub(super) const NAMES: [&str; 7] =
        ["Stop", "SessionStart", "UserPromptSubmit", "SessionEnd", "rewake", "AfterAgent", "BeforeAgent"];

    /// By its name, however it is written; none that this release does not know.
    pub(super) fn parse(name: &str) -> Option<Self> {
        let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
        match plain.to_ascii_lowercase().as_str() {
            "stop" | "afteragent" => Some(Self::Stop),
            "sessionstart" => Some(Self::SessionStart),
            "userpromptsubmit" | "beforeagent" => Some(Self::Prompt),
            "sessionend" => Some(Self::SessionEnd),
            "rewake" | "asyncrewake" => Some(Self::Rewake),
            _ => None,
        }
    }

    /// As the agent calls it.
    pub(super) const fn name(self, agent: Agent) -> &'static str {
        match (self, agent) {
            (Self::Stop, Agent::Gemini) => "AfterAgent",
            (Self::Prompt, Agent::Gemini) => "BeforeAgent",
            (Self::Stop | Self::Rewake, _) => "Stop",
            (Self::Prompt, _) => "UserPromptSubmit",
            (Self::SessionStart, _) => "SessionStart",
            (Self::SessionEnd, _) => "SessionEnd",
        }
    }

    /// Whether the agent puts what this hook prints into the model's context. Gemini CLI drops what `SessionStart` prints when a session is resumed
    /// in a terminal; what waits is then delivered by `BeforeAgent`, with the next prompt.
    pub(super) fn reaches_model(self, agent: Agent, input: &Input) -> bool {
        match (self, agent) {
            (Self::SessionStart, Agent::Gemini) => !input.after_a_break(),
            (Self::SessionEnd, _) => false,
            (Self::Stop | Self::SessionStart | Self::Prompt | Self::Rewake, _) => true,
        }
    }

    /// What is printed so that the agent reads this text. At the end of a turn Claude Code takes it as context and goes on; the others have
    /// to be kept from ending.
    pub(super) fn answer(self, agent: Agent, text: &str) -> Value {
        match (self, agent) {
            (Self::Stop, Agent::Codex) => json!({ "decision": "block", "reason": text }),
            (Self::Stop, Agent::Gemini) => json!({ "decision": "deny", "reason": text }),
            _ => json!({
                "hookSpecificOutput": { "hookEventName": self.name(agent), "additionalContext": text },
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_known_however_they_are_written_and_strange_ones_are_not() {
        for (name, event) in [
            ("Stop", Event::Stop),
            ("stop", Event::Stop),
            ("AfterAgent", Event::Stop),
            ("session-start", Event::SessionStart),
            ("user_prompt_submit", Event::Prompt),
            ("SessionEnd", Event::SessionEnd),
            ("rewake", Event::Rewake),
        ] {
            assert_eq!(Event::parse(name), Some(event), "{name}");
        }
        assert!(Event::NAMES.iter().all(|name| Event::parse(name).is_some()));
        for name in ["", "SubagentStop", "PreToolUse", "stopp"] {
            assert_eq!(Event::parse(name), None, "{name}");
        }
    }

    #[test]
    fn each_agent_hears_it_in_its_own_words() {
        let said = |event: Event, agent| event.answer(agent, "x").to_string();
        assert_eq!(
            Event::Stop.answer(Agent::Claude, "x"),
            json!({ "hookSpecificOutput": { "hookEventName": "Stop", "additionalContext": "x" } })
        );
        assert_eq!(said(Event::Stop, Agent::Codex), r#"{"decision":"block","reason":"x"}"#);
        assert_eq!(said(Event::Stop, Agent::Gemini), r#"{"decision":"deny","reason":"x"}"#);
        assert!(said(Event::Prompt, Agent::Gemini).contains("BeforeAgent"));
        assert!(said(Event::Prompt, Agent::Codex).contains("UserPromptSubmit"));
        assert!(said(Event::SessionStart, Agent::Codex).contains("SessionStart"));
    }
}
