//! Where a list goes on.
//!
//! A list shows live tasks first, then finished ones, and tasks end while somebody turns its pages. So the first page notes the newest
//! event, and all later pages judge by that moment: a task counts as live if it had not ended *then*. Each task is thus in one section
//! for the whole walk, and is listed once.

use std::fmt;
use std::str::FromStr;

/// The two halves of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::sqlite) enum Section {
    /// Tasks that had not ended at the first page.
    Live,
    /// Those that had.
    Finished,
}

/// A place between two tasks of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::sqlite) struct Cursor {
    /// In which half.
    pub(in crate::sqlite) section: Section,
    /// The newest event at the first page.
    pub(in crate::sqlite) as_of: i64,
    /// What is left of the half was accepted before this one.
    pub(in crate::sqlite) below: i64,
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let section = match self.section {
            Section::Live => 'l',
            Section::Finished => 'f',
        };
        write!(f, "{section}.{}.{}", self.as_of, self.below)
    }
}

/// Not a cursor that we gave.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::sqlite) struct Malformed;

impl FromStr for Cursor {
    type Err = Malformed;

    fn from_str(text: &str) -> Result<Self, Malformed> {
        let number = |part: Option<&str>| -> Result<i64, Malformed> {
            let part = part.filter(|part| part.bytes().all(|byte| byte.is_ascii_digit())).ok_or(Malformed)?;
            part.parse().map_err(|_| Malformed)
        };
        let mut parts = text.split('.');
        let section = match parts.next() {
            Some("l") => Section::Live,
            Some("f") => Section::Finished,
            _ => return Err(Malformed),
        };
        let cursor = Self { section, as_of: number(parts.next())?, below: number(parts.next())? };
        if parts.next().is_none() { Ok(cursor) } else { Err(Malformed) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_cursor_reads_back(live: bool, as_of in 0..=i64::MAX, below in 0..=i64::MAX) {
            let section = if live { Section::Live } else { Section::Finished };
            let cursor = Cursor { section, as_of, below };
            prop_assert_eq!(cursor.to_string().parse(), Ok(cursor));
        }

        #[test]
        fn any_text_is_taken_or_refused(text: String) {
            let _ = text.parse::<Cursor>();
        }
    }

    #[test]
    fn what_we_did_not_give_is_refused() {
        for text in ["", "l", "l.1", "l.1.2.3", "x.1.2", "l.-1.2", "l.1.+2", "l.1.99999999999999999999"] {
            assert_eq!(text.parse::<Cursor>(), Err(Malformed), "{text}");
        }
    }
}
