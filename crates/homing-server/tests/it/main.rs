//! The routes over a real engine, a real socket and real processes.

#![expect(clippy::unwrap_used, reason = "what cannot be had fails the test")]

mod confine;
mod control;
mod events;
mod follow;
mod listener;
mod nesting;
mod output;
mod served;
mod sessions;
mod signin;
mod submit;
mod surface;
mod wait;
