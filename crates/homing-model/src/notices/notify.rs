//! Who is told, and when: the policy that a task carries from its submit on.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::status::Status;

/// Which ends are told of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum When {
    /// Every end.
    Always,
    /// Failed, timed out, lost, never started, or stopped by anyone but the owner.
    Failure,
    /// None; the result stays readable.
    #[default]
    Never,
}

impl When {
    /// The lesser of the two.
    #[must_use]
    pub const fn at_most(self, most: Self) -> Self {
        match (self, most) {
            (Self::Never, _) | (_, Self::Never) => Self::Never,
            (Self::Failure, _) | (_, Self::Failure) => Self::Failure,
            (Self::Always, Self::Always) => Self::Always,
        }
    }
}

/// Where a notice goes. Its text is what `--notify` takes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Target {
    /// An entry for the owner, until it is acknowledged.
    Inbox,
    /// A POST by the Standard Webhooks scheme.
    Webhook(String),
    /// A command line that gets the notices on its input.
    Exec(String),
    /// A new turn of an agent: the one that submitted, or the one that is named.
    Wake(Option<String>),
    /// A desktop notification.
    Desktop,
}

/// Why a text is not a target.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a place for notices: expected `inbox`, a URL (https://…), `exec:COMMAND LINE`, `wake`, `wake:…` or `desktop`"
)]
pub struct UnknownTarget(String);

impl FromStr for Target {
    type Err = UnknownTarget;

    fn from_str(text: &str) -> Result<Self, UnknownTarget> {
        let unknown = || UnknownTarget(crate::sanitize::line(text));
        match text.split_once(':') {
            None if text == "inbox" => Ok(Self::Inbox),
            None if text == "wake" => Ok(Self::Wake(None)),
            None if text == "desktop" => Ok(Self::Desktop),
            Some(("exec", line)) if !line.trim().is_empty() && !line.contains('\0') => {
                Ok(Self::Exec(line.to_owned()))
            }
            Some(("wake", whom)) if !whom.is_empty() => Ok(Self::Wake(Some(whom.to_owned()))),
            Some((scheme, rest)) if is_web(scheme) && rest.starts_with("//") => {
                Ok(Self::Webhook(text.to_owned()))
            }
            None | Some(_) => Err(unknown()),
        }
    }
}

fn is_web(scheme: &str) -> bool {
    scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https")
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Inbox => f.write_str("inbox"),
            Self::Webhook(url) => f.write_str(url),
            Self::Exec(line) => write!(f, "exec:{line}"),
            Self::Wake(None) => f.write_str("wake"),
            Self::Wake(Some(whom)) => write!(f, "wake:{whom}"),
            Self::Desktop => f.write_str("desktop"),
        }
    }
}

/// A part of an address's path that is at least so long is taken for a token and not shown.
pub const TOKEN: usize = 16;

impl Target {
    /// As people may see it: what follows the `?` of an address is often a password, and so is a long part of its path.
    #[must_use]
    pub fn shown(&self) -> String {
        match self {
            Self::Webhook(url) => {
                let (address, query) =
                    url.split_once(['?', '#']).map_or((url.as_str(), ""), |(address, _)| (address, "?…"));
                // Scheme, nothing, and host come before the path.
                let parts = address.split('/').enumerate();
                let parts =
                    parts.map(|(index, part)| if index > 2 && part.len() >= TOKEN { "…" } else { part });
                format!("{}{query}", parts.collect::<Vec<_>>().join("/"))
            }
            Self::Inbox | Self::Exec(_) | Self::Wake(_) | Self::Desktop => self.to_string(),
        }
    }
}

impl Serialize for Target {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Target {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for Target {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Target".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "description": "`inbox`, a URL, `exec:COMMAND LINE`, `wake`, `wake:…` or `desktop`."
        })
    }
}

/// A key that signs webhooks. Never shown.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct SigningKey(String);

impl SigningKey {
    /// Takes the text `whsec_…` as it is; what signs checks it.
    #[must_use]
    pub const fn new(text: String) -> Self {
        Self(text)
    }

    /// The text, for signing and for nothing else.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("whsec_…")
    }
}

/// Who is told of a task, and when. A stored task without one reads as `never`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Notify {
    /// Which ends.
    pub on: When,
    /// Where notices go.
    pub targets: Vec<Target>,
    /// Signs this task's webhooks, instead of the configured keys.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret: Option<SigningKey>,
}

impl Notify {
    /// What a submit gets that says nothing: the inbox, always.
    #[must_use]
    pub fn usual() -> Self {
        Self { on: When::Always, targets: vec![Target::Inbox], secret: None }
    }

    /// Whether an end is told of.
    #[must_use]
    pub fn tells(&self, status: Status, stopped_by: Option<&str>, owner: &str) -> bool {
        match self.on {
            When::Always => true,
            When::Never => false,
            When::Failure => match status {
                Status::Failed | Status::TimedOut | Status::Lost | Status::StartFailed => true,
                Status::Stopped => stopped_by != Some(owner),
                Status::Succeeded
                | Status::Queued
                | Status::Starting
                | Status::Running
                | Status::Paused
                | Status::Stopping => false,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_read_back_as_they_were_written() {
        for text in [
            "inbox",
            "wake",
            "wake:tmux:%3",
            "desktop",
            "exec:notify-send 'a b'",
            "https://x.example/y?z=1",
            "HTTP://[::1]:8/",
        ] {
            assert_eq!(text.parse::<Target>().unwrap().to_string(), text);
        }
        for text in ["", "Inbox", "exec:", "exec: ", "ftp://x", "mailto:a@b", "https:x", "wake:", "exec:a\0b"]
        {
            assert!(text.parse::<Target>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn what_follows_the_question_mark_is_not_shown() {
        let target: Target = "https://x.example/hook?token=hunter2".parse().unwrap();
        assert_eq!(target.shown(), "https://x.example/hook?…");
        let target: Target =
            "https://a-long-name.of-a-host.example/services/T0/xoxb-1234567890-abcdef".parse().unwrap();
        assert_eq!(target.shown(), "https://a-long-name.of-a-host.example/services/T0/…");
        let key = SigningKey::new("whsec_hunter2".into());
        assert!(!format!("{key:?}").contains("hunter2"));
    }

    #[test]
    fn failure_means_every_end_that_nobody_wanted() {
        let told = |status, by: Option<&str>| {
            Notify { on: When::Failure, ..Notify::usual() }.tells(status, by, "ann")
        };
        for status in [Status::Failed, Status::TimedOut, Status::Lost, Status::StartFailed] {
            assert!(told(status, None), "{status}");
        }
        assert!(!told(Status::Succeeded, None));
        assert!(!told(Status::Stopped, Some("ann")));
        assert!(told(Status::Stopped, Some("bob")) && told(Status::Stopped, None));
    }

    #[test]
    fn a_stored_task_without_the_field_tells_nobody() {
        assert!(!Notify::default().tells(Status::Failed, None, "ann"));
        assert_eq!(serde_json::from_str::<Notify>("{}").unwrap(), Notify::default());
    }
}
