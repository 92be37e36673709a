//! The words that every surface uses for the variants of an enum.

/// A text that is no word of an enum.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not {expected}")]
pub struct UnknownWord {
    pub(crate) text: String,
    pub(crate) expected: &'static str,
}

/// Gives an enum `ALL` and `as_str`, and implements `Display` and `FromStr` by its words. What a text is
/// not comes first, for the error.
macro_rules! words {
    ($name:ident is $expected:literal: $($variant:ident = $word:literal,)+) => {
        impl $name {
            /// Every one, in the order of the declaration.
            pub const ALL: [Self; [$($word),+].len()] = [$(Self::$variant),+];

            /// The word that every surface uses.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::words::UnknownWord;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Self::ALL.into_iter().find(|one| one.as_str() == text).ok_or_else(|| Self::Err {
                    text: text.to_owned(),
                    expected: $expected,
                })
            }
        }
    };
}

pub(crate) use words;
