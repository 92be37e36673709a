//! Wall-clock instants as every surface shows them: RFC 3339, UTC, milliseconds.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Milliseconds since the Unix epoch. A wall-clock fact for people; durations are measured with a monotonic clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(i64);

/// Why a text is not a time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an RFC 3339 time")]
pub struct Malformed(String);

impl Timestamp {
    /// From milliseconds since the epoch.
    #[must_use]
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// Milliseconds since the epoch.
    #[must_use]
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// This instant moved by some milliseconds, saturating.
    #[must_use]
    pub const fn plus_millis(self, millis: i64) -> Self {
        Self(self.0.saturating_add(millis))
    }

    /// The instant so many milliseconds later, saturating.
    #[must_use]
    pub const fn after_millis(self, millis: u64) -> Self {
        Self(self.0.saturating_add_unsigned(millis))
    }

    /// The instant this much later, saturating.
    #[must_use]
    pub fn after(self, time: Duration) -> Self {
        self.after_millis(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
    }

    /// Milliseconds since `earlier`; zero if the clock was set back in between.
    #[must_use]
    pub fn millis_since(self, earlier: Self) -> u64 {
        u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0)
    }
}

impl From<SystemTime> for Timestamp {
    /// A time before the epoch becomes the epoch.
    fn from(time: SystemTime) -> Self {
        Self(0).after(time.duration_since(UNIX_EPOCH).unwrap_or_default())
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = jiff::Timestamp::from_millisecond(self.0).unwrap_or(jiff::Timestamp::MAX);
        write!(f, "{time:.3}")
    }
}

impl FromStr for Timestamp {
    type Err = Malformed;

    fn from_str(text: &str) -> Result<Self, Malformed> {
        let time: jiff::Timestamp = text.parse().map_err(|_| Malformed(text.to_owned()))?;
        Ok(Self(time.as_millisecond()))
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for Timestamp {
    fn schema_name() -> Cow<'static, str> {
        "Timestamp".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "date-time" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_read_back_to_the_millisecond() {
        for millis in [0, 1, 999, 1_789_000_000_123, -1] {
            let time = Timestamp::from_millis(millis);
            assert_eq!(time.to_string().parse::<Timestamp>().unwrap(), time);
        }
        assert_eq!(Timestamp::from_millis(1_500).to_string(), "1970-01-01T00:00:01.500Z");
    }

    #[test]
    fn later_times_saturate() {
        let time = Timestamp::from(UNIX_EPOCH + Duration::from_millis(1_500));
        assert_eq!(
            (time.after_millis(2), time.after(Duration::from_secs(1))),
            (Timestamp(1_502), Timestamp(2_500))
        );
        assert_eq!(time.after_millis(u64::MAX), Timestamp(i64::MAX));
        assert_eq!(time.after(Duration::MAX), Timestamp(i64::MAX));
        assert_eq!(Timestamp::from(UNIX_EPOCH - Duration::from_secs(1)), Timestamp(0));
    }

    #[test]
    fn a_clock_set_back_gives_no_negative_duration() {
        assert_eq!(Timestamp::from_millis(5).millis_since(Timestamp::from_millis(9)), 0);
    }
}
