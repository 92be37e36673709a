//! When silence is an alarm, and when a heartbeat is due.

use crate::time::Timestamp;

/// No alarm and no heartbeat comes in less.
pub const LEAST_MS: u64 = 100;

/// What a silence means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quiet {
    /// It was told: nothing, until there is new output.
    Told,
    /// It may become an alarm then.
    At(Timestamp),
    /// It is one, for so many milliseconds.
    Alarm(u64),
}

/// Judges a silence: the last output was at `last`, and there are `end` bytes of it; the last alarm was told at `told` bytes.
#[must_use]
pub fn quiet(after_ms: u64, last: Timestamp, end: u64, told: Option<u64>, now: Timestamp) -> Quiet {
    if told == Some(end) {
        return Quiet::Told;
    }
    let silent = now.millis_since(last);
    if silent >= after_ms {
        return Quiet::Alarm(silent);
    }
    // From now, should the clock have been set back behind the output.
    Quiet::At(now.after_millis(after_ms - silent))
}

/// What is to be done for a heartbeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beat {
    /// Nothing before then.
    At(Timestamp),
    /// Tell what is new.
    Tell,
    /// It is time, and there is nothing new.
    Skip,
}

/// Judges whether a heartbeat is due: the last one (or the start) was at `last` and told up to `told` of `end` bytes.
#[must_use]
pub fn beat(every_ms: u64, last: Timestamp, told: u64, end: u64, now: Timestamp) -> Beat {
    let since = now.millis_since(last);
    if since < every_ms {
        return Beat::At(now.after_millis(every_ms - since));
    }
    if end > told { Beat::Tell } else { Beat::Skip }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(1_790_000_000_000 + millis)
    }

    #[test]
    fn a_silence_is_told_once_and_a_new_one_again() {
        assert_eq!(quiet(500, at(0), 7, None, at(100)), Quiet::At(at(500)));
        assert_eq!(quiet(500, at(0), 7, None, at(500)), Quiet::Alarm(500));
        assert_eq!(quiet(500, at(0), 7, Some(7), at(9_000)), Quiet::Told);
        assert_eq!(quiet(500, at(9_000), 8, Some(7), at(9_001)), Quiet::At(at(9_500)));
        assert_eq!(quiet(500, at(9_000), 8, Some(7), at(9_600)), Quiet::Alarm(600));
        assert_eq!(quiet(500, at(9_000), 0, None, at(0)), Quiet::At(at(500)), "the clock was set back");
        assert_eq!(quiet(u64::MAX, at(0), 0, None, at(1)), Quiet::At(at(1).plus_millis(i64::MAX)));
    }

    #[test]
    fn a_heartbeat_waits_for_its_time_and_for_something_new() {
        assert_eq!(beat(1_000, at(0), 0, 9, at(400)), Beat::At(at(1_000)));
        assert_eq!(beat(1_000, at(0), 0, 9, at(1_000)), Beat::Tell);
        assert_eq!(beat(1_000, at(0), 9, 9, at(5_000)), Beat::Skip);
        assert_eq!(beat(1_000, at(5_000), 9, 12, at(0)), Beat::At(at(1_000)), "the clock was set back");
    }
}
