//! The breaker over all tasks: where too many matches are told in all, none is for a while.

use std::collections::VecDeque;

use crate::time::Timestamp;

/// So many notices in [`SPAN_MS`] trip it.
const MOST: usize = 15;
/// The stretch that is looked at.
const SPAN_MS: i64 = 10_000;
/// How long nothing is told then.
const PAUSE_MS: i64 = 30_000;

/// Counts notices of matches over a whole home. In memory only: with the daemon it is forgotten, and what it held back is told.
#[derive(Debug, Default)]
pub struct Breaker {
    told: VecDeque<Timestamp>,
    until: Option<Timestamp>,
}

/// Whether a match may be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Permit {
    /// Yes; it counts.
    Tell,
    /// Not before then. `tripped` is true once for each pause: whoever gets it tells of the pause.
    Wait {
        /// When to ask again.
        until: Timestamp,
        /// This call began the pause.
        tripped: bool,
    },
}

impl Breaker {
    /// Until when nothing is told, if so.
    #[must_use]
    pub fn paused(&self, now: Timestamp) -> Option<Timestamp> {
        // A pause that seems longer than any is one of a clock that was set back.
        self.until.filter(|until| *until > now && until.millis_since(now) <= PAUSE_MS.unsigned_abs())
    }

    /// Asks to tell one match.
    pub fn ask(&mut self, now: Timestamp) -> Permit {
        if let Some(until) = self.paused(now) {
            return Permit::Wait { until, tripped: false };
        }
        self.until = None;
        let counts = |told: &Timestamp| *told <= now && now.millis_since(*told) < SPAN_MS.unsigned_abs();
        self.told.retain(counts);
        if self.told.len() >= MOST {
            let until = now.plus_millis(PAUSE_MS);
            self.until = Some(until);
            self.told.clear();
            return Permit::Wait { until, tripped: true };
        }
        self.told.push_back(now);
        Permit::Tell
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(1_790_000_000_000 + millis)
    }

    #[test]
    fn fifteen_in_ten_seconds_pause_all_for_thirty_and_it_is_told_once() {
        let mut breaker = Breaker::default();
        for n in 0..15 {
            assert_eq!(breaker.ask(at(n * 100)), Permit::Tell);
        }
        let until = at(31_500);
        assert_eq!(breaker.ask(at(1_500)), Permit::Wait { until, tripped: true });
        assert_eq!(breaker.ask(at(31_499)), Permit::Wait { until, tripped: false });
        assert_eq!((breaker.paused(at(31_499)), breaker.paused(until)), (Some(until), None));
        assert_eq!(breaker.ask(until), Permit::Tell);
    }

    #[test]
    fn a_steady_pace_never_trips_it_and_a_clock_set_back_does_not_hold_it() {
        let mut breaker = Breaker::default();
        for n in 0..200 {
            assert_eq!(breaker.ask(at(n * 667)), Permit::Tell, "{n}");
        }
        for _ in 0..16 {
            let _ = breaker.ask(at(200_000_000));
        }
        assert_eq!(breaker.ask(at(0)), Permit::Tell);
    }

    proptest! {
        #[test]
        fn never_more_than_fifteen_in_any_ten_seconds(pauses in proptest::collection::vec(0_i64..2_000, 1..200)) {
            let mut breaker = Breaker::default();
            let (mut now, mut told) = (0, Vec::new());
            for pause in pauses {
                now += pause;
                if breaker.ask(at(now)) == Permit::Tell {
                    told.push(now);
                }
            }
            prop_assert!(told.windows(MOST + 1).all(|some| some[MOST] - some[0] >= SPAN_MS));
        }
    }
}
