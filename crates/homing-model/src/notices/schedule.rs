//! When a delivery is tried again: CONTRACT 4 as a pure function of what was tried, what came of it, the time and a share of chance.
//!
//! Ten attempts over three days: at once, then with growing pauses. Chance moves each pause by a tenth at most, so that notices which
//! failed together are not all tried again together.

use std::fmt;

use crate::time::Timestamp;

const SECOND: u64 = 1_000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;

/// The pause after each failed attempt, in milliseconds. The first attempt is made at once and has none before it.
const PAUSES: [u64; 9] =
    [5 * SECOND, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR, 10 * HOUR, 14 * HOUR, 20 * HOUR, 24 * HOUR];

/// How many attempts a delivery has.
pub const ATTEMPTS: u32 = PAUSES.len() as u32 + 1;

/// The farthest that a receiver can put off the next attempt, in milliseconds.
const FARTHEST: u64 = 24 * HOUR;

/// The pause after the first busy answer, and the one beyond which they no longer grow, in milliseconds.
const BUSY: (u64, u64) = (SECOND, MINUTE);

/// What was tried so far, the last time included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tries {
    /// Attempts spent.
    pub attempts: u32,
    /// How often in a row the target was busy. That spends nothing.
    pub busy: u32,
}

/// What came of one try.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The target has it.
    Delivered,
    /// The target wants nothing more, ever.
    Gone,
    /// It did not arrive, or was not taken.
    Failed {
        /// One line for people.
        why: String,
        /// The time before which the target does not want to be asked again.
        retry_after: Option<Timestamp>,
    },
    /// The target is there and cannot take it now; this is no attempt.
    Busy,
}

/// What happens to the delivery next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// It is tried again, not before this time.
    At(Timestamp),
    /// It is given up.
    Dead(Reason),
    /// It is done.
    Delivered,
}

/// Why a delivery was given up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// The target said that it wants nothing more.
    Gone,
    /// The last attempt failed.
    Exhausted {
        /// How many there were.
        attempts: u32,
        /// What the last one said.
        last: String,
    },
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gone => f.write_str("the receiver is gone (410) and wants nothing more"),
            Self::Exhausted { attempts, last } => write!(f, "{attempts} attempts failed; the last: {last}"),
        }
    }
}

/// What to do after a try. `chance` is a share from 0 to 1.
///
/// A receiver's wish to be left alone longer is granted, up to a day; it never makes the next attempt earlier.
#[must_use]
pub fn after(tries: Tries, verdict: &Verdict, now: Timestamp, chance: f64) -> Next {
    match verdict {
        Verdict::Delivered => Next::Delivered,
        Verdict::Gone => Next::Dead(Reason::Gone),
        Verdict::Busy => Next::At(later(now, jittered(busy_pause(tries.busy), chance))),
        Verdict::Failed { why, retry_after } => {
            let Some(pause) = pause(tries.attempts) else {
                return Next::Dead(Reason::Exhausted { attempts: tries.attempts, last: why.clone() });
            };
            let planned = later(now, jittered(pause, chance));
            let wished = retry_after.map(|wish| wish.min(later(now, FARTHEST)));
            Next::At(wished.map_or(planned, |wish| wish.max(planned)))
        }
    }
}

/// The pause after this many failed attempts; none after the last.
fn pause(attempts: u32) -> Option<u64> {
    let index = usize::try_from(attempts.saturating_sub(1)).unwrap_or(usize::MAX);
    PAUSES.get(index).copied()
}

/// Doubles with each busy answer in a row, from one second to a minute.
fn busy_pause(times: u32) -> u64 {
    let (first, longest) = BUSY;
    first.saturating_mul(1 << times.saturating_sub(1).min(16)).min(longest)
}

/// Between nine and eleven tenths of the pause.
fn jittered(pause: u64, chance: f64) -> u64 {
    // A share that is none counts as the middle: chance must never decide whether a delivery is made.
    let share = if chance.is_finite() { chance.clamp(0.0, 1.0) } else { 0.5 };
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a fifth of a day in milliseconds fits, and the share is not negative"
    )]
    let extra = (pause as f64 / 5.0 * share) as u64;
    pause - pause / 10 + extra
}

