//! The size of a terminal.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The size of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TerminalSize {
    /// Columns, 1 to 1000.
    pub cols: u16,
    /// Rows, 1 to 500.
    pub rows: u16,
}

impl TerminalSize {
    /// The largest that a task's terminal can have.
    pub const LARGEST: Self = Self { cols: 1000, rows: 500 };

    /// Whether a task's terminal can have it.
    #[must_use]
    pub fn is_possible(self) -> bool {
        (1..=Self::LARGEST.cols).contains(&self.cols) && (1..=Self::LARGEST.rows).contains(&self.rows)
    }

    /// As much of it as a task's terminal can have; none of a terminal that does not say.
    #[must_use]
    pub fn within_reason(self) -> Option<Self> {
        let fitted =
            Self { cols: self.cols.min(Self::LARGEST.cols), rows: self.rows.min(Self::LARGEST.rows) };
        fitted.is_possible().then_some(fitted)
    }
}
