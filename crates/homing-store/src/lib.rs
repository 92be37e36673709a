//! The durable ledger.
//!
//! [`Store`] is a trait of whole operations: each is one transaction, takes the time as a parameter, and answers with plain data.
//! There is no query layer, so that another database can serve the same promises (P1, P5, P9, P12) behind the same words.
//! [`SqliteStore`] is the one that is always there; the feature `conformance` is the suite that every implementation has to pass.

pub mod census;
#[cfg(feature = "conformance")]
pub mod conformance;
pub mod outbox;
pub mod record;
pub mod reservation;
pub mod session;
pub mod sqlite;
pub mod store;

pub use census::{Census, Work};
pub use record::{NewTask, Record, Started, Stop, Tracking};
pub use reservation::{Handed, Take, Waiter};
pub use session::{Bind, Binding, SessionClaim};
pub use sqlite::SqliteStore;
pub use store::{Error, Store};
