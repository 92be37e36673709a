//! Waiting for a condition: bounded, level-triggered, and with the last state in the message.

use std::fmt::Debug;
use std::time::{Duration, Instant};

/// Long enough for a loaded machine; a test that needs it has found a bug or a very slow disk.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Looks until `probe` gives something, and panics with `what` if it does not in time.
pub fn wait_for<T>(what: &str, mut probe: impl FnMut() -> Option<T>) -> T {
    wait_until(what, PATIENCE, || probe().ok_or("nothing yet"))
}

/// Looks until `probe` succeeds, and panics with `what` and its last error if it does not within `patience`.
#[expect(
    clippy::disallowed_methods,
    reason = "tests wait for real processes in real time; this is the one place that does"
)]
pub fn wait_until<T, E: Debug>(what: &str, patience: Duration, mut probe: impl FnMut() -> Result<T, E>) -> T {
    let deadline = Instant::now() + patience;
    let mut pause = Duration::from_millis(1);
    loop {
        match probe() {
            Ok(found) => return found,
            Err(last) if Instant::now() >= deadline => {
                panic!("waited {patience:?} for {what}; last seen: {last:?}")
            }
            Err(_) => {}
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}
