//! What the panel shows, as plain data.

use crate::detail::Detail;
use crate::output::Scrollback;
use crate::row::Row;

/// How it stands with whoever tells.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Link {
    /// Nothing has come yet.
    #[default]
    Connecting,
    /// What is shown is how it is.
    Live,
    /// What is shown may be old; why, in a few words.
    Lost(String),
}

/// Everything at one moment.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    /// The tasks, in any order.
    pub rows: Vec<Row>,
    /// More about one of them.
    pub detail: Detail,
    /// Whose output follows.
    pub output_of: Option<String>,
    /// What that task printed.
    pub output: Scrollback,
    /// Whether that is up to date.
    pub link: Link,
}
