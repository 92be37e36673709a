//! `homing`: runs commands in the background and brings every result home.
//!
//! This crate is the command line and the only one that prints: data to stdout, everything else to stderr. It reads the
//! environment once and passes it on, asks the daemon through `homing-client`, and starts one when a command needs it.

#![expect(clippy::result_large_err, reason = "a problem ends the command; its size is of no account")]

mod asking;
mod audience;
mod autostart;
mod capture;
mod circumstances;
mod cli;
mod columns;
mod command;
mod completion;
mod configuration;
mod console;
mod context;
mod draft;
mod entry;
mod exit_code;
mod failure;
mod foreground;
mod glance;
mod grid;
mod habit;
mod home;
mod hyperlink;
mod innermost;
mod interactive;
mod keyboard;
mod keys;
mod leftover;
#[cfg(test)]
mod man;
mod notice;
mod outlets;
mod printer;
mod program;
mod pump;
#[cfg(test)]
mod reference;
mod screen;
mod screens;
mod size;
mod spinner;
mod stamp;
mod stranger;
mod submission;
mod surroundings;
mod symbol;
mod table;
mod tail;
mod unread;
mod usage;
mod variables;
mod vocabulary;
mod wake;
mod wording;

use std::process::ExitCode;

fn main() -> ExitCode {
    if let Some(code) = entry::dispatch() {
        return code;
    }
    completion::answer_shell();
    cli::run()
}
