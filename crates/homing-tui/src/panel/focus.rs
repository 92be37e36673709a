//! What the keys go to.

/// One of the two parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Focus {
    /// The tasks.
    #[default]
    List,
    /// What is shown of one of them.
    Pane,
}
