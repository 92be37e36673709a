//! Output: stretches of bytes by offset, and following it to the end.

use std::time::Duration;

use bytes::Bytes;
use homing_model::{TaskId, Timestamp};
use serde::Deserialize;
use tokio::time::sleep;

use crate::transport::call::Call;
use crate::transport::client::{Client, Tries};
use crate::transport::error::Error;
use crate::transport::query::Target;

/// How much a follower takes at once.
const STRETCH: u64 = 1 << 20;

/// How long a follower's question stands before it is asked again.
const POLL: Duration = Duration::from_secs(30);

/// One of the two streams of a task without a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// What it printed.
    Stdout,
    /// What it complained of.
    Stderr,
}

impl Stream {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
        }
    }
}

/// Which bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OutputQuery {
    /// From this offset; from the start if absent.
    pub offset: Option<u64>,
    /// At most so many bytes.
    pub limit: Option<u64>,
    /// The last so many bytes instead.
    pub tail: Option<u64>,
    /// Only this stream.
    pub stream: Option<Stream>,
    /// How long to wait for something beyond the offset.
    pub wait: Option<Duration>,
}

/// A stretch of output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// The bytes.
    pub bytes: Bytes,
    /// The offset of the first of them.
    pub offset: u64,
    /// Ask for this offset next.
    pub end: u64,
    /// Bytes that the output has lost in all.
    pub dropped: u64,
    /// Bytes missing between the asked offset and `offset`.
    pub gap: u64,
    /// The task has ended and nothing follows.
    pub complete: bool,
}

/// Which stream a span of output came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// Its standard output.
    Stdout,
    /// Its standard error.
    Stderr,
    /// Its terminal.
    Pty,
    /// Both, or one that this release does not know.
    #[serde(other)]
    Mixed,
}

impl Source {
    /// Whether its bytes belong to a stream. Those of a terminal, or of a stretch that is mixed, belong to both.
    #[must_use]
    pub fn is_of(self, stream: Self) -> bool {
        self == stream || matches!(self, Self::Pty | Self::Mixed)
    }
}

/// Bytes of one source, from `offset` to the next span.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct Span {
    /// Where it begins.
    pub offset: u64,
    /// Where it came from.
    pub stream: Source,
    /// When its first byte came.
    pub at: Timestamp,
}

#[derive(Deserialize)]
struct Index {
    spans: Vec<Span>,
}

impl Client {
    /// A stretch of a task's output.
    ///
    /// # Errors
    /// If there is no such task, its output is no longer kept, or nobody answered.
    pub async fn output(&self, reference: &str, query: &OutputQuery) -> Result<Chunk, Error> {
        let target = Target::task(reference, "/output")
            .maybe("offset", query.offset)
            .maybe("limit", query.limit)
            .maybe("tail", query.tail)
            .maybe("stream", query.stream.map(Stream::as_str))
            .maybe("wait_ms", query.wait.map(|wait| wait.as_millis()));
        let tries = if query.wait.is_some() { Tries::standing() } else { Tries::default() };
        let answer = self.persist_by(&Call::get(target), tries).await?;
        Ok(Chunk {
            offset: answer.number("homing-offset")?,
            end: answer.number("homing-end")?,
            dropped: answer.number("homing-dropped")?,
            gap: answer.number("homing-gap")?,
            complete: answer.flag("homing-complete"),
            bytes: answer.body,
        })
    }

    /// Where the bytes from `offset` on came from, at most `limit` spans; the first may begin before it.
    ///
    /// # Errors
    /// As for [`output`](Self::output).
    pub async fn output_index(&self, reference: &str, offset: u64, limit: u32) -> Result<Vec<Span>, Error> {
        let target = Target::task(reference, "/output/index")
            .maybe("offset", Some(offset))
            .maybe("limit", Some(limit));
        let index: Index = self.persist(&Call::get(target)).await?.json()?;
        Ok(index.spans)
    }

    /// Follows a task's output from an offset to its end, through restarts of the daemon.
    #[must_use]
    pub fn follow(&self, task: &TaskId, offset: u64, stream: Option<Stream>) -> Follow {
        Follow { client: self.clone(), task: task.clone(), offset, stream, complete: false }
    }
}

