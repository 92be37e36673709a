//! What a task printed, as lines that can be drawn.

mod scrollback;
mod sgr;
#[cfg(feature = "live")]
mod tail;

pub(crate) use scrollback::Line;
pub use scrollback::Scrollback;
#[cfg(feature = "live")]
pub(crate) use tail::last_line;
