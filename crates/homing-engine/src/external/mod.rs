//! External tasks: somebody else runs them, and tells.
//!
//! # Theory of operation
//!
//! Such a task is accepted like any other and runs from then on: there is no folder, no shim, no launch. It ends when somebody
//! [completes](complete) it, stops it, or when what it is [tracked](track) by is gone: a [lease] that nobody renewed, or a [foreign] process.
//! All of these are the ledger's one compare-and-set, so the first wins (P1). How a foreign process ended is not ours to know, and a silence
//! tells nothing: both are `lost`, with the reason (P2).
//!
//! A lease counts only time in which this engine could hear. It is kept in memory, by the monotonic clock: an engine that opens a home
//! begins every lease anew, and so does one that finds that it was asleep. The [roll] holds what is tracked; one timer serves them all.

mod adopt;
mod complete;
mod foreign;
mod heartbeat;
mod lease;
mod lose;
mod own;
mod roll;
mod track;

pub(crate) use adopt::{adopt, mend};
pub(crate) use foreign::Foreign;
pub(crate) use lease::run;
pub(crate) use roll::Roll;
pub(crate) use track::{absent, accept, begin, settled};
