//! What homing's tests share.
//!
//! A [`Home`] is a temporary state folder with everything that lives in it; when it is dropped, whatever it started is ended, by pid,
//! and nothing is left behind. [`wait_for`] waits for a condition with a deadline and says what it last saw.

#![expect(clippy::missing_panics_doc, reason = "a test helper says by panicking that the test failed")]

mod ground;
mod home;
mod http;
mod kills;
mod mount;
mod output;
mod random;
mod receiver;
mod script;
mod storm;
mod terminal;
mod wait;

pub use ground::{Freezer, alive, copy_program, drift, freeze, gate, survivors_go, thaw, write_program};
pub use home::Home;
pub use http::{Answer, Reply, Sse};
pub use kills::Kills;
pub use output::{Output, left_out};
pub use random::Random;
pub use receiver::Receiver;
pub use script::{Request, Script};
pub use storm::{Storm, Stormed};
pub use wait::{PATIENCE, wait_for, wait_until};
