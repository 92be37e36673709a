//! Reading a task's output: any part, by either stream, waiting for more if asked.

use std::os::fd::OwnedFd;
use std::time::Duration;

use homing_model::TaskId;
use homing_shim::folder;
use homing_shim::output::{self, Span, Stream};
use homing_store::Record;

use crate::engine::{Engine, Inner};
use crate::error::Error;
use crate::live::Command;
use crate::wait;

/// What to read.
#[derive(Debug, Clone, Default)]
pub struct OutputQuery {
    /// From here; from the beginning if absent (and no `tail`).
    pub offset: Option<u64>,
    /// Instead: the last so many bytes.
    pub tail: Option<u64>,
    /// At most so many bytes.
    pub limit: usize,
    /// Only this stream.
    pub stream: Option<Stream>,
    /// If there is nothing, wait this long for something or the end.
    pub wait: Option<Duration>,
}

/// A part of the output.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OutputPart {
    /// Offset of the first byte.
    pub offset: u64,
    /// Ask for this next.
    pub next: u64,
    /// Bytes missing between the asked offset and the first byte.
    pub gap: u64,
    /// Bytes no longer kept, in all.
    pub dropped: u64,
    /// The bytes.
    pub bytes: Vec<u8>,
    /// The task has ended and this reaches its end.
    pub complete: bool,
}

impl Engine {
    /// Reads a part of a task's output.
    ///
    /// # Errors
    /// If there is no such task, or its output is gone.
    pub async fn read_output(&self, id: &TaskId, query: OutputQuery) -> Result<OutputPart, Error> {
        let inner = &self.inner;
        let wait = query.wait.unwrap_or_default();
        let end = tokio::time::Instant::now() + wait;
        // Both subscriptions come before the look, so that nothing falls in between.
        let mut ended = inner.ends.subscribe(id);
        let mut growth = inner.live.growth(id);
        loop {
            let record = inner.record(id).await?;
            let part = read(inner, &record, &query)?;
            let live = !record.status.is_terminal();
            // Bytes of the other stream are progress too: the caller goes on behind them.
            let progress = part.next > part.offset;
            if progress || !live || wait.is_zero() || tokio::time::Instant::now() >= end {
                return Ok(part);
            }
            // The shim says so once when there is more than this.
            if let Some(commands) = inner.live.commands(id) {
                let _ = commands.send(Command::Watch(part.next)).await;
            }
            tokio::select! {
                () = tokio::time::sleep_until(end) => {}
                _ = wait::next_end(&mut ended) => {}
                _ = changed(&mut growth) => {}
            }
        }
    }

    /// Which stream each stretch of the output came from, and when, for so many bytes from an offset on.
    ///
    /// # Errors
    /// If there is no such task, or its output is gone.
    pub async fn output_index(&self, id: &TaskId, offset: u64, bytes: u64) -> Result<Vec<Span>, Error> {
        let record = self.inner.record(id).await?;
        let folder = open(&self.inner, &record)?;
        let id = id.clone();
        // A large index takes a while to read; others must not wait for it.
        let read = move || {
            output::spans(folder, offset, offset.saturating_add(bytes))
                .map_err(|error| unreadable(&id, &error))
        };
        tokio::task::spawn_blocking(read).await.map_err(|_| Error::Closed)?
    }
}

async fn changed(growth: &mut Option<tokio::sync::watch::Receiver<u64>>) {
    if let Some(growth) = growth
        && growth.changed().await.is_ok()
    {
        return;
    }
    std::future::pending::<()>().await;
}

fn unreadable(id: &TaskId, error: &std::io::Error) -> Error {
    Error::OutputUnreadable { task: id.clone(), why: error.to_string() }
}

fn open(inner: &Inner, record: &Record) -> Result<OwnedFd, Error> {
    if record.forgotten {
        return Err(Error::OutputGone(record.id.clone()));
    }
    folder::open(&inner.home.attempt(&record.attempt())).map_err(|error| unreadable(&record.id, &error))
}

fn read(inner: &Inner, record: &Record, query: &OutputQuery) -> Result<OutputPart, Error> {
    let folder = open(inner, record)?;
    let failed = |error: std::io::Error| unreadable(&record.id, &error);
    let asked = match (query.tail, query.offset) {
        (Some(tail), _) => output::extent(&folder).map_err(failed)?.end.saturating_sub(tail),
        (None, offset) => offset.unwrap_or(0),
    };
    let chunk = output::read(&folder, asked, query.limit.max(1)).map_err(failed)?;
    let next = chunk.offset + chunk.bytes.len() as u64;
    let over = record.status.is_terminal();
    // Of an ended task the ledger knows; of a live one the files do.
    let extent = output::extent(&folder).map_err(failed)?;
    let dropped = record.output_dropped.max(extent.end.saturating_sub(extent.kept));
    let bytes = match query.stream {
        None => chunk.bytes,
        Some(stream) => {
            let spans = output::spans(&folder, chunk.offset, next).map_err(failed)?;
            only(stream, &spans, chunk.offset, &chunk.bytes)
        }
    };
    let gap = if query.tail.is_some() { 0 } else { chunk.offset - asked.min(chunk.offset) };
    Ok(OutputPart { offset: chunk.offset, next, gap, dropped, bytes, complete: over && next >= extent.end })
}

/// The bytes of one stream; those of a mixed stretch belong to both.
fn only(stream: Stream, spans: &[Span], offset: u64, bytes: &[u8]) -> Vec<u8> {
    let end = offset + bytes.len() as u64;
    let mut kept = Vec::new();
    for (number, span) in spans.iter().enumerate() {
        let until = spans.get(number + 1).map_or(end, |next| next.offset).min(end);
        let from = span.offset.max(offset);
        let wanted = span.stream == stream || matches!(span.stream, Stream::Mixed | Stream::Pty);
        if wanted && from < until {
            let range =
                usize::try_from(from - offset).unwrap_or(0)..usize::try_from(until - offset).unwrap_or(0);
            kept.extend_from_slice(bytes.get(range).unwrap_or_default());
        }
    }
    kept
}
