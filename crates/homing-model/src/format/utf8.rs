//! Where characters end in bytes that come piece by piece.

/// How many bytes at the end are the beginning of a character: what follows may complete it.
#[must_use]
pub fn unfinished(bytes: &[u8]) -> usize {
    let begins = |tail: &[u8]| {
        std::str::from_utf8(tail).is_err_and(|error| error.valid_up_to() == 0 && error.error_len().is_none())
    };
    (1..=3)
        .find(|len| bytes.len().checked_sub(*len).and_then(|at| bytes.get(at..)).is_some_and(begins))
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_may_still_become_a_character_is_unfinished() {
        for (bytes, open) in [
            (&b""[..], 0),
            (b"abc", 0),
            ("ä€😀".as_bytes(), 0),
            (b"\xc3", 1),
            (b"a\xe2\x82", 2),
            (b"\xf0\x9f\x98", 3),
            (b"\x80\x80\x80\x80", 0),
            (b"\xed\xa0", 0),
            (b"\xff", 0),
        ] {
            assert_eq!(unfinished(bytes), open, "{bytes:?}");
        }
    }
}
