//! The clock: schedules, ages and TLS go by it, and a ledger remembers what it said.

use std::path::Path;

use homing_model::Timestamp;
use homing_model::units::show_duration;
use homing_sys::home::{DATABASE, LOG};

use super::Check;

const NAME: &str = "clock";

/// No daemon was ever run before this release was made (2025-01-01).
const BEGINNING: i64 = 1_735_689_600_000;

/// Files may be a little ahead: the clock of the kernel's files is coarser.
const LITTLE_MS: u64 = 60_000;

/// Whether it is set, and was not set back since the home was last written.
pub(super) fn clock(home: &Path, now: Timestamp) -> Check {
    let newest = [DATABASE, &format!("{DATABASE}-wal"), LOG]
        .iter()
        .filter_map(|name| std::fs::metadata(home.join(name)).ok()?.modified().ok())
        .map(Timestamp::from)
        .max();
    judge(now, newest)
}

fn judge(now: Timestamp, newest: Option<Timestamp>) -> Check {
    if now.as_millis() < BEGINNING {
        return Check::fail(
            NAME,
            format!("it says {now}, which cannot be"),
            "Set it (`timedatectl set-ntp true`, or `date`): schedules and TLS need it.",
        );
    }
    match newest {
        Some(newest) if newest.millis_since(now) > LITTLE_MS => Check::warn(
            NAME,
            format!(
                "the home was written {} in the future: the clock was set back",
                show_duration(newest.millis_since(now))
            ),
            "If it is right now, nothing is lost: what waits for a time waits that much longer.",
        ),
        Some(_) | None => Check::ok(NAME, format!("{now}, not set back since the home was written")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::State;
    use super::*;

    #[test]
    fn a_clock_that_was_never_set_and_one_that_was_set_back_are_told() {
        let at = Timestamp::from_millis;
        assert_eq!(judge(at(5), None).state, State::Fail);
        assert_eq!(judge(at(BEGINNING), Some(at(BEGINNING + 3_600_000))).state, State::Warn);
        assert_eq!(judge(at(BEGINNING), Some(at(BEGINNING + 1_000))).state, State::Ok);
        assert_eq!(judge(at(BEGINNING), None).state, State::Ok);
    }
}
