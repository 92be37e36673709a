//! The output that is shown, as it comes.
//!
//! It begins with the end of what is there. A question stands at the daemon until there is more; after an answer there is a pause, in which a task that prints all the time
//! prints what the next answer brings together. Of one that prints more than can be read, the end is shown, and how much was left out.
//!
//! What is printed after a silence meets a question that stands, and is shown with the next drawing. What is printed just after something else waits for a pause here and for
//! one of the drawing ([`pace`](super::pace)), which together stay well below the tenth of a second within which it has to be shown.

use std::sync::Arc;
use std::time::Duration;

use homing_api::Code;
use homing_client::{Chunk, Client, Error, OutputQuery, Source, Span};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};

use super::feed::why;
use super::news::{News, Out, Over};
use crate::message::{Message, Piece, Stream};

/// What is read of the output before it is followed.
const TAIL: u64 = 256 * 1024;

/// The most that is read at once then.
const STRETCH: u64 = 64 * 1024;

/// Between an answer that had to be waited for and the next question.
const PAUSE: Duration = Duration::from_millis(15);

/// The same while a task prints all the time: nobody reads faster, and each answer costs a drawing.
pub(super) const LONGER: Duration = Duration::from_millis(35);

/// How long to rest after an answer that took so long. After the first one, which nobody was made to wait for, not at all: what comes next may come at once.
fn rest(first: bool, waited: Duration) -> Duration {
    match (first, waited >= LONGER) {
        (true, _) => Duration::ZERO,
        (false, true) => PAUSE,
        (false, false) => LONGER,
    }
}

/// How long a question stands.
const PATIENCE: Duration = Duration::from_secs(30);

/// Between two attempts when the daemon is gone for good.
const AGAIN: Duration = Duration::from_secs(1);

/// Spans of one answer.
const SPANS: u32 = 10_000;

/// Follows a task's output to its end. `changed` makes it ask again: a task that had not begun has no output to wait for.
pub(super) async fn read(client: Client, task: String, changed: Arc<Notify>, out: Out) {
    if let Ok(Err(error)) = follow(&client, &task, &changed, &out).await {
        let text = match error.code() {
            Some(Code::OutputGone) => "its output is no longer kept".to_owned(),
            _ => why(error),
        };
        let _ = out.now(Message::Remark { task, text }).await;
    }
}

async fn follow(client: &Client, task: &str, changed: &Notify, out: &Out) -> Result<Result<(), Error>, Over> {
    out.now(Message::OutputBegins { task: task.to_owned() }).await?;
    let mut next = None;
    loop {
        let asked = Instant::now();
        let chunk = tokio::select! {
            chunk = stretch(client, task, next) => chunk,
            () = changed.notified(), if next.is_some() => continue,
        };
        let chunk = match chunk {
            Ok(chunk) => chunk,
            Err(error) if error.is_disconnect() => {
                sleep(AGAIN).await;
                continue;
            }
            Err(error) => return Ok(Err(error)),
        };
        let rest = rest(next.is_none(), asked.elapsed());
        let missing = chunk.offset.saturating_sub(next.unwrap_or(0));
        next = Some(chunk.end);
        let complete = chunk.complete;
        if !chunk.bytes.is_empty() || missing > 0 {
            // Which stream it was is not worth losing it.
            let spans = client.output_index(task, chunk.offset, SPANS).await.unwrap_or_default();
            let pieces = pieces(&chunk, &spans, missing);
            out.send(News::Now(Message::Output { task: task.to_owned(), pieces })).await?;
        }
        if complete {
            return Ok(Ok(()));
        }
        sleep(rest).await;
    }
}

/// What comes at an offset; without one, the end of what is there.
async fn stretch(client: &Client, task: &str, next: Option<u64>) -> Result<Chunk, Error> {
    if let Some(offset) = next {
        let query = OutputQuery {
            offset: Some(offset),
            limit: Some(STRETCH),
            wait: Some(PATIENCE),
            ..OutputQuery::default()
        };
        let chunk = client.output(task, &query).await?;
        if (chunk.bytes.len() as u64) < STRETCH {
            return Ok(chunk);
        }
    }
    let query = OutputQuery { tail: Some(TAIL), ..OutputQuery::default() };
    let chunk = client.output(task, &query).await?;
    // What was seen before is not read twice.
    match next.filter(|next| *next > chunk.offset) {
        Some(next) => {
            let query = OutputQuery { offset: Some(next), limit: Some(TAIL), ..OutputQuery::default() };
            client.output(task, &query).await
        }
        None => Ok(chunk),
    }
}

