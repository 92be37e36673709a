//! When to restart the daemon: at once if it had served, later and later if it cannot start, and not for ever.

/// Failed starts in a row after which nobody tries any more until asked.
const GIVE_UP: u32 = 10;
/// Failed starts in a row that are taken for bad luck: a kill in the wrong moment.
const BAD_LUCK: u32 = 2;
const FIRST_PAUSE_MS: i64 = 50;
const LONGEST_PAUSE_MS: i64 = 30_000;
/// A daemon that served for less than this, so many times in a row, gets a pause too.
const SHORT_LIFE_MS: i64 = 1_000;
const SHORT_LIVES: u32 = 50;

/// What is known of past starts.
#[derive(Debug, Default)]
pub(super) struct Restart {
    failed: u32,
    short: u32,
}

impl Restart {
    /// The daemon died. When to start it again; none to give up.
    pub(super) fn after_death(&mut self, served: bool, lived_ms: i64) -> Option<i64> {
        if !served {
            self.failed += 1;
            if self.failed > GIVE_UP {
                return None;
            }
            return Some((FIRST_PAUSE_MS << (self.failed - 1).min(16)).min(LONGEST_PAUSE_MS));
        }
        self.failed = 0;
        self.short = if lived_ms < SHORT_LIFE_MS { self.short + 1 } else { 0 };
        Some(if self.short > SHORT_LIVES { SHORT_LIFE_MS } else { 0 })
    }

    /// Whether starts fail so often that whoever waits should be told.
    pub(super) const fn is_failing(&self) -> bool {
        self.failed > BAD_LUCK
    }

    /// Somebody asked: the past is forgiven.
    pub(super) fn forgive(&mut self) {
        self.failed = 0;
        self.short = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p4_a_daemon_that_served_is_restarted_at_once() {
        let mut restart = Restart::default();
        for _ in 0..20 {
            assert_eq!(restart.after_death(true, 5), Some(0));
        }
    }

    #[test]
    fn a_daemon_that_cannot_start_is_tried_later_and_later_and_then_given_up() {
        let mut restart = Restart::default();
        let pauses: Vec<_> = (0..11).map(|_| restart.after_death(false, 1)).collect();
        assert!(pauses.windows(2).all(|pair| pair[1].is_none() || pair[0] <= pair[1]));
        assert_eq!(pauses.last(), Some(&None));
        restart.forgive();
        assert_eq!(restart.after_death(false, 1), Some(FIRST_PAUSE_MS));
    }

    #[test]
    fn one_start_that_failed_is_bad_luck_and_three_are_not() {
        let mut restart = Restart::default();
        let told: Vec<_> = (0..3).map(|_| (restart.after_death(false, 1), restart.is_failing()).1).collect();
        assert_eq!(told, [false, false, true]);
    }
}
