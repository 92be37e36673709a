//! One attendant per live task: it owns the connection to the shim, records what the shim says, and passes on what users ask.
//!
//! On cancel (shutdown) it drops the connection; the shim goes on alone and a later engine adopts it. On error it falls back to the
//! facts in the attempt's folder ([`recover`](crate::supervisor::recover)); what those do not show is left to the next reconcile pass.
//! Keeps P1, P2, P3 and P10.

mod attendant;
mod conversation;
mod launching;
mod link;
mod recording;
mod stillness;

pub(crate) use attendant::{Begin, attend};
pub(crate) use link::{Link, is_shortage, send};
pub(crate) use recording::forget_inputs;
pub(crate) mod ending;
pub(crate) mod keeper;
pub(crate) mod launch;
pub(crate) mod live;
pub(crate) mod orphans;
pub(crate) mod recover;
pub(crate) mod retry_commit;
pub(crate) mod thaw;
