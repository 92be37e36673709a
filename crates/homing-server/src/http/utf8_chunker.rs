//! Cutting output into pieces of text without cutting a character in two.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use homing_api::OutputChunk;
use homing_model::utf8::unfinished;

/// Bytes of a character that has begun and not ended, held back until the rest of it comes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Held {
    offset: u64,
    bytes: Vec<u8>,
}

impl Held {
    /// How much is held.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Takes the bytes at `offset`, which follow what is held; gives all that can be shown.
    pub(crate) fn push(&mut self, offset: u64, bytes: Vec<u8>) -> Option<OutputChunk> {
        let mut whole = std::mem::take(&mut self.bytes);
        if whole.is_empty() {
            self.offset = offset;
            whole = bytes;
        } else {
            whole.extend_from_slice(&bytes);
        }
        let start = self.offset;
        self.bytes = whole.split_off(whole.len() - unfinished(&whole));
        self.offset += whole.len() as u64;
        chunk(start, whole)
    }

    /// Gives what is held: nothing follows it.
    pub(crate) fn finish(&mut self) -> Option<OutputChunk> {
        chunk(self.offset, std::mem::take(&mut self.bytes))
    }
}

fn chunk(offset: u64, bytes: Vec<u8>) -> Option<OutputChunk> {
    if bytes.is_empty() {
        return None;
    }
    let len = bytes.len() as u64;
    Some(match String::from_utf8(bytes) {
        Ok(text) => OutputChunk { offset, bytes: len, text: Some(text), base64: None },
        Err(error) => {
            OutputChunk { offset, bytes: len, text: None, base64: Some(STANDARD.encode(error.as_bytes())) }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes that chunks stand for, checking that they follow each other.
    fn joined(chunks: &[OutputChunk]) -> Vec<u8> {
        let mut whole = Vec::new();
        for chunk in chunks {
            assert_eq!(chunk.offset, whole.len() as u64);
            match (&chunk.text, &chunk.base64) {
                (Some(text), None) => whole.extend_from_slice(text.as_bytes()),
                (None, Some(base64)) => whole.extend_from_slice(&STANDARD.decode(base64).unwrap()),
                both => panic!("{both:?}"),
            }
            assert_eq!(chunk.offset + chunk.bytes, whole.len() as u64);
        }
        whole
    }

    fn cut(bytes: &[u8], size: usize) -> Vec<OutputChunk> {
        let (mut held, mut chunks, mut offset) = (Held::default(), Vec::new(), 0);
        for piece in bytes.chunks(size) {
            chunks.extend(held.push(offset, piece.to_vec()));
            offset += piece.len() as u64;
            assert!(held.len() <= 3);
        }
        chunks.extend(held.finish());
        chunks
    }

    #[test]
    fn text_stays_text_wherever_it_is_cut() {
        let text = "aé€😀 grüß\u{10ffff}z".as_bytes();
        for size in 1..=text.len() {
            let chunks = cut(text, size);
            assert!(chunks.iter().all(|chunk| chunk.text.is_some()), "{size}: {chunks:?}");
            assert_eq!(joined(&chunks), text);
        }
    }

    #[test]
    fn bytes_that_are_no_text_come_whole() {
        let cases: [&[u8]; 6] = [
            b"\xff",
            b"a\xc3",
            b"\xe2\x82",
            b"\x80\x80\x80\x80",
            b"ok\xf0\x9f\x98",
            b"\xf0\x9fx\xc3\xa9\xed\xa0\x80",
        ];
        for bytes in cases {
            for size in 1..=bytes.len() {
                assert_eq!(joined(&cut(bytes, size)), bytes, "{bytes:?} by {size}");
            }
        }
    }
}
