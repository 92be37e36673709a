//! What a task printed, as lines that can be drawn.

mod scrollback;
mod sgr;
mod tail;

pub use scrollback::Scrollback;
pub(crate) use scrollback::Line;
#[cfg_attr(not(feature = "live"), expect(unused_imports, reason = "only a live panel has raw bytes of other tasks"))]
pub(crate) use tail::last_line;
