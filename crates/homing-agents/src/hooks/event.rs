//! The events of agents.

use serde_json::{Value, json};

/// A turn in the life of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
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
    pub const NAMES: [&str; 7] =
        ["Stop", "SessionStart", "UserPromptSubmit", "SessionEnd", "rewake", "AfterAgent", "BeforeAgent"];

    /// By its name, however it is written; none that this release does not know.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
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

    /// As most agents call it.
    #[must_use]
    pub const fn usual_name(self) -> &'static str {
        match self {
            Self::Stop | Self::Rewake => "Stop",
            Self::Prompt => "UserPromptSubmit",
            Self::SessionStart => "SessionStart",
            Self::SessionEnd => "SessionEnd",
        }
    }

    /// Whether the agent puts what a hook of this event prints into the model's context.
    #[must_use]
    pub const fn reaches_model(self) -> bool {
        !matches!(self, Self::SessionEnd)
    }
}

/// What most agents take as context for their model.
#[must_use]
pub fn context(event: &str, text: &str) -> Value {
    json!({ "hookSpecificOutput": { "hookEventName": event, "additionalContext": text } })
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
    fn each_agent_is_answered_in_its_own_format() {
        let answer =
            |event: Event, agent: &str| crate::registry::find(agent).unwrap().hook_answer(event, "x");
        let said = |event: Event, agent: &str| answer(event, agent).to_string();
        assert_eq!(
            answer(Event::Stop, "claude"),
            json!({ "hookSpecificOutput": { "hookEventName": "Stop", "additionalContext": "x" } })
        );
        assert_eq!(said(Event::Stop, "codex"), r#"{"decision":"block","reason":"x"}"#);
        assert_eq!(said(Event::Stop, "gemini"), r#"{"decision":"deny","reason":"x"}"#);
        assert!(said(Event::Prompt, "gemini").contains("BeforeAgent"));
        assert!(said(Event::Prompt, "codex").contains("UserPromptSubmit"));
        assert!(said(Event::SessionStart, "codex").contains("SessionStart"));
    }
}
