//! Durations and sizes as people type them: `500ms`, `30s`, `10m`, `2h`, `64MiB`.

use std::time::Duration;

/// Why a text is not a duration or a size.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// Not a duration.
    #[error("`{0}` is not a duration: write 500ms, 30s, 10m, 2h, 1h30m or 7d")]
    Duration(String),
    /// A duration beyond the limit.
    #[error("`{0}` is longer than 36500d, which is the longest duration")]
    LongDuration(String),
    /// Not a size.
    #[error("`{0}` is not a size: write 4096, 64KiB, 64MiB or 4GiB")]
    Size(String),
}

/// Milliseconds of a duration, as JSON has them.
#[must_use]
pub fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn split(text: &str) -> Option<(f64, &str)> {
    let at = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let number: f64 = text.get(..at)?.parse().ok()?;
    Some((number, text.get(at..)?.trim()))
}

/// Reads a duration; a bare `0` needs no unit. Several units are added up, each smaller than the one before: `1h30m`.
///
/// # Errors
/// If the text is no duration, or too long a one.
pub fn duration(text: &str) -> Result<Duration, Malformed> {
    let malformed = || Malformed::Duration(text.to_owned());
    let (mut rest, mut seconds, mut before) = (text.trim(), 0.0, f64::INFINITY);
    while !rest.is_empty() || before == f64::INFINITY {
        let (number, tail) = split(rest).ok_or_else(malformed)?;
        let unit = tail.find(|c: char| !c.is_ascii_alphabetic()).map_or(tail, |at| &tail[..at]);
        let scale = match unit {
            "ms" => 0.001,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3_600.0,
            "d" => 86_400.0,
            "" if number == 0.0 && tail.is_empty() && before == f64::INFINITY => 1.0,
            _ => return Err(malformed()),
        };
        if scale >= before {
            return Err(malformed());
        }
        seconds += number * scale;
        before = scale;
        rest = tail[unit.len()..].trim_start();
    }
    if seconds > 100.0 * 365.0 * 86_400.0 {
        return Err(Malformed::LongDuration(text.to_owned()));
    }
    Duration::try_from_secs_f64(seconds).map_err(|_| malformed())
}

/// Reads a size in bytes.
///
/// # Errors
/// If the text is no size, or beyond 2^53.
pub fn size(text: &str) -> Result<u64, Malformed> {
    let malformed = || Malformed::Size(text.to_owned());
    let (number, unit) = split(text.trim()).ok_or_else(malformed)?;
    let scale = match unit {
        "" | "B" => 1.0,
        "K" | "KiB" => 1024.0,
        "M" | "MiB" => 1024.0 * 1024.0,
        "G" | "GiB" => 1024.0 * 1024.0 * 1024.0,
        "T" | "TiB" => 1024.0 * 1024.0 * 1024.0 * 1024.0,
        "kB" | "KB" => 1e3,
        "MB" => 1e6,
        "GB" => 1e9,
        _ => return Err(malformed()),
    };
    let bytes = number * scale;
    if !(0.0..=9_007_199_254_740_992.0).contains(&bytes) {
        return Err(malformed());
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "checked to be within 0..=2^53"
    )]
    Ok(bytes as u64)
}

/// A duration for people, two units at most: `1.2s`, `3m 05s`, `2h 10m`, `4d 3h`.
#[must_use]
pub fn show_duration(millis: u64) -> String {
    let seconds = millis / 1000;
    match seconds {
        0 => format!("{millis}ms"),
        1..=59 => format!("{seconds}.{}s", millis % 1000 / 100),
        60..=3_599 => format!("{}m {:02}s", seconds / 60, seconds % 60),
        3_600..=86_399 => format!("{}h {:02}m", seconds / 3600, seconds % 3600 / 60),
        _ => format!("{}d {}h", seconds / 86_400, seconds % 86_400 / 3_600),
    }
}

/// A size for people: `912 B`, `4.0 KiB`, `1.2 GiB`.
#[must_use]
pub fn show_size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut scaled = bytes / 1024;
    let mut rest = bytes % 1024;
    let mut unit = 0;
    while scaled >= 1024 && unit + 1 < UNITS.len() {
        rest = scaled % 1024;
        scaled /= 1024;
        unit += 1;
    }
    format!("{scaled}.{} {}", rest * 10 / 1024, UNITS[unit])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn durations_as_people_write_them() {
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("1.5s"), Ok(Duration::from_millis(1500)));
        assert_eq!(duration("10m"), Ok(Duration::from_secs(600)));
        assert_eq!(duration("0"), Ok(Duration::ZERO));
        assert_eq!(duration("1h30m"), Ok(Duration::from_secs(5400)));
        assert_eq!(duration("3m 05s"), Ok(Duration::from_secs(185)), "as it is shown");
        for text in [
            "",
            "10",
            "-1s",
            "1 fortnight",
            "s",
            "1e9h",
            "99999999h",
            "1h30",
            "30m1h",
            "1h1h",
            "1h-5m",
            "1h,",
            "0 0s",
        ] {
            assert!(duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_duration_that_is_too_long_names_the_limit() {
        assert_eq!(duration("36500d"), Ok(Duration::from_secs(36_500 * 86_400)));
        let error = duration("40000d").unwrap_err().to_string();
        assert!(error.starts_with("`40000d` is longer than 36500d"), "{error}");
    }

    #[test]
    fn sizes_as_people_write_them() {
        assert_eq!(size("64MiB"), Ok(64 << 20));
        assert_eq!(size("1kB"), Ok(1000));
        assert_eq!(size("7"), Ok(7));
        for text in ["", "-1", "1QiB", "MiB"] {
            assert!(size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn shown_short() {
        assert_eq!(show_duration(42), "42ms");
        assert_eq!(show_duration(1_250), "1.2s");
        assert_eq!(show_duration(185_000), "3m 05s");
        assert_eq!(show_size(1536), "1.5 KiB");
        assert_eq!(show_size(3 << 30), "3.0 GiB");
    }

    proptest! {
        #[test]
        fn no_text_panics(text: String) {
            let _ = duration(&text);
            let _ = size(&text);
        }
    }
}
