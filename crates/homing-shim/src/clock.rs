//! Time in keeper and shim.
//!
//! Limits count monotonic time, in which suspend does not pass. Times for people are the wall clock at the start plus what has
//! passed since, suspend included, so that a clock that jumps in between cannot make an end precede its start.

use rustix::time::{ClockId, Timespec, clock_gettime};

use homing_sys::sys;

fn millis(clock: ClockId) -> i64 {
    let Timespec { tv_sec, tv_nsec } = clock_gettime(clock);
    tv_sec.saturating_mul(1000).saturating_add(tv_nsec / 1_000_000)
}

/// Monotonic milliseconds, without suspend.
pub(crate) fn monotonic() -> i64 {
    millis(ClockId::Monotonic)
}

/// Waits a moment, where there is no event to wait for.
pub(crate) fn pause(millis: i64) {
    let time = Timespec { tv_sec: millis / 1000, tv_nsec: millis % 1000 * 1_000_000 };
    let _ = rustix::thread::clock_nanosleep_relative(ClockId::Monotonic, &time);
}

/// The wall clock, read once and carried on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wall {
    offset: i64,
}

impl Wall {
    /// Reads the wall clock.
    pub(crate) fn read() -> Self {
        Self { offset: millis(ClockId::Realtime) - millis(ClockId::Boottime) }
    }

    /// When a process was started, by the kernel's ticks since boot, in milliseconds since the epoch.
    pub(crate) fn at_ticks(self, ticks: u64) -> i64 {
        let ticks = i64::try_from(ticks).unwrap_or(i64::MAX);
        self.offset.saturating_add(ticks.saturating_mul(1000) / sys::ticks_per_second())
    }

    /// Now, in milliseconds since the epoch.
    pub(crate) fn now(self) -> i64 {
        self.offset.saturating_add(millis(ClockId::Boottime))
    }
}
