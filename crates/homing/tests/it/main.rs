//! homing as its users meet it: the real binary, real processes, a real database, in homes of their own.

mod cgroups;
mod completions;
mod config;
mod crash_daemon;
mod crash_keeper;
mod crash_shim;
mod environment;
mod events;
mod exec;
mod faults;
mod frozen_shim;
mod full_disk;
mod guarantees;
mod hooks;
mod http;
mod inbox;
mod input_given_up;
mod isolation;
mod keyboard;
mod keys;
mod leftovers;
mod lessons;
mod limits;
mod many_lost;
mod output_afterwards;
mod output_capture;
mod owners;
mod power_cut;
mod progress;
mod pty_input;
mod readme;
mod reboot;
mod retention;
mod revival;
mod secrets;
mod security;
mod stop;
mod submit_race;
mod unreadable;
mod vanished;
mod waiting;
mod webhooks;
mod wording;

use homing_testkit::Home;

/// A home for the binary under test.
fn home() -> Home {
    Home::new(env!("CARGO_BIN_EXE_homing"))
}
