//! `homing`: runs commands in the background and brings every result home.
//!
//! This crate is the command line and the only one that prints: data to stdout, everything else to stderr. It reads the
//! environment once and passes it on, asks the daemon through `homing-client`, and starts one when a command needs it.

#![expect(clippy::result_large_err, reason = "a problem ends the command; its size is of no account")]

mod cli;
mod commands;
mod daemon_control;
mod options;
mod render;
mod terminal;

/// This binary is also the keeper, the daemon and the waker, and answers a shell that completes a line.
fn main() -> std::process::ExitCode {
    let code = cli::entry::dispatch().unwrap_or_else(|| {
        cli::completion::answer_shell();
        cli::grammar::run()
    });
    code.into()
}
