//! Time, injected.

use homing_model::Timestamp;

/// Where the engine reads the wall clock. Durations are never computed from it.
pub trait Clock: Send + Sync + 'static {
    /// Now.
    fn now(&self) -> Timestamp;
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
