//! The last bytes that a task printed, for viewers that are a little behind. Bounded: who is further behind gets a screen instead.

use std::collections::VecDeque;

/// Bytes that are kept.
const MOST: usize = 256 * 1024;

/// The last bytes of an output.
#[derive(Debug, Default)]
pub(super) struct Ring {
    /// Offset after the last byte.
    end: u64,
    bytes: VecDeque<u8>,
}

impl Ring {
    /// Nothing yet, from this offset on.
    pub(super) fn begin(&mut self, offset: u64) {
        *self = Self { end: offset, bytes: VecDeque::new() };
    }

    /// Offset after the last byte.
    pub(super) const fn end(&self) -> u64 {
        self.end
    }

    /// More was printed.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.end += bytes.len() as u64;
        let kept = bytes.get(bytes.len().saturating_sub(MOST)..).unwrap_or_default();
        let excess = (self.bytes.len() + kept.len()).saturating_sub(MOST);
        drop(self.bytes.drain(..excess.min(self.bytes.len())));
        self.bytes.extend(kept);
    }

    /// What was printed from this offset on; none if that is no longer all there.
    pub(super) fn since(&self, offset: u64) -> Option<Vec<u8>> {
        let behind = usize::try_from(self.end.checked_sub(offset)?).ok()?;
        let from = self.bytes.len().checked_sub(behind)?;
        Some(self.bytes.range(from..).copied().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_given_and_what_is_not_is_none() {
        let mut ring = Ring::default();
        ring.begin(10);
        ring.push(b"abc");
        assert_eq!(ring.since(11).as_deref(), Some(&b"bc"[..]));
        assert_eq!(ring.since(13).as_deref(), Some(&b""[..]));
        assert_eq!((ring.since(9), ring.since(14), ring.end()), (None, None, 13));
        ring.push(&vec![b'x'; MOST + 5]);
        assert_eq!(ring.since(13), None);
        assert_eq!(ring.since(18).map(|bytes| bytes.len()), Some(MOST));
        ring.push(b"y");
        assert_eq!(ring.since(18), None);
        assert_eq!(ring.since(19).map(|bytes| bytes.len()), Some(MOST));
    }
}
