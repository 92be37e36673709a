//! What the operator of a home lets notices do, whatever a task asks for: pure policy, `[notify]` of the configuration.

use schemars::JsonSchema;
use serde::de::{self, Deserializer};
use serde::{Deserialize, Serialize};

use crate::notify::{Target, When};
use crate::words::words;

/// A kind of target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TargetKind {
    /// The owner's inbox.
    Inbox,
    /// An address.
    Webhook,
    /// A command.
    Exec,
    /// An agent's turn.
    Wake,
    /// A desktop notification.
    Desktop,
}

words! {
    TargetKind is "a kind of target":
    Inbox = "inbox",
    Webhook = "webhook",
    Exec = "exec",
    Wake = "wake",
    Desktop = "desktop",
}

impl TargetKind {
    /// The kind of this name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        name.parse().ok()
    }

    /// Whether targets of this kind can do nothing but wake: they get no notice that its owner has
    /// already, and none that is old.
    #[must_use]
    pub const fn only_wakes(self) -> bool {
        matches!(self, Self::Wake | Self::Desktop)
    }
}

impl From<&Target> for TargetKind {
    fn from(target: &Target) -> Self {
        match target {
            Target::Inbox => Self::Inbox,
            Target::Webhook(_) => Self::Webhook,
            Target::Exec(_) => Self::Exec,
            Target::Wake(_) => Self::Wake,
            Target::Desktop => Self::Desktop,
        }
    }
}

/// `[notify]`. The inbox is always open: what is told nowhere else is told there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Policy {
    /// Kinds of targets that tasks may name; all if the key is absent.
    pub allow: Vec<TargetKind>,
    /// Kinds of targets that they may not, though `allow` has them.
    #[serde(deserialize_with = "forbidden")]
    pub forbid: Vec<TargetKind>,
    /// The most that is told: what a task asks for beyond it is cut down to it.
    pub on: When,
}

impl Default for Policy {
    fn default() -> Self {
        Self { allow: TargetKind::ALL.to_vec(), forbid: Vec::new(), on: When::Always }
    }
}

fn forbidden<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<TargetKind>, D::Error> {
    let kinds = Vec::<TargetKind>::deserialize(deserializer)?;
    if kinds.contains(&TargetKind::Inbox) {
        return Err(de::Error::custom(
            "the inbox cannot be forbidden; `on = \"never\"` tells nobody of anything",
        ));
    }
    Ok(kinds)
}

impl Policy {
    /// Whether notices may go to targets of a kind.
    ///
    /// # Errors
    /// Why not, in a sentence that says what to do.
    pub fn check(&self, kind: TargetKind) -> Result<(), String> {
        if self.permits(kind) {
            return Ok(());
        }
        let open: Vec<_> = TargetKind::ALL.into_iter().filter(|kind| self.permits(*kind)).collect();
        let open: Vec<_> = open.iter().map(|kind| format!("`{kind}`")).collect();
        Err(format!("{}: use {}", Self::closes(kind), open.join(", ")))
    }

    /// Why nothing goes to targets of a kind that is closed.
    #[must_use]
    pub fn closes(kind: TargetKind) -> String {
        format!("the operator's configuration forbids targets of the kind `{kind}` ([notify] in config.toml)")
    }

    fn permits(&self, kind: TargetKind) -> bool {
        kind == TargetKind::Inbox || (self.allow.contains(&kind) && !self.forbid.contains(&kind))
    }

    /// Kinds that are closed.
    #[must_use]
    pub fn closed(&self) -> Vec<TargetKind> {
        TargetKind::ALL.into_iter().filter(|kind| !self.permits(*kind)).collect()
    }

    /// Why a delivery that was accepted before does not go out.
    #[must_use]
    pub fn given_up(kind: TargetKind) -> String {
        format!(
            "the operator's configuration forbids targets of the kind `{kind}` by now ([notify] in config.toml); \
             `homing redeliver` sends it once that is allowed again"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_forbidden_unless_somebody_says_so() {
        let policy = Policy::default();
        assert!(policy.closed().is_empty() && policy.on == When::Always);
        assert_eq!(policy.on.at_most(When::Failure), When::Failure);
    }

    #[test]
    fn what_is_not_allowed_or_is_forbidden_is_refused_with_what_is_left() {
        let only = Policy { allow: vec![TargetKind::Webhook], ..Policy::default() };
        assert_eq!(only.closed(), [TargetKind::Exec, TargetKind::Wake, TargetKind::Desktop]);
        let both = Policy { forbid: vec![TargetKind::Webhook], ..only };
        let why = both.check(TargetKind::Webhook).unwrap_err();
        assert!(why.ends_with("use `inbox`"), "{why}");
        assert!(both.check(TargetKind::Inbox).is_ok());
    }

    #[test]
    fn the_inbox_cannot_be_forbidden() {
        let read = serde_json::from_str::<Policy>(r#"{"forbid":["inbox"]}"#).unwrap_err().to_string();
        assert!(read.contains("on = \"never\""), "{read}");
        assert!(serde_json::from_str::<Policy>(r#"{"forbid":["post"]}"#).is_err());
    }

    #[test]
    fn the_lesser_of_two_wishes_holds() {
        for (wish, most, told) in [
            (When::Always, When::Always, When::Always),
            (When::Always, When::Failure, When::Failure),
            (When::Failure, When::Always, When::Failure),
            (When::Always, When::Never, When::Never),
            (When::Never, When::Failure, When::Never),
        ] {
            assert_eq!(wish.at_most(most), told);
        }
    }
}
