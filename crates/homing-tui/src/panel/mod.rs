//! The state of the panel, and how it changes.

mod areas;
mod entry;
mod focus;
mod keys;
mod mouse;
mod pager;
mod roster;
mod state;
mod update;
mod wanted;

pub(crate) use entry::Purpose;
pub(crate) use focus::Focus;
pub(crate) use keys::HELP;
pub(crate) use roster::Shown;
pub use state::{Options, Panel};
pub(crate) use state::{Overlay, Pane};
pub use wanted::{Glimpse, Wanted};
