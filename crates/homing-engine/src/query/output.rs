//! Reading a task's output: any part, by either stream, waiting for more if asked.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use homing_model::{Kind, TaskId};
use homing_shim::output::{self, Span, Stream};
use homing_store::Record;

use crate::engine::{Engine, Inner};
use crate::error::Error;
use crate::query::wait;
use crate::run_blocking;
use crate::supervisor::live::Command;

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
        let mut events = inner.events.subscribe();
        loop {
            let record = inner.record(id).await?;
            let live = !record.status.is_terminal();
            let part = if query.stream.is_none() {
                read(inner, &record, &query)?
            } else {
                // Telling streams apart may take much of an index; others must not wait for it.
                let (inner, query) = (Arc::clone(inner), query.clone());
                let read = move || read(&inner, &record, &query);
                run_blocking(read).await.map_err(|_| Error::Closed)??
            };
            // Bytes of the other stream are progress too: the caller goes on behind them.
            let progress = part.next > part.offset;
            if progress || !live || wait.is_zero() || tokio::time::Instant::now() >= end {
                return Ok(part);
            }
            // The shim says so once when there is more than this. It counts what a full disk did not keep, so what it said last may lie
            // beyond the files; asking for less would be answered at once, for ever.
            if let Some(commands) = inner.live.commands(id) {
                let told = growth.as_ref().map_or(0, |growth| *growth.borrow());
                let _ = commands.send(Command::Watch(part.next.max(told))).await;
            }
            tokio::select! {
                () = tokio::time::sleep_until(end) => {}
                _ = wait::next_end(&mut ended) => {}
                _ = changed(&mut growth) => {}
                // A queued task: news of its start.
                _ = events.changed(), if growth.is_none() => growth = inner.live.growth(id),
            }
        }
    }

    /// Which stream each stretch of the output came from, and when, for so many bytes from an offset on. There may be more spans than one
    /// answer holds: go on from the last one's offset until it is the only one.
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
        run_blocking(read).await.map_err(|_| Error::Closed)?
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

pub(crate) fn unreadable(id: &TaskId, error: &io::Error) -> Error {
    Error::OutputUnreadable { task: id.clone(), why: error.to_string() }
}

pub(crate) fn open(inner: &Inner, record: &Record) -> Result<OwnedFd, Error> {
    if record.forgotten {
        return Err(Error::OutputGone(record.id.clone()));
    }
    if record.kind == Kind::External {
        return Err(Error::External { task: record.id.clone(), what: "its output is not kept here" });
    }
    inner.home.open_attempt(&record.attempt()).map_err(|error| unreadable(&record.id, &error))
}

fn read(inner: &Inner, record: &Record, query: &OutputQuery) -> Result<OutputPart, Error> {
    let folder = open(inner, record)?;
    let failed = |error: io::Error| unreadable(&record.id, &error);
    let asked = match (query.tail, query.offset) {
        (Some(tail), _) => output::extent(&folder).map_err(failed)?.end.saturating_sub(tail),
        (None, offset) => offset.unwrap_or(0),
    };
    let chunk = output::read(&folder, asked, query.limit.max(1)).map_err(failed)?;
    let over = record.status.is_terminal();
    // Of an ended task the ledger knows; of a live one the files do.
    let extent = output::extent(&folder).map_err(failed)?;
    let dropped = record.output_dropped.max(extent.end.saturating_sub(extent.kept));
    // What was dropped at the very end lies behind the files. A tail is of what is kept.
    let seen = if over && query.tail.is_none() { record.output_bytes } else { 0 };
    let offset = if chunk.bytes.is_empty() { asked.max(seen) } else { chunk.offset };
    let next = offset + chunk.bytes.len() as u64;
    let gap = if query.tail.is_some() { 0 } else { offset - asked };
    let complete = over && next >= extent.end.max(seen);
    let bytes = match query.stream {
        None => chunk.bytes,
        Some(stream) => only(&folder, stream, offset, &chunk.bytes).map_err(failed)?,
    };
    Ok(OutputPart { offset, next, gap, dropped, bytes, complete })
}

/// The bytes of one stream; those of a mixed stretch belong to both.
fn only(folder: &OwnedFd, stream: Stream, offset: u64, bytes: &[u8]) -> io::Result<Vec<u8>> {
    let end = offset + bytes.len() as u64;
    let mut kept = Vec::new();
    let mut keep = |span: &Span, until: u64| {
        if span.stream == stream || matches!(span.stream, Stream::Mixed | Stream::Pty) {
            let place = |at: u64| usize::try_from(at - offset).unwrap_or(usize::MAX);
            kept.extend_from_slice(bytes.get(place(span.offset)..place(until)).unwrap_or_default());
        }
    };
    let mut at = offset;
    loop {
        let spans = output::spans(folder, at, end)?;
        for pair in spans.windows(2) {
            if let [span, next] = pair {
                keep(span, next.offset);
            }
        }
        match spans.last() {
            // Where the last one ends is known only when it is asked for alone.
            Some(last) if last.offset > at => at = last.offset,
            Some(last) => {
                keep(last, end);
                return Ok(kept);
            }
            None => return Ok(kept),
        }
    }
}
