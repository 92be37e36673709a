//! How old and how long, in few columns, and when that changes.

use crate::panel::Panel;

/// One unit is enough for an age.
pub(super) fn show(millis: u64) -> String {
    match millis / 1000 {
        seconds @ 0..=59 => format!("{seconds}s"),
        seconds @ 60..=3_599 => format!("{}m", seconds / 60),
        seconds @ 3_600..=86_399 => format!("{}h", seconds / 3_600),
        seconds => format!("{}d", seconds / 86_400),
    }
}

/// How long until it is written otherwise.
fn until_next(millis: u64) -> u64 {
    let unit = match millis / 1000 {
        0..=59 => 1_000,
        60..=3_599 => 60_000,
        3_600..=86_399 => 3_600_000,
        _ => 86_400_000,
    };
    unit - millis % unit
}

/// A duration of something that goes on: whole seconds.
pub(super) fn running(millis: u64) -> String {
    match millis / 1000 {
        seconds @ 0..=59 => format!("{seconds}s"),
        seconds @ 60..=3_599 => format!("{}m {:02}s", seconds / 60, seconds % 60),
        seconds @ 3_600..=86_399 => format!("{}h {:02}m", seconds / 3_600, seconds % 3_600 / 60),
        seconds => format!("{}d {}h", seconds / 86_400, seconds % 86_400 / 3_600),
    }
}

/// In how many milliseconds an age that is in sight is written otherwise.
pub(crate) fn next_age(panel: &Panel, height: usize) -> Option<u64> {
    if !super::list::shows_ages(panel.areas.list.width) {
        return None;
    }
    let ticking = super::list::shows_times(panel.areas.list.width);
    let rows = panel.roster.window(height).map(|(_, row)| row);
    rows.map(|row| {
        let age = until_next(panel.now.millis_since(row.created_at));
        match row.running_time(panel.now).filter(|_| ticking && row.ended_at.is_none()) {
            Some(time) if time < 3_600_000 => age.min(1_000 - time % 1_000),
            Some(time) => age.min(60_000 - time % 60_000),
            None => age,
        }
    })
    .min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_is_written_otherwise_when_it_says_it_is() {
        for millis in [0, 1, 999, 59_999, 60_000, 61_234, 3_599_999, 3_600_000, 86_400_000, 90_000_001] {
            let wait = until_next(millis);
            assert_eq!(show(millis), show(millis + wait - 1), "{millis}");
            assert_ne!(show(millis), show(millis + wait), "{millis}");
        }
    }
}
