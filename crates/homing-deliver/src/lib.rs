//! Brings notices to their targets.
//!
//! For a webhook, [`Endpoint`] says where it goes, [`Policy`] which addresses are open, [`Client`] makes the guarded connection, and
//! [`deliver`] makes one signed attempt and says what it came to. A command is handed to the engine, which runs it like a task. When the next one is made is decided by
//! `homing_model::schedule`. [`Dispatcher`] takes what is due out of the ledger, and [`Webhooks`] judges targets when a task is submitted.

mod allow;
mod client;
mod dispatcher;
mod endpoint;
mod exchange;
pub mod guard;
mod range;
mod resolver;
mod retry_after;
mod secret;
mod tls;
pub mod wake;
mod webhook;
mod webhooks;

pub use allow::{Allow, Malformed as MalformedAllow};
pub use client::{Client, DEADLINE, Error};
pub use dispatcher::Dispatcher;
pub use endpoint::{Caller, Endpoint, Refusal};
pub use exchange::{Answer, Phase};
pub use guard::Policy;
pub use resolver::{Lookup, Resolver, System};
pub use secret::{Malformed as MalformedSecret, Secret};
pub use tls::{Error as TlsError, Roots};
pub use webhook::{Attempt, Malformed, Message, deliver};
pub use webhooks::{Webhooks, validate};
