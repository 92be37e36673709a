//! How often matches of one pattern are told: the first at once, then one notice per window with the count of those held back.
//!
//! Every match is either the one that a notice tells or counted in the `held_back` of one notice (or of the completion): their sum is the
//! number of matches. A window in which [`FLOOD`] or more were held back is a flood; after [`FLOODS`] of them the pattern is off, and the
//! notice says why. Floods are forgotten after ten minutes without one.

use serde::{Deserialize, Serialize};

use crate::time::Timestamp;

/// Between two notices at least.
pub const WINDOW_MS: i64 = 15_000;
/// So many held back in a window are a flood.
pub const FLOOD: u64 = 10;
/// So many floods turn the watch off.
pub const FLOODS: u32 = 3;
/// A flood counts this long.
const FORGIVEN_MS: i64 = 600_000;

/// What is known of one pattern.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Pace {
    /// When it was last told of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub told_at: Option<Timestamp>,
    /// Matches that were not told yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held: Option<Held>,
    /// Floods that still count.
    pub floods: u32,
    /// When the last one was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flood_at: Option<Timestamp>,
    /// It matched too often, and is no longer watched for.
    pub off: bool,
}

/// Matches that were not told yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// How many.
    pub count: u64,
    /// The last of them, as it is told.
    pub line: String,
}

/// What is to be told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Telling {
    /// The last line that matched.
    pub line: String,
    /// Others since the last notice.
    pub held_back: u64,
    /// Why there will be no more, if so.
    pub explanation: Option<String>,
}

impl Pace {
    /// So many lines matched, and this is the last of them.
    pub fn matched(&mut self, count: u64, line: String) {
        let count = self.waiting().saturating_add(count);
        self.held = Some(Held { count, line });
    }

    /// How many matches wait to be told.
    #[must_use]
    pub fn waiting(&self) -> u64 {
        self.held.as_ref().map_or(0, |held| held.count)
    }

    /// From when on a match may be told. A clock that was set back holds nothing up.
    #[must_use]
    pub fn free(&self, now: Timestamp) -> Timestamp {
        let window = self.told_at.filter(|told| *told <= now).map(|told| told.plus_millis(WINDOW_MS));
        window.unwrap_or(now)
    }

    /// The same for what is held back; none if there is nothing.
    #[must_use]
    pub fn due(&self, now: Timestamp) -> Option<Timestamp> {
        self.held.as_ref().map(|_| self.free(now))
    }

    /// Takes what is to be told now.
    pub fn tell(&mut self, now: Timestamp) -> Option<Telling> {
        if self.due(now)? > now {
            return None;
        }
        let Held { count, line } = self.held.take()?;
        let held_back = count.saturating_sub(1);
        // By the rate, since a notice may come late: the breaker was open, or there was no daemon.
        let since = self.told_at.map_or(0, |told| now.millis_since(told)).max(WINDOW_MS.unsigned_abs());
        let flood = held_back.saturating_mul(WINDOW_MS.unsigned_abs()) >= FLOOD.saturating_mul(since);
        if flood {
            let counts =
                |at: Timestamp| at <= now && now.millis_since(at) < FORGIVEN_MS.unsigned_abs() + since;
            self.floods = if self.flood_at.is_some_and(counts) { self.floods + 1 } else { 1 };
            self.flood_at = Some(now);
            self.off = self.floods >= FLOODS;
        }
        self.told_at = Some(now);
        let explanation = self.off.then(|| {
            format!("this pattern matches too often ({FLOODS} floods of {FLOOD} or more in 15 s): it is no longer watched for")
        });
        Some(Telling { line, held_back, explanation })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(1_790_000_000_000 + millis)
    }

    /// So many matches at one moment, each followed by a look.
    fn burst(pace: &mut Pace, count: u64, now: Timestamp) -> Vec<Telling> {
        (1..=count)
            .filter_map(|n| {
                pace.matched(1, format!("line {n}"));
                pace.tell(now)
            })
            .collect()
    }

