//! `homing`: runs commands in the background and brings every result home.
//!
//! This crate is the command line and the only one that prints: data to stdout, everything else to stderr. It reads the
//! environment once and passes it on, asks the daemon through `homing-client`, and starts one when a command needs it.

#![cfg_attr(all(not(test), target_os = "linux", target_env = "gnu"), no_main)]
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
mod plain;
mod printer;
mod program;
mod pump;
#[cfg(test)]
mod reference;
mod screen;
mod screens;
mod silent;
mod size;
mod spinner;
mod stamp;
mod start;
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

#[cfg(not(all(not(test), target_os = "linux", target_env = "gnu")))]
fn main() -> std::process::ExitCode {
    start::run().into()
}
