//! `homing`: runs commands in the background and brings every result home.
//!
//! This crate is the command line and the only one that prints: data to stdout, everything else to stderr. It reads the
//! environment once and passes it on, asks the daemon through `homing-client`, and starts one when a command needs it.

#![cfg_attr(all(not(test), target_os = "linux", target_env = "gnu"), no_main)]
#![expect(clippy::result_large_err, reason = "a problem ends the command; its size is of no account")]

mod cli;
mod commands;
mod daemon_control;
mod options;
mod render;
mod terminal;

#[cfg(not(all(not(test), target_os = "linux", target_env = "gnu")))]
fn main() -> std::process::ExitCode {
    cli::start::run().into()
}
