//! Counters and histograms that cost an addition where something happens and nothing where nobody reads them.
//!
//! They are atomics without order between them: a reading is not one moment, but each number is a true one, and none ever goes back.

use std::sync::atomic::{AtomicU64, Ordering};

/// How often something happened.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Once more.
    pub fn add(&self) {
        self.add_many(1);
    }

    /// So many times more.
    pub fn add_many(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    /// How often so far.
    pub fn read(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Bounds of times, in microseconds: from a fifth of a millisecond to a minute.
pub const TIMES: [u64; 14] = [
    200, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 10_000_000,
    60_000_000,
];

/// Bounds of numbers of things that were done together.
pub const SIZES: [u64; 9] = [1, 2, 4, 8, 16, 32, 64, 128, 256];

/// How often a value was at most each of `N` bounds.
#[derive(Debug)]
pub struct Histogram<const N: usize> {
    bounds: &'static [u64; N],
    counts: [AtomicU64; N],
    beyond: AtomicU64,
    sum: AtomicU64,
}

impl Histogram<14> {
    /// Of times, observed in microseconds.
    #[must_use]
    pub fn of_times() -> Self {
        Self::new(&TIMES)
    }
}

impl Histogram<9> {
    /// Of numbers of things.
    #[must_use]
    pub fn of_sizes() -> Self {
        Self::new(&SIZES)
    }
}

impl<const N: usize> Histogram<N> {
    fn new(bounds: &'static [u64; N]) -> Self {
        Self {
            bounds,
            counts: std::array::from_fn(|_| AtomicU64::new(0)),
            beyond: AtomicU64::new(0),
            sum: AtomicU64::new(0),
        }
    }

    /// One more value.
    pub fn observe(&self, value: u64) {
        let place = self.bounds.iter().position(|bound| value <= *bound);
        let count = place.and_then(|place| self.counts.get(place)).unwrap_or(&self.beyond);
        count.fetch_add(1, Ordering::Relaxed);
        self.sum.fetch_add(value, Ordering::Relaxed);
    }

    /// How it is now.
    #[must_use]
    pub fn read(&self) -> Reading {
        let counts = self.counts.iter().map(|count| count.load(Ordering::Relaxed));
        Reading {
            buckets: self.bounds.iter().copied().zip(counts).collect(),
            beyond: self.beyond.load(Ordering::Relaxed),
            sum: self.sum.load(Ordering::Relaxed),
        }
    }
}

/// A histogram as it was read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reading {
    /// Each bound, and how many values were at most that and above the one before.
    pub buckets: Vec<(u64, u64)>,
    /// How many were above the last.
    pub beyond: u64,
    /// All values together.
    pub sum: u64,
}

impl Reading {
    /// How many values there were.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.buckets.iter().map(|(_, count)| count).sum::<u64>() + self.beyond
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_falls_into_the_first_bucket_that_has_room_for_it() {
        let sizes = Histogram::of_sizes();
        for value in [0, 1, 2, 3, 256, 257] {
            sizes.observe(value);
        }
        let read = sizes.read();
        let counts: Vec<_> = read.buckets.iter().map(|(_, count)| *count).collect();
        assert_eq!(counts, [2, 1, 1, 0, 0, 0, 0, 0, 1]);
        assert_eq!((read.beyond, read.sum, read.count()), (1, 519, 6));
        assert!(TIMES.is_sorted() && SIZES.is_sorted());
    }
}
