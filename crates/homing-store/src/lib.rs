//! The durable ledger.
//!
//! [`Store`] is a trait of whole operations: each is one transaction, takes the time as a parameter, and answers with plain data.
//! There is no query layer, so that another database can serve the same promises (P1, P5, P9, P12) behind the same words.

pub mod record;
pub mod store;

pub use record::{NewTask, Record, Started};
pub use store::{Error, Store};
