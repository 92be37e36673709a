//! The last lines of an output, of which only bytes can be asked for.

use bytes::Bytes;
use homing_client::{Chunk, Client, Error, OutputQuery, Source, Stream};
use homing_model::TaskId;

use crate::render::line_stamps;

/// A guess at the length of a line, for the first question.
const LINE: u64 = 160;
/// What one question asks for.
const STRETCH: u64 = 1 << 20;

/// Fetches ever longer ends of the output until they hold the lines, and cuts there. With `only`, the lines of that source are
/// counted; with `stream`, the daemon leaves out the other one.
pub(crate) async fn fetch(
    client: &Client,
    task: &TaskId,
    lines: u64,
    only: Option<Source>,
    stream: Option<Stream>,
) -> Result<Vec<Chunk>, Error> {
    let last = OutputQuery { tail: Some(1), ..OutputQuery::default() };
    let end = client.output(task.as_str(), &last).await?.end;
    let mut window = lines.saturating_mul(LINE).clamp(4096, STRETCH);
    loop {
        let start = end.saturating_sub(window);
        let mut chunks = range(client, task, start, end, None).await?;
        let Some(only) = only else {
            if cut(&mut chunks, lines) || start == 0 {
                return Ok(chunks);
            }
            window = window.saturating_mul(8);
            continue;
        };
        let end = chunks.last().map_or(end, |chunk| chunk.end);
        let mut parts = parts_of(client, task, &chunks, only).await?;
        let found = cut(&mut parts, lines);
        if found || start == 0 {
            let from = parts.first().filter(|_| found).map_or(start, |part| part.offset);
            return range(client, task, from, end, stream).await;
        }
        window = window.saturating_mul(8);
    }
}

/// What of these chunks came from one source, each stretch with its place in the whole.
async fn parts_of(
    client: &Client,
    task: &TaskId,
    chunks: &[Chunk],
    only: Source,
) -> Result<Vec<Chunk>, Error> {
    let mut parts = Vec::new();
    for chunk in chunks {
        let spans = line_stamps::spans(client, task, chunk).await?;
        let mut offset = chunk.offset;
        for piece in line_stamps::pieces(chunk, &spans) {
            let end = offset + piece.bytes.len() as u64;
            if piece.source.is_of(only) {
                let bytes = Bytes::copy_from_slice(piece.bytes);
                parts.push(Chunk { bytes, offset, end, gap: 0, ..chunk.clone() });
            }
            offset = end;
        }
    }
    Ok(parts)
}

/// The output from `start` up to `end`; at least one chunk, which may be empty.
async fn range(
    client: &Client,
    task: &TaskId,
    start: u64,
    end: u64,
    stream: Option<Stream>,
) -> Result<Vec<Chunk>, Error> {
    let mut chunks = Vec::new();
    let mut offset = start;
    loop {
        let limit = Some(end.saturating_sub(offset).clamp(1, STRETCH));
        let query = OutputQuery { offset: Some(offset), limit, stream, ..OutputQuery::default() };
        let chunk = client.output(task.as_str(), &query).await?;
        let stuck = chunk.end <= offset;
        offset = chunk.end;
        chunks.push(chunk);
        if stuck || offset >= end {
            return Ok(chunks);
        }
    }
}

/// Drops all but the last lines; false if more of them may come before the first chunk.
fn cut(chunks: &mut Vec<Chunk>, lines: u64) -> bool {
    let mut left = lines;
    // The line feed at the very end closes the last line and begins no other.
    let mut closing = true;
    for index in (0..chunks.len()).rev() {
        let chunk = &mut chunks[index];
        let mut start = (left == 0).then_some(chunk.bytes.len());
        for (at, byte) in chunk.bytes.iter().enumerate().rev() {
            if start.is_some() {
                break;
            }
            if *byte == b'\n' && !closing {
                left -= 1;
                start = (left == 0).then_some(at + 1);
            }
            closing = false;
        }
        if let Some(start) = start {
            chunk.bytes = chunk.bytes.slice(start..);
            chunk.gap = 0;
            chunk.offset += start as u64;
            chunks.drain(..index);
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use homing_client::fake::{Fake, Reply};

    use super::*;

    fn last(texts: &[&'static str], lines: u64) -> Option<(String, u64)> {
        let mut offset = 0;
        let mut chunks: Vec<Chunk> = Vec::new();
        for text in texts {
            let end = offset + text.len() as u64;
            chunks.push(Chunk {
                bytes: text.as_bytes().into(),
                offset,
                end,
                dropped: 0,
                gap: 0,
                complete: false,
            });
            offset = end;
        }
        cut(&mut chunks, lines).then(|| {
            let text = chunks.iter().map(|chunk| String::from_utf8_lossy(&chunk.bytes)).collect();
            (text, chunks[0].offset)
        })
    }

    #[test]
    fn lines_are_counted_from_the_end_across_chunks() {
        for texts in [&["one\ntwo\nthree\n"][..], &["one\n", "two\nthree\n"], &["one\ntw", "o\nthree", "\n"]]
        {
            assert_eq!(last(texts, 0), Some((String::new(), 14)), "{texts:?}");
            assert_eq!(last(texts, 1), Some(("three\n".into(), 8)), "{texts:?}");
            assert_eq!(last(texts, 2), Some(("two\nthree\n".into(), 4)), "{texts:?}");
            assert_eq!(last(texts, 3), None, "{texts:?}");
        }
        assert_eq!(last(&["one\ntwo"], 1), Some(("two".into(), 4)));
        assert_eq!(last(&["\n\n\n"], 2), Some(("\n\n".into(), 1)));
        assert_eq!(last(&[""], 1), None);
    }

    #[tokio::test]
    async fn longer_ends_are_fetched_until_the_lines_are_there() {
        let home = tempfile::tempdir().unwrap();
        let text: Vec<u8> = (0..20_000).flat_map(|n| format!("{n:0>200}\n").into_bytes()).collect();
        let end = text.len();
        let fake = Fake::serve(home.path(), move |request| {
            let number = |name: &str| -> Option<usize> {
                let (_, rest) = request.target.split_once(name)?;
                rest.split('&').next()?.parse().ok()
            };
            let from = number("offset=").unwrap_or(end - 1);
            let to = (from + number("limit=").unwrap_or(end)).min(end);
            Reply::bytes(200, &text[from..to]).header("Homing-Offset", from).header("Homing-End", to)
        });
        let client = Client::new(home.path(), "u");
        let task = TaskId::from_entropy(1);
        let chunks = fetch(&client, &task, 50, None, None).await.unwrap();
        let text: Vec<u8> = chunks.iter().flat_map(|chunk| chunk.bytes.to_vec()).collect();
        assert_eq!(text.len(), 50 * 201);
        assert!(text.starts_with(b"000") && text.ends_with(b"19999\n"));
        assert_eq!(chunks[0].offset, (end - 50 * 201) as u64);
        let all: usize = fetch(&client, &task, 50_000, None, None)
            .await
            .unwrap()
            .iter()
            .map(|chunk| chunk.bytes.len())
            .sum();
        assert_eq!(all, end);
        assert_eq!(fake.connections(), 1);
    }
}
