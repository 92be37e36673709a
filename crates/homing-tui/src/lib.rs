//! The terminal panel of homing, as a widget that other ratatui programs can draw, and as a program of its own.
//!
//! # Theory of operation
//! A [`Panel`] is a state and nothing else: it knows neither a client, nor a clock, nor a terminal. What happens is told to it as a
//! [`Message`] (a key, a click, a task that changed, some output, the time), and [`Panel::update`] answers with [`Effect`]s: what somebody
//! else should do (stop a task, copy an id, leave). [`View`] draws it, from the state alone. So every case can be tried without a daemon, and
//! a program that has tasks of its own can show them.
//!
//! Nothing that a task prints can leave its box. Bytes become lines in [`Scrollback`] only: escape sequences are taken out there,
//! colours become styles by a parser that has bounds for everything, and what is left are characters that a terminal puts where it is
//! told. Names and commands pass the same way.
//!
//! With the feature `live` there is also [`live`], which runs a panel on a terminal and feeds it from a daemon: by its events, never by asking again
//! and again.

mod detail;
mod glyph;
#[cfg(feature = "live")]
pub mod live;
mod message;
mod output;
mod panel;
mod row;
mod snapshot;
mod theme;
mod view;

pub use detail::{Detail, Fact};
pub use message::{Abilities, Effect, Message, Piece, Stream};
pub use output::Scrollback;
pub use panel::{Glimpse, Options, Panel, Wanted};
pub use row::Row;
pub use snapshot::{Link, Snapshot};
pub use theme::{Background, Theme};
pub use view::View;
