//! homing as its users meet it: the real binary, real processes, a real database, in homes of their own.

mod agent_hooks;
mod agents;
mod ask;
mod ask_crashes;
mod ask_sessions;
mod attach;
mod attach_viewers;
mod cgroups;
mod completions;
mod config;
mod crash_daemon;
mod crash_keeper;
mod crash_shim;
mod damaged_delivery;
mod deliveries_matrix;
mod desktop;
mod environment;
mod events;
mod exec;
mod external;
mod external_process;
mod faults;
mod frozen_shim;
mod full_disk;
mod guarantees;
mod harness;
mod hooks;
mod hostile;
mod http;
mod inbox;
mod input_given_up;
mod install;
mod isolation;
mod keyboard;
mod keys;
mod kills;
mod leftovers;
mod lessons;
mod limits;
mod list_watch;
mod listener;
mod many_lost;
mod mcp;
mod nesting;
mod operator;
mod output_afterwards;
mod output_capture;
mod owners;
mod power_cut;
mod progress;
mod pty_input;
mod quiet;
mod readme;
mod reboot;
mod rerun;
mod retention;
mod revival;
mod schedule;
mod seat;
mod secrets;
mod security;
mod show;
mod spinner;
mod stop;
mod submit_race;
mod told;
mod ui;
mod unreadable;
mod vanished;
mod waiting;
mod wake_claude;
mod wake_others;
mod wakes;
mod watch_windows;
mod watches;
mod webhooks;
mod wording;

use homing_testkit::Home;

/// A home for the binary under test.
fn home() -> Home {
    Home::new(env!("CARGO_BIN_EXE_homing"))
}
