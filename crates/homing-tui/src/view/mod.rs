//! Drawing: from the state alone, into whatever rectangle there is.

mod age;
mod bars;
mod list;
mod overlay;
mod pane;
mod widget;

pub(crate) use age::next_age;
pub(crate) use list::shows_last_lines;
pub(crate) use overlay::help_lines;
pub(crate) use pane::{GUTTER, detail_lines};
pub use widget::View;
