//! What commands print: tables, notices, output, progress.

pub(crate) mod columns;
pub(crate) mod console;
pub(crate) mod grid;
pub(crate) mod hyperlink;
pub(crate) mod line_stamps;
pub(crate) mod notice;
pub(crate) mod printer;
pub(crate) mod spinner;
pub(crate) mod symbol;
pub(crate) mod table;
pub(crate) mod tail;
pub(crate) mod terminal_snapshot;