    #[test]
    fn a_thousand_matches_at_once_are_one_notice_and_one_more_when_the_window_is_over() {
        let mut pace = Pace::default();
        let told = burst(&mut pace, 1_000, at(0));
        assert_eq!(told.len(), 1);
        assert_eq!((told[0].line.as_str(), told[0].held_back), ("line 1", 0));
        assert_eq!(pace.due(at(1)), Some(at(15_000)));
        assert_eq!(pace.tell(at(14_999)), None);
        let later = pace.tell(at(15_000)).unwrap();
        assert_eq!((later.line.as_str(), later.held_back, later.explanation), ("line 1000", 998, None));
        assert_eq!((pace.due(at(15_001)), pace.tell(at(90_000))), (None, None), "and then nothing is due");
    }

    #[test]
    fn matches_that_are_far_apart_are_each_told_at_once() {
        let mut pace = Pace::default();
        for n in 0..20 {
            let told = burst(&mut pace, 1, at(n * 15_000));
            assert_eq!((told.len(), told[0].held_back), (1, 0));
        }
        assert!(!pace.off);
    }

    #[test]
    fn after_three_floods_one_explanation_and_the_watch_is_off() {
        let mut pace = Pace::default();
        let mut told = Vec::new();
        for second in 0..100 {
            told.extend(burst(&mut pace, 5, at(second * 1_000)));
            if pace.off {
                break;
            }
        }
        let explained: Vec<_> = told.iter().map(|telling| telling.explanation.is_some()).collect();
        assert_eq!(explained, [false, false, false, true], "at 0, 15, 30 and 45 s");
    }

    #[test]
    fn nine_in_a_window_are_no_flood_and_floods_are_forgotten_in_time() {
        let mut pace = Pace::default();
        for window in 0..20 {
            let _ = burst(&mut pace, 10, at(window * 15_000));
        }
        assert!(!pace.off && pace.floods == 0);
        for day in 1..20 {
            let _ = burst(&mut pace, 50, at(day * 86_400_000));
            let _ = pace.tell(at(day * 86_400_000 + 15_000));
            assert!(!pace.off && pace.floods == 1);
        }
    }

    #[test]
    fn three_floods_count_even_with_calm_between_them() {
        let mut pace = Pace::default();
        for burst_at in [0, 100_000, 200_000] {
            let _ = burst(&mut pace, 50, at(burst_at));
            let _ = pace.tell(at(burst_at + 15_000));
        }
        assert!(pace.off);
    }

    #[test]
    fn a_clock_that_was_set_back_holds_nothing_up() {
        let mut pace = Pace::default();
        let _ = burst(&mut pace, 1, at(3_600_000));
        assert_eq!(burst(&mut pace, 1, at(0)).len(), 1);
    }

    proptest! {
        #[test]
        fn every_match_is_told_or_counted_once_and_no_two_notices_are_close(
            steps in proptest::collection::vec((0_i64..20_000, 0_u64..30), 1..60)
        ) {
            let (mut pace, mut now, mut matches, mut accounted) = (Pace::default(), 0, 0, 0);
            let mut last: Option<i64> = None;
            for (pause, count) in steps {
                now += pause;
                let mut told: Vec<_> = pace.tell(at(now)).into_iter().collect();
                if !pace.off {
                    told.extend(burst(&mut pace, count, at(now)));
                    matches += count;
                }
                for telling in told {
                    prop_assert!(last.is_none_or(|last| now - last >= WINDOW_MS));
                    last = Some(now);
                    accounted += 1 + telling.held_back;
                }
                // What the ledger keeps says it all.
                let kept = serde_json::to_string(&pace).unwrap();
                pace = serde_json::from_str(&kept).unwrap();
            }
            prop_assert_eq!(accounted + pace.waiting(), matches);
        }
    }
}
