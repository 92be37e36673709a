//! Lines out of bytes that come in pieces, none longer than is worth holding.

/// The longest line that is held, in bytes. What agents print in longer ones are the files and pictures that their tools read.
pub(crate) const LONGEST: usize = 4 << 20;

/// The line that has begun.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    line: Vec<u8>,
    /// It is too long already, and passed over to its end.
    skipping: bool,
}

impl Lines {
    /// More bytes: each line that they end goes to `each`, without its line feed.
    pub(crate) fn push(&mut self, mut bytes: &[u8], mut each: impl FnMut(&[u8])) {
        while let Some(at) = bytes.iter().position(|byte| *byte == b'\n') {
            let (rest, after) = bytes.split_at(at);
            self.hold(rest);
            self.finish(&mut each);
            bytes = after.get(1..).unwrap_or_default();
        }
        self.hold(bytes);
    }

    fn hold(&mut self, bytes: &[u8]) {
        if self.skipping || self.line.len() + bytes.len() > LONGEST {
            self.skipping = true;
            self.line = Vec::new();
            return;
        }
        self.line.extend_from_slice(bytes);
    }

    /// Nothing more comes of this line: what there is of it is all.
    pub(crate) fn finish(&mut self, mut each: impl FnMut(&[u8])) {
        if !self.skipping && !self.line.is_empty() {
            each(&self.line);
        }
        self.line.clear();
        self.skipping = false;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn lines(pieces: &[&[u8]]) -> Vec<Vec<u8>> {
        let (mut lines, mut got) = (Lines::default(), Vec::new());
        for piece in pieces {
            lines.push(piece, |line| got.push(line.to_vec()));
        }
        lines.finish(|line| got.push(line.to_vec()));
        got
    }

    proptest! {
        #[test]
        fn pieces_make_no_difference(bytes in "[ab\n]{0,60}", cuts: Vec<prop::sample::Index>) {
            let bytes = bytes.as_bytes();
            let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
            at.extend([0, bytes.len()]);
            at.sort_unstable();
            let pieces: Vec<&[u8]> = at.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
            let whole: Vec<Vec<u8>> =
                bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).map(<[u8]>::to_vec).collect();
            prop_assert_eq!(lines(&pieces), whole);
        }
    }

    #[test]
    fn a_line_that_is_too_long_is_passed_over_and_the_next_is_not() {
        let piece = vec![b'x'; 1 << 20];
        let mut state = Lines::default();
        let mut got = Vec::new();
        for _ in 0..50 {
            state.push(&piece, |line| got.push(line.to_vec()));
            assert!(state.line.capacity() <= 2 * LONGEST, "{}", state.line.capacity());
        }
        state.push(b"\nnext\n", |line| got.push(line.to_vec()));
        assert_eq!(got, [b"next".to_vec()]);
        assert_eq!(lines(&[&vec![b'x'; LONGEST + 1], b"\n", &vec![b'y'; LONGEST]]), [vec![b'y'; LONGEST]]);
    }
}
