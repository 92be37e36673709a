//! Brings notices to their targets.
//!
//! For a webhook, [`Endpoint`] says where it goes, [`Policy`] which addresses are open, [`Client`] makes the guarded connection, and
//! [`deliver`] makes one signed attempt and reports what it came to. [`Transports`] is what an engine delivers with: its outbox decides
//! what is attempted, and when.

mod allow;
mod client;
mod endpoint;
mod exchange;
pub mod guard;
mod range;
mod resolver;
mod retry_after;
mod secret;
mod tls;
mod transports;
pub mod wake;
mod webhook;

pub use allow::{Allow, Malformed as MalformedAllow};
pub use client::{Client, DEADLINE, Error};
pub use endpoint::{Caller, Endpoint, Refusal};
pub use exchange::{Answer, Phase};
pub use guard::Policy;
pub use homing_engine::AttemptResult;
pub use resolver::{Lookup, Resolver, System};
pub use secret::{Malformed as MalformedSecret, Secret};
pub use tls::{Error as TlsError, Roots};
pub use transports::{Transports, validate};
pub use webhook::{Malformed, Message, deliver};
