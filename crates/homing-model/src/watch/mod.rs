//! Notices of a task that runs: what is watched for, how often it is told, when silence is an alarm, when a heartbeat is due.
//!
//! All of it is pure: lines and times come in, what is to be told comes out. [`State`] is what the ledger keeps with each notice, so that
//! whoever reads the output on from [`State::scanned`] counts exactly what was not told yet, however often the daemon died.

mod breaker;
mod lines;
mod pace;
mod pattern;
mod silence;
mod state;

pub use breaker::{Breaker, Permit};
pub use lines::{LONGEST, Line, shown, split, without_escapes};
pub use pace::{FLOOD, FLOODS, Held, Pace, Telling, WINDOW_MS};
pub(crate) use pattern::one_or_many;
pub use pattern::{BadPattern, MOST_PATTERNS, Pattern, patterns};
pub use silence::{Beat, LEAST_MS, Quiet, beat, quiet};
pub use state::{State, Stretch};