fn later(now: Timestamp, millis: u64) -> Timestamp {
    now.after_millis(millis)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_789_000_000_000);

    fn failed(retry_after: Option<Timestamp>) -> Verdict {
        Verdict::Failed { why: "connection refused".to_owned(), retry_after }
    }

    fn tries(attempts: u32) -> Tries {
        Tries { attempts, busy: 0 }
    }

    #[test]
    fn ten_attempts_over_three_days_then_dead() {
        let mut now = NOW;
        let mut pauses = Vec::new();
        let mut attempts = 1;
        let reason = loop {
            match after(tries(attempts), &failed(None), now, 0.5) {
                Next::At(next) => {
                    pauses.push(next.millis_since(now) / SECOND);
                    now = next;
                    attempts += 1;
                }
                Next::Dead(reason) => break reason,
                Next::Delivered => panic!("nothing was delivered"),
            }
        };
        assert_eq!(pauses, [5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400]);
        assert_eq!(attempts, ATTEMPTS);
        assert_eq!(now.millis_since(NOW) / MINUTE, 75 * 60 + 35);
        assert_eq!(reason.to_string(), "10 attempts failed; the last: connection refused");
    }

    #[test]
    fn gone_is_the_end_at_once_and_delivered_is_done() {
        assert_eq!(after(tries(1), &Verdict::Gone, NOW, 0.5), Next::Dead(Reason::Gone));
        assert_eq!(after(tries(10), &Verdict::Delivered, NOW, 0.5), Next::Delivered);
    }

    #[test]
    fn a_wish_is_granted_up_to_a_day_and_never_makes_it_earlier() {
        let wish = |millis: u64| failed(Some(later(NOW, millis)));
        assert_eq!(after(tries(1), &wish(MINUTE), NOW, 0.5), Next::At(later(NOW, MINUTE)));
        assert_eq!(after(tries(1), &wish(1), NOW, 0.5), Next::At(later(NOW, 5 * SECOND)));
        assert_eq!(after(tries(1), &wish(90 * 24 * HOUR), NOW, 0.5), Next::At(later(NOW, 24 * HOUR)));
        let past = failed(Some(Timestamp::from_millis(0)));
        assert_eq!(after(tries(1), &past, NOW, 0.5), Next::At(later(NOW, 5 * SECOND)));
        assert!(
            matches!(after(tries(10), &wish(MINUTE), NOW, 0.5), Next::Dead(_)),
            "the last one is the last"
        );
    }

    #[test]
    fn busy_spends_nothing_and_waits_longer_each_time_up_to_a_minute() {
        let pauses = (1..9).map(|busy| match after(Tries { attempts: 9, busy }, &Verdict::Busy, NOW, 0.5) {
            Next::At(next) => next.millis_since(NOW) / SECOND,
            other => panic!("{other:?}"),
        });
        assert_eq!(pauses.collect::<Vec<_>>(), [1, 2, 4, 8, 16, 32, 60, 60]);
    }

    proptest! {
        #[test]
        fn chance_moves_a_pause_by_a_tenth_at_most(attempts in 1u32..10, chance: f64) {
            let base = PAUSES[attempts as usize - 1];
            let Next::At(next) = after(tries(attempts), &failed(None), NOW, chance) else { panic!() };
            let pause = next.millis_since(NOW);
            prop_assert!(pause >= base - base / 10 && pause <= base + base / 10, "{} for {}", pause, base);
        }

        #[test]
        fn the_next_attempt_is_never_before_the_wish_nor_beyond_a_day_and_a_tenth(
            attempts in 0u32..20, chance in 0.0f64..=1.0, wish: Option<i64>,
        ) {
            let wish = wish.map(Timestamp::from_millis);
            if let Next::At(next) = after(tries(attempts), &failed(wish), NOW, chance) {
                prop_assert!(next > NOW);
                prop_assert!(next.millis_since(NOW) <= FARTHEST + FARTHEST / 10);
                let honoured = wish.is_none_or(|wish| next >= wish || next >= later(NOW, FARTHEST));
                prop_assert!(honoured);
            } else {
                prop_assert!(attempts >= ATTEMPTS);
            }
        }

        #[test]
        fn busy_is_never_the_end(attempts: u32, busy: u32, chance: f64) {
            let Next::At(next) = after(Tries { attempts, busy }, &Verdict::Busy, NOW, chance) else { panic!() };
            prop_assert!((900..=66_000).contains(&next.millis_since(NOW)));
        }
    }
}
