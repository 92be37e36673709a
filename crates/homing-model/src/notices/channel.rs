//! The channel of a delivery: deliveries of one channel are attempted together or in turn, and no
//! channel waits for another.
//!
//! A store keeps a channel in four text columns, of which an unused one is empty.

use crate::notify::Target;
use crate::operator::TargetKind;

/// What serves a delivery.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Channel {
    /// One HTTP endpoint, for all owners.
    Endpoint {
        /// Scheme, host and port in lower case.
        origin: String,
    },
    /// One command line of one owner in one folder.
    Command {
        /// Whose notices it gets.
        owner: String,
        /// The command line.
        line: String,
        /// The working folder of the tasks, if one was given.
        folder: Option<String>,
    },
    /// One session or terminal that wakes of one owner go to.
    Wake {
        /// Whose notices it gets.
        owner: String,
        /// The address after `wake:`; absent if no session was found at submit.
        address: Option<String>,
    },
    /// The desktop notifications of one owner.
    Desktop {
        /// Whose notices are shown.
        owner: String,
    },
}

/// Why columns are not a channel.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a channel of deliveries")]
pub struct UnknownChannel(String);

impl Channel {
    /// The channel of an owner's notices to a target, for tasks that run in `folder`. The inbox has
    /// none.
    #[must_use]
    pub fn new(target: &Target, owner: &str, folder: Option<&str>) -> Option<Self> {
        let owner = owner.to_owned();
        match target {
            Target::Inbox => None,
            Target::Webhook(url) => Some(Self::Endpoint { origin: origin(url).to_ascii_lowercase() }),
            Target::Exec(line) => {
                let folder = folder.filter(|folder| !folder.is_empty()).map(str::to_owned);
                Some(Self::Command { owner, line: line.clone(), folder })
            }
            Target::Wake(address) => Some(Self::Wake { owner, address: address.clone() }),
            Target::Desktop => Some(Self::Desktop { owner }),
        }
    }

    /// Kind, owner, address, and folder.
    #[must_use]
    pub fn columns(&self) -> [&str; 4] {
        let kind = self.kind().as_str();
        match self {
            Self::Endpoint { origin } => [kind, "", origin, ""],
            Self::Command { owner, line, folder } => [kind, owner, line, folder.as_deref().unwrap_or("")],
            Self::Wake { owner, address } => [kind, owner, address.as_deref().unwrap_or(""), ""],
            Self::Desktop { owner } => [kind, owner, "", ""],
        }
    }

    /// Reads what [`columns`](Self::columns) wrote.
    ///
    /// # Errors
    /// If the kind is not one of a channel.
    pub fn from_columns([kind, owner, address, folder]: [String; 4]) -> Result<Self, UnknownChannel> {
        let present = |text: String| (!text.is_empty()).then_some(text);
        match TargetKind::parse(&kind) {
            Some(TargetKind::Webhook) => Ok(Self::Endpoint { origin: address }),
            Some(TargetKind::Exec) => Ok(Self::Command { owner, line: address, folder: present(folder) }),
            Some(TargetKind::Wake) => Ok(Self::Wake { owner, address: present(address) }),
            Some(TargetKind::Desktop) => Ok(Self::Desktop { owner }),
            Some(TargetKind::Inbox) | None => Err(UnknownChannel(kind)),
        }
    }

    /// The kind of its targets.
    #[must_use]
    pub const fn kind(&self) -> TargetKind {
        match self {
            Self::Endpoint { .. } => TargetKind::Webhook,
            Self::Command { .. } => TargetKind::Exec,
            Self::Wake { .. } => TargetKind::Wake,
            Self::Desktop { .. } => TargetKind::Desktop,
        }
    }

    /// Whose notices it gets, if all are one owner's.
    #[must_use]
    pub fn owner(&self) -> Option<&str> {
        match self {
            Self::Endpoint { .. } => None,
            Self::Command { owner, .. } | Self::Wake { owner, .. } | Self::Desktop { owner } => Some(owner),
        }
    }

    /// Whether a delivery spends the owner's budget of wakes. A command of an agent's session does,
    /// since it may start a turn; a person's does not. Which owners are sessions is for the caller to say.
    #[must_use]
    pub fn spends_budget(&self, is_session: impl FnOnce(&str) -> bool) -> bool {
        match self {
            Self::Endpoint { .. } => false,
            Self::Command { owner, .. } => is_session(owner),
            Self::Wake { .. } | Self::Desktop { .. } => true,
        }
    }
}

/// An address up to its path.
fn origin(url: &str) -> &str {
    let host = url.find("://").map_or(0, |at| at + 3);
    let end = url.get(host..).and_then(|rest| rest.find(['/', '?', '#'])).map_or(url.len(), |at| host + at);
    url.get(..end).unwrap_or(url)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn channel(target: &str, owner: &str) -> Channel {
        Channel::new(&target.parse().unwrap(), owner, Some("/w")).unwrap()
    }

    #[test]
    fn an_endpoint_is_its_scheme_host_and_port() {
        let of = |target: &str| channel(target, "ann");
        assert_eq!(of("https://X.example/a?b"), channel("https://x.example/c", "bob"));
        assert_eq!(of("https://x.example?b"), Channel::Endpoint { origin: "https://x.example".into() });
        assert_ne!(of("https://x.example:8443/"), of("https://x.example/"));
    }

    #[test]
    fn other_channels_belong_to_one_owner() {
        for target in ["exec:true", "wake", "wake:claude:s1", "desktop"] {
            assert_ne!(channel(target, "ann"), channel(target, "bob"), "{target}");
            assert_eq!(channel(target, "ann").owner(), Some("ann"));
        }
        assert_eq!(Channel::new(&Target::Inbox, "ann", None), None);
    }

    #[test]
    fn a_command_spends_the_budget_of_sessions_only() {
        let spends = |target: &str, of_session: bool| channel(target, "x").spends_budget(|_| of_session);
        assert!(spends("exec:true", true) && !spends("exec:true", false));
        assert!(spends("wake", false) && spends("desktop", false));
        assert!(!spends("https://x.example", true));
    }

    #[test]
    fn columns_of_another_kind_are_refused() {
        for kind in ["", "inbox", "pigeon"] {
            let columns = [kind, "ann", "x", ""].map(str::to_owned);
            assert!(Channel::from_columns(columns).unwrap_err().to_string().contains(kind));
        }
    }

    fn channels() -> impl Strategy<Value = Channel> {
        let text = || ".*";
        let present = || prop::option::of(".+");
        prop_oneof![
            text().prop_map(|origin| Channel::Endpoint { origin }),
            (text(), text(), present()).prop_map(|(owner, line, folder)| Channel::Command {
                owner,
                line,
                folder
            }),
            (text(), present()).prop_map(|(owner, address)| Channel::Wake { owner, address }),
            text().prop_map(|owner| Channel::Desktop { owner }),
        ]
    }

    proptest! {
        #[test]
        fn a_channel_reads_back_from_its_columns(channel in channels()) {
            let columns = channel.columns().map(str::to_owned);
            prop_assert_eq!(Channel::from_columns(columns), Ok(channel));
        }

        #[test]
        fn different_channels_have_different_columns(one in channels(), other in channels()) {
            prop_assert_eq!(one == other, one.columns() == other.columns());
        }
    }
}
