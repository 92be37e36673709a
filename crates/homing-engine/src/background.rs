//! Background loops: each registers with a name and a purpose, and reports its runs and errors for `homing status --verbose`.
//!
//! A loop that returns or panics stays in the list as not running, so that its loss is visible.

use std::sync::Arc;
use std::time::Duration;

use homing_api::BackgroundLoop;
use parking_lot::Mutex;

use crate::clock::Clock;

/// The background loops of one daemon: those of the engine, and those that the server adds.
#[derive(Clone)]
pub struct Background {
    loops: Arc<Mutex<Vec<BackgroundLoop>>>,
    clock: Arc<dyn Clock>,
}

/// Reports what one loop does. Dropping it marks the loop as ended.
pub struct Reporter {
    background: Background,
    index: usize,
}

impl Background {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { loops: Arc::default(), clock }
    }

    /// Registers a loop. Without a period it runs on events only.
    #[must_use]
    pub fn register(&self, name: &str, purpose: &str, period: Option<Duration>) -> Reporter {
        let mut loops = self.loops.lock();
        loops.push(BackgroundLoop {
            name: name.to_owned(),
            purpose: purpose.to_owned(),
            running: true,
            period_ms: period.and_then(|period| u64::try_from(period.as_millis()).ok()),
            runs: 0,
            last_run_at: None,
            last_error: None,
            last_error_at: None,
        });
        Reporter { background: self.clone(), index: loops.len() - 1 }
    }

    /// Every loop, in the order of registration.
    #[must_use]
    pub fn loops(&self) -> Vec<BackgroundLoop> {
        self.loops.lock().clone()
    }
}

impl Reporter {
    /// A run begins.
    pub fn run(&self) {
        let now = self.background.clock.now();
        self.update(|entry| {
            entry.runs += 1;
            entry.last_run_at = Some(now);
        });
    }

    /// A run failed; the loop goes on.
    pub fn error(&self, error: &impl ToString) {
        let (now, error) = (self.background.clock.now(), error.to_string());
        self.update(|entry| {
            entry.last_error = Some(error);
            entry.last_error_at = Some(now);
        });
    }

    /// The configured period changed.
    pub fn set_period(&self, period: Duration) {
        self.update(|entry| entry.period_ms = u64::try_from(period.as_millis()).ok());
    }

    fn update(&self, change: impl FnOnce(&mut BackgroundLoop)) {
        let mut loops = self.background.loops.lock();
        if let Some(entry) = loops.get_mut(self.index) {
            change(entry);
        }
    }
}

impl Drop for Reporter {
    fn drop(&mut self) {
        self.update(|entry| entry.running = false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SystemClock;

    #[test]
    fn loops_show_runs_errors_and_their_end() {
        let background = Background::new(Arc::new(SystemClock));
        let reporter = background.register("pass", "checks", Some(Duration::from_secs(10)));
        reporter.run();
        reporter.run();
        reporter.error(&"the disk is full");
        let shown = &background.loops()[0];
        assert_eq!((shown.runs, shown.period_ms, shown.running), (2, Some(10_000), true));
        assert_eq!(shown.last_error.as_deref(), Some("the disk is full"));
        assert!(shown.last_run_at.is_some() && shown.last_error_at.is_some());
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || {
            let _moved = reporter;
            std::panic::resume_unwind(Box::new("a loop panics"));
        }));
        assert!(panicked.is_err());
        assert!(!background.loops()[0].running);
    }
}
