//! When to draw: at once after a silence, then as often as it may cost.
//!
//! A drawing that takes long is made less often, so that drawing takes a small share of a processor whatever the size of the terminal, and still often enough
//! that what happens is shown within a tenth of a second.

use std::time::Duration;

use tokio::time::Instant;

/// At most thirty drawings a second.
const LEAST: Duration = Duration::from_millis(33);

/// However long one takes.
const MOST: Duration = Duration::from_millis(40);

/// What is not urgent waits so long for something that is.
const SOON: Duration = Duration::from_millis(250);

/// Drawing may take this part of the time.
const SHARE: u32 = 100;

/// Whether there is something to draw.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Dirty {
    No,
    Soon,
    Now,
}

#[derive(Debug)]
pub(super) struct Pace {
    last: Option<Instant>,
    between: Duration,
    dirty: Dirty,
}

impl Pace {
    /// Before the first drawing.
    pub(super) const fn new() -> Self {
        Self { last: None, between: LEAST, dirty: Dirty::Now }
    }

    pub(super) fn now(&mut self) {
        self.dirty = Dirty::Now;
    }

    pub(super) fn soon(&mut self) {
        self.dirty = self.dirty.max(Dirty::Soon);
    }

    /// When to draw; never if nothing changed. `now` is what time it is.
    pub(super) fn due(&self, now: Instant) -> Option<Instant> {
        let Some(last) = self.last else { return Some(now) };
        match self.dirty {
            Dirty::No => None,
            Dirty::Soon => Some(last + SOON),
            Dirty::Now => Some(last + self.between),
        }
    }

    /// When it was drawn last.
    pub(super) const fn last(&self) -> Option<Instant> {
        self.last
    }

    /// It was drawn, from then to then.
    pub(super) fn drawn(&mut self, from: Instant, to: Instant) {
        self.dirty = Dirty::No;
        self.last = Some(from);
        self.between = ((to - from) * SHARE).clamp(LEAST, MOST);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_waits_for_both_pauses_on_its_way_and_is_shown_well_within_a_tenth_of_a_second() {
        let worst = super::super::reader::LONGER + MOST;
        assert!(worst <= Duration::from_millis(75), "{worst:?} are left out of 100 ms for all the work");
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_drawn_when_nothing_changed_and_much_is_drawn_together() {
        let start = Instant::now();
        let millis = Duration::from_millis;
        let mut pace = Pace::new();
        assert_eq!(pace.due(start), Some(start), "the first time");
        pace.drawn(start, start + millis(1) / 10);
        assert_eq!(pace.due(start), None);
        pace.soon();
        assert_eq!(pace.due(start), Some(start + SOON));
        pace.now();
        pace.soon();
        assert_eq!(pace.due(start), Some(start + LEAST), "what is urgent stays so");
        pace.drawn(start, start + millis(9));
        pace.now();
        assert_eq!(pace.due(start), Some(start + MOST), "a slow one is made less often");
    }
}