/// A reader that stays until the task has ended.
#[derive(Debug)]
pub struct Follow {
    client: Client,
    task: TaskId,
    offset: u64,
    stream: Option<Stream>,
    complete: bool,
}

impl Follow {
    /// The next bytes, or a gap; `None` at the end. Cancelling it loses nothing: the next call asks for the same offset.
    ///
    /// # Errors
    /// If the output is no longer kept, or the daemon is gone for good.
    pub async fn next(&mut self) -> Result<Option<Chunk>, Error> {
        while !self.complete {
            let query = OutputQuery {
                offset: Some(self.offset),
                limit: Some(STRETCH),
                stream: self.stream,
                wait: Some(POLL),
                tail: None,
            };
            let chunk = self.client.output(self.task.as_str(), &query).await?;
            if chunk.end < self.offset {
                return Err(Error::Protocol {
                    what: format!("the output of {}", self.task),
                    why: format!("it ends at {}, before {}", chunk.end, self.offset),
                });
            }
            self.offset = chunk.end;
            self.complete = chunk.complete;
            if !chunk.bytes.is_empty() || chunk.gap > 0 {
                return Ok(Some(chunk));
            }
            if !self.complete {
                // A daemon that answers nothing without waiting must not make this a busy loop.
                sleep(Duration::from_millis(1)).await;
            }
        }
        Ok(None)
    }

    /// The offset that comes next.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::fake::{Fake, Reply, Request};

    /// Serves `text` two bytes at a time, cutting every third connection.
    fn drip(text: &'static [u8]) -> impl Fn(&Request) -> Reply + Send + Sync {
        let count = Arc::new(AtomicUsize::new(0));
        move |request| {
            if count.fetch_add(1, Ordering::Relaxed) % 3 == 2 {
                return Reply::bytes(200, "half").broken();
            }
            let (_, rest) = request.target.split_once("offset=").unwrap();
            let from: usize = rest.split('&').next().unwrap().parse().unwrap();
            let to = (from + 2).min(text.len());
            let reply =
                Reply::bytes(200, &text[from..to]).header("Homing-Offset", from).header("Homing-End", to);
            if to == text.len() { reply.header("Homing-Complete", "true") } else { reply }
        }
    }

    #[tokio::test]
    async fn following_through_broken_connections_loses_and_repeats_nothing() {
        let home = tempfile::tempdir().unwrap();
        let text = b"the quick brown fox jumps";
        let fake = Fake::serve(home.path(), drip(text));
        let client = Client::new(home.path(), "u");
        let mut follow = client.follow(&TaskId::from_entropy(1), 0, None);
        let mut seen = Vec::new();
        while let Some(chunk) = follow.next().await.unwrap() {
            seen.extend_from_slice(&chunk.bytes);
        }
        assert_eq!(seen, text);
        assert!(fake.connections() > 1);
        assert_eq!(follow.offset(), text.len() as u64);
    }

    #[tokio::test]
    async fn a_gap_is_handed_over_even_without_bytes() {
        let home = tempfile::tempdir().unwrap();
        let _fake = Fake::serve(home.path(), |_| {
            let reply = Reply::bytes(200, "").header("Homing-Offset", 90).header("Homing-End", 90);
            reply.header("Homing-Gap", 80).header("Homing-Complete", "true")
        });
        let mut follow = Client::new(home.path(), "u").follow(&TaskId::from_entropy(1), 10, None);
        assert_eq!(follow.next().await.unwrap().unwrap().gap, 80);
        assert_eq!(follow.next().await.unwrap(), None);
    }

    #[tokio::test]
    async fn an_output_that_runs_backwards_is_an_error_not_a_loop() {
        let home = tempfile::tempdir().unwrap();
        let _fake = Fake::serve(home.path(), |_| Reply::bytes(200, "x").header("Homing-End", 1));
        let mut follow = Client::new(home.path(), "u").follow(&TaskId::from_entropy(1), 10, None);
        assert!(matches!(follow.next().await, Err(Error::Protocol { .. })));
    }

    #[test]
    fn spans_of_a_later_release_still_read() {
        let json = r#"{"spans":[{"offset":3,"stream":"hologram","at":"2026-01-01T00:00:00.000Z"}]}"#;
        let index: Index = serde_json::from_str(json).unwrap();
        assert_eq!(index.spans[0].stream, Source::Mixed);
    }
}
