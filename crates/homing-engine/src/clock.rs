//! Time, injected.

use std::pin::Pin;
use std::time::Duration;

use homing_model::Timestamp;

/// A wait for a time of the clock.
pub type Sleep = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The wall clock may be set while somebody waits for it: nothing is overlooked for longer than this.
const LONGEST: Duration = Duration::from_secs(60);

/// Where the engine reads the wall clock, and waits for it. Durations are never computed from it.
pub trait Clock: Send + Sync + 'static {
    /// Now.
    fn now(&self) -> Timestamp;

    /// Waits until it is this time, or a minute: whoever waits looks at the clock again. A clock that does not run with the machine's
    /// has its own way to wait.
    fn sleep_until(&self, at: Timestamp) -> Sleep {
        // Times are cut to milliseconds: one more, so that it is not a moment before.
        let left = Duration::from_millis(at.millis_since(self.now()).saturating_add(1));
        Box::pin(tokio::time::sleep(left.min(LONGEST)))
    }
}

/// The machine's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
        Timestamp::from_millis(time.tv_sec.saturating_mul(1000).saturating_add(time.tv_nsec / 1_000_000))
    }
}
