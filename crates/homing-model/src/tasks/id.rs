//! Ids: short, random and typeable. Their order comes from the store, never from the id.
//!
//! An id is a letter for what it names (`t-` a task, `n-` a notice, `d-` a delivery) and ten characters of an alphabet without vowels
//! or look-alikes, so that it never spells a word and survives being read aloud. The first few characters are enough to name a task,
//! with or without the `t-`.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// No `a e i o u`, no `0 1 l`.
const ALPHABET: &[u8; 28] = b"23456789bcdfghjkmnpqrstvwxyz";
const LENGTH: usize = 10;
const PREFIX: &str = "t-";

/// Why a text is not an id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not {what} id: expected `{prefix}` and {LENGTH} characters")]
pub struct Malformed {
    text: String,
    what: &'static str,
    prefix: &'static str,
}

fn spell(prefix: &str, bits: u64) -> String {
    let mut rest = bits;
    let mut text = String::with_capacity(prefix.len() + LENGTH);
    text.push_str(prefix);
    for _ in 0..LENGTH {
        let index = rest % ALPHABET.len() as u64;
        text.push(char::from(ALPHABET[usize::try_from(index).unwrap_or(0)]));
        rest /= ALPHABET.len() as u64;
    }
    text
}

fn is_spelled(prefix: &str, text: &str) -> bool {
    let body = text.strip_prefix(prefix).unwrap_or_default();
    body.len() == LENGTH && body.bytes().all(|byte| ALPHABET.contains(&byte))
}

/// What a person wrote, with or without the prefix and in any case, as the start of an id; none if no id starts so.
fn start(prefix: &str, text: &str) -> Option<String> {
    let lower = text.to_ascii_lowercase();
    let body = lower.strip_prefix(prefix).unwrap_or(&lower);
    let fits = !body.is_empty() && body.len() <= LENGTH && body.bytes().all(|byte| ALPHABET.contains(&byte));
    fits.then(|| format!("{prefix}{body}"))
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal, $what:literal) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// An id from 64 random bits. Uniqueness is the store's to check: two draws may collide, if rarely.
            #[must_use]
            pub fn from_entropy(bits: u64) -> Self {
                Self(spell($prefix, bits))
            }

            /// The text as the start of such an id, where it has the prefix and can be one.
            #[must_use]
            pub fn start(text: &str) -> Option<String> {
                start($prefix, text).filter(|_| Self::has_prefix(text))
            }

            /// Whether the text begins as such an id does, whatever follows.
            #[must_use]
            pub fn has_prefix(text: &str) -> bool {
                text.get(..$prefix.len()).is_some_and(|head| head.eq_ignore_ascii_case($prefix))
            }

            /// The id as text; safe as a file name.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = Malformed;

            fn from_str(text: &str) -> Result<Self, Malformed> {
                let malformed = || Malformed { text: text.to_owned(), what: $what, prefix: $prefix };
                is_spelled($prefix, text).then(|| Self(text.to_owned())).ok_or_else(malformed)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

id!(
    /// The id of one task, issued once and answered for ever (P12).
    TaskId,
    "t-",
    "a task"
);
id!(
    /// The id of one notice: the same on every retry and every channel, so that whoever gets it twice can tell.
    NoticeId,
    "n-",
    "a notice"
);
id!(
    /// The id of one delivery: one notice on its way to one target.
    DeliveryId,
    "d-",
    "a delivery"
);

/// One try at a task: what a shim runs, and what fences a late message of an earlier try.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Attempt {
    /// The task.
    pub task: TaskId,
    /// Which try, counted from 1.
    pub number: u32,
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.task, self.number)
    }
}

/// How a person names a task: by id, by the start of one, by `@last`, or by a name that is unique among live tasks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reference {
    /// A whole id.
    Id(TaskId),
    /// `@last`: the owner's newest task.
    Last,
    /// The start of an id (already with its `t-`), or else a name.
    PrefixOrName {
        /// The text read as the start of an id, where it can be one.
        prefix: Option<String>,
        /// The text as it was given.
        name: String,
    },
}

impl Reference {
    /// Reads any text; what it stands for is the store's to find.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        if text == "@last" {
            return Self::Last;
        }
        if let Ok(id) = text.parse() {
            return Self::Id(id);
        }
        Self::PrefixOrName { prefix: start(PREFIX, text), name: text.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_entropy_gives_an_id_that_reads_back(bits: u64) {
            let id = TaskId::from_entropy(bits);
            prop_assert_eq!(id.as_str().parse::<TaskId>().unwrap(), id);
        }

        #[test]
        fn any_text_is_a_reference_and_never_panics(text: String) {
            let _ = Reference::parse(&text);
        }
    }

    #[test]
    fn path_tricks_are_not_ids() {
        for text in ["t-../../etc", "t-", "", "t-aaaaaaaaaa", "t-2222222222/", "T-2222222222"] {
            assert!(text.parse::<TaskId>().is_err(), "{text}");
        }
    }

    #[test]
    fn the_start_of_a_notice_or_a_delivery_has_its_letter() {
        assert_eq!(NoticeId::start("N-7hQ").as_deref(), Some("n-7hq"));
        assert_eq!(DeliveryId::start("d-7hqk29wxyz").as_deref(), Some("d-7hqk29wxyz"));
        for text in ["7hq", "d-7hq", "n-", "n-a", "n-7hqk29wxyzz", "é", ""] {
            assert_eq!(NoticeId::start(text), None, "{text}");
        }
    }

    #[test]
    fn a_few_characters_name_a_task_with_or_without_the_prefix() {
        let expected = Reference::PrefixOrName { prefix: Some("t-k3m".into()), name: "k3m".into() };
        assert_eq!(Reference::parse("k3m"), expected);
        assert!(
            matches!(Reference::parse("t-k3m"), Reference::PrefixOrName { prefix: Some(p), .. } if p == "t-k3m")
        );
        assert!(matches!(Reference::parse("build"), Reference::PrefixOrName { prefix: None, .. }));
        assert_eq!(Reference::parse("@last"), Reference::Last);
    }
}
