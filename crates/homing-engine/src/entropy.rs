//! Randomness, in one place.

/// Sixty-four random bits.
pub(crate) fn draw() -> u64 {
    // Without a random source nothing is safe to name; the kernel always has one.
    getrandom::u64().unwrap_or_else(|_| u64::from(std::process::id()))
}
