//! The `Retry-After` of an answer: seconds, or a date in any of HTTP's three forms. Anything else is ignored.

use homing_model::Timestamp;

/// The time before which the receiver does not want to be asked again; none if the text makes no sense.
pub(crate) fn parse(text: &str, now: Timestamp) -> Option<Timestamp> {
    let text = text.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        // More seconds than a number can hold is as good as the most that it can.
        let seconds = text.parse().unwrap_or(i64::MAX);
        return Some(now.plus_millis(seconds.saturating_mul(1_000)));
    }
    httpdate::parse_http_date(text).ok().map(Timestamp::from)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_789_000_000_000);

    #[test]
    fn seconds_count_from_now() {
        assert_eq!(parse("120", NOW), Some(NOW.plus_millis(120_000)));
        assert_eq!(parse(" 0 ", NOW), Some(NOW));
        assert_eq!(parse("99999999999999999999999", NOW), Some(Timestamp::from_millis(i64::MAX)));
    }

    #[test]
    fn dates_are_read_in_all_three_forms() {
        let expected = Some(Timestamp::from_millis(784_111_777_000));
        for text in
            ["Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"]
        {
            assert_eq!(parse(text, NOW), expected, "{text}");
        }
    }

    #[test]
    fn garbage_is_ignored() {
        for text in
            ["", "soon", "-5", "1.5", "12s", "Sun, 32 Nov 1994 08:49:37 GMT", "1994-11-06T08:49:37Z", "１２"]
        {
            assert_eq!(parse(text, NOW), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text: String, now: i64) {
            let _ = parse(&text, Timestamp::from_millis(now));
        }
    }
}