/// The bytes by stream.
fn pieces(chunk: &Chunk, spans: &[Span], missing: u64) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    let mut gap = missing;
    let mut bytes = &chunk.bytes[..];
    let mut at = chunk.offset;
    if missing > 0
        && let Some(line) = bytes.iter().position(|byte| *byte == b'\n')
    {
        // Half a line says nothing, and may be half a sequence.
        (bytes, at, gap) = (&bytes[line + 1..], at + line as u64 + 1, gap + line as u64 + 1);
    }
    let stream_at = |offset: u64| {
        let span = spans.iter().take_while(|span| span.offset <= offset).last();
        span.map_or(Stream::Stdout, |span| {
            if span.stream == Source::Stderr { Stream::Stderr } else { Stream::Stdout }
        })
    };
    let begin = at;
    let mut later = spans.iter().map(|span| span.offset).skip_while(|offset| *offset <= begin);
    while !bytes.is_empty() || gap > 0 {
        let end =
            later.next().map_or(usize::MAX, |offset| usize::try_from(offset - at).unwrap_or(usize::MAX));
        let (now, rest) = bytes.split_at(end.min(bytes.len()));
        let stream = stream_at(at);
        match pieces.last_mut().filter(|last| last.stream == stream && gap == 0) {
            Some(last) => last.bytes.extend_from_slice(now),
            None => pieces.push(Piece { gap: std::mem::take(&mut gap), stream, bytes: now.to_vec() }),
        }
        at += now.len() as u64;
        bytes = rest;
    }
    pieces
}

#[cfg(test)]
mod tests {
    use homing_model::Timestamp;

    use super::*;

    fn chunk(offset: u64, text: &'static str) -> Chunk {
        let end = offset + text.len() as u64;
        Chunk { bytes: text.into(), offset, end, dropped: 0, gap: 0, complete: false }
    }

    fn spans(of: &[(u64, Source)]) -> Vec<Span> {
        of.iter()
            .map(|(offset, stream)| Span { offset: *offset, stream: *stream, at: Timestamp::default() })
            .collect()
    }

    fn told(pieces: &[Piece]) -> Vec<(u64, Stream, &str)> {
        pieces
            .iter()
            .map(|piece| (piece.gap, piece.stream, std::str::from_utf8(&piece.bytes).unwrap()))
            .collect()
    }

    #[test]
    fn a_question_follows_the_first_answer_at_once_and_the_others_after_a_pause() {
        let millis = Duration::from_millis;
        assert_eq!(rest(true, millis(1)), Duration::ZERO);
        assert_eq!(rest(false, millis(1)), LONGER, "a flood, or one that has nothing to wait for");
        assert_eq!(rest(false, millis(500)), PAUSE, "after a silence");
    }

    #[test]
    fn bytes_are_told_apart_by_their_streams() {
        let spans =
            spans(&[(5, Source::Stdout), (12, Source::Stderr), (14, Source::Stderr), (16, Source::Stdout)]);
        let parts = pieces(&chunk(10, "ooEEEEo\n"), &spans, 0);
        assert_eq!(
            told(&parts),
            [(0, Stream::Stdout, "oo"), (0, Stream::Stderr, "EEEE"), (0, Stream::Stdout, "o\n")]
        );
        assert_eq!(told(&pieces(&chunk(0, "x"), &[], 0)), [(0, Stream::Stdout, "x")]);
        assert!(pieces(&chunk(0, ""), &[], 0).is_empty());
    }

    #[test]
    fn after_a_gap_half_a_line_is_left_out_too() {
        let spans = spans(&[(100, Source::Stdout), (105, Source::Stderr)]);
        let parts = pieces(&chunk(100, "lf\nooEE"), &spans, 90);
        assert_eq!(told(&parts), [(93, Stream::Stdout, "oo"), (0, Stream::Stderr, "EE")]);
        assert_eq!(told(&pieces(&chunk(9, ""), &[], 9)), [(9, Stream::Stdout, "")]);
    }
}
