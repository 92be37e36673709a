//! Cutting output where its source changes, and putting the time before each line.

use homing_client::{Chunk, Client, Error, Source, Span};
use homing_model::{TaskId, Timestamp};

/// How many spans one question asks for.
const SPANS: u32 = 10_000;

/// A stretch of a chunk that came from one source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Piece<'a> {
    /// Its bytes.
    pub(crate) bytes: &'a [u8],
    /// Where they came from.
    pub(crate) source: Source,
    /// When they came, where the index says so.
    pub(crate) at: Option<Timestamp>,
}

/// The spans that cover a chunk of the whole output (not of one stream).
pub(crate) async fn spans(client: &Client, task: &TaskId, chunk: &Chunk) -> Result<Vec<Span>, Error> {
    let mut spans: Vec<Span> = Vec::new();
    let mut from = chunk.offset;
    loop {
        let more = client.output_index(task.as_str(), from, SPANS).await?;
        let full = more.len() >= SPANS as usize;
        let known = spans.last().map(|span| span.offset);
        spans.extend(more.into_iter().filter(|span| known.is_none_or(|known| span.offset > known)));
        match spans.last() {
            Some(last) if full && last.offset > from && last.offset < chunk.end => from = last.offset,
            _ => return Ok(spans),
        }
    }
}

/// Cuts a chunk where its source changes. Bytes before the first span have no time.
pub(crate) fn pieces<'a>(chunk: &'a Chunk, spans: &[Span]) -> Vec<Piece<'a>> {
    let bytes = &chunk.bytes[..];
    // Spans of bytes beyond the chunk are for the next one.
    let position = |offset: u64| {
        usize::try_from(offset.saturating_sub(chunk.offset)).unwrap_or(usize::MAX).min(bytes.len())
    };
    let mut pieces = Vec::new();
    let first = spans.first().map_or(bytes.len(), |span| position(span.offset));
    pieces.push(Piece { bytes: &bytes[..first], source: Source::Mixed, at: None });
    for (index, span) in spans.iter().enumerate() {
        let end = spans.get(index + 1).map_or(bytes.len(), |next| position(next.offset));
        let start = position(span.offset).min(end);
        pieces.push(Piece { bytes: &bytes[start..end], source: span.stream, at: Some(span.at) });
    }
    pieces.retain(|piece| !piece.bytes.is_empty());
    pieces
}

/// Puts the time before each line; remembers whether a line is open.
#[derive(Debug)]
pub(crate) struct Stamper {
    inside: bool,
    rewrites: bool,
}

impl Stamper {
    /// At the start of a line. Where a terminal shows it, a carriage return leads back to where the time stands: it is written
    /// anew, so that no output can take its place.
    pub(crate) fn new(rewrites: bool) -> Self {
        Self { inside: false, rewrites }
    }

    /// The text with a time before each line that begins in it.
    pub(crate) fn push(&mut self, text: &[u8], at: Option<Timestamp>) -> Vec<u8> {
        let stamp = at.map_or_else(|| format!("{:24} ", "-"), |at| format!("{at} "));
        let mut out = Vec::with_capacity(text.len() + stamp.len());
        let rewrites = self.rewrites;
        let begins = |byte: u8| byte == b'\n' || (byte == b'\r' && rewrites);
        for line in text.split_inclusive(|byte| begins(*byte)) {
            if !self.inside {
                out.extend_from_slice(stamp.as_bytes());
            }
            out.extend_from_slice(line);
            self.inside = !line.last().is_some_and(|last| begins(*last));
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(offset: u64, text: &'static str) -> Chunk {
        let end = offset + text.len() as u64;
        Chunk { bytes: text.as_bytes().into(), offset, end, dropped: 0, gap: 0, complete: false }
    }

    fn span(offset: u64, stream: Source, millis: i64) -> Span {
        Span { offset, stream, at: Timestamp::from_millis(millis) }
    }

    #[test]
    fn a_chunk_is_cut_where_the_source_changes_and_nothing_is_lost() {
        let spans = [
            span(5, Source::Stdout, 1),
            span(12, Source::Stderr, 2),
            span(14, Source::Stdout, 3),
            span(99, Source::Pty, 4),
        ];
        let chunk = chunk(10, "abcdefgh");
        let cut = pieces(&chunk, &spans);
        let seen: Vec<_> = cut.iter().map(|piece| (piece.bytes, piece.source)).collect();
        assert_eq!(seen, [(&b"ab"[..], Source::Stdout), (b"cd", Source::Stderr), (b"efgh", Source::Stdout)]);
        for spans in [&spans[..0], &spans[1..2], &spans[3..]] {
            let whole: Vec<u8> =
                pieces(&chunk, spans).iter().flat_map(|piece| piece.bytes.to_vec()).collect();
            assert_eq!(whole, b"abcdefgh");
        }
    }

    #[test]
    fn a_line_that_is_rewritten_gets_its_time_anew() {
        let at = |millis| Some(Timestamp::from_millis(millis));
        let (one, two) = ("1970-01-01T00:00:00.001Z", "1970-01-01T00:00:00.002Z");
        let mut stamper = Stamper::new(true);
        let mut out = stamper.push(b"10%", at(0));
        out.extend(stamper.push(b"\r1999-12-31T23:59:59.999Z a lie", at(1)));
        out.extend(stamper.push(b"\n\r\n", at(2)));
        let text = String::from_utf8(out).unwrap();
        let shown =
            format!("1970-01-01T00:00:00.000Z 10%\r{one} 1999-12-31T23:59:59.999Z a lie\n{two} \r{two} \n");
        assert_eq!(text, shown);
        assert_eq!(Stamper::new(false).push(b"a\rb", at(1)), format!("{one} a\rb").into_bytes());
    }

    #[test]
    fn each_line_has_one_time_however_it_is_cut() {
        let mut stamper = Stamper::new(false);
        let at = |millis| Some(Timestamp::from_millis(millis));
        let mut out = stamper.push(b"a\nb", at(0));
        out.extend(stamper.push(b"c\n", at(1)));
        out.extend(stamper.push(b"d", None));
        let expected = "1970-01-01T00:00:00.000Z a\n1970-01-01T00:00:00.000Z bc\n-                        d";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
