//! Webhooks against real sockets: what arrives, what is refused, what comes of a receiver that misbehaves, and what others' verifiers say.

#![expect(clippy::unwrap_used, reason = "what cannot be had fails the test")]
#![expect(clippy::print_stdout, reason = "a test that skips itself says so")]

mod attempt;
mod encrypted;
mod endpoint;
mod guard;
mod message;
mod misbehaviour;
mod rebinding;
mod support;
mod verifiers;
