//! The index of a segment: which stream, and when.
//!
//! Bounded: a task that changes streams every few bytes would otherwise write more index than output. Past its budget the index says
//! `mixed` for a stretch, and goes back to exact when the budget allows.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{self, Mode, OFlags};

use super::segment;

/// Bytes of one entry.
pub(super) const ENTRY: usize = 16;
/// Entries closer in time than this are one, if the stream is the same.
const RESOLUTION_MS: i64 = 10;
/// Free bytes of index in any segment, beyond half of its output.
const ALLOWANCE: u64 = 64 * 1024;
/// What must be free again before `mixed` ends.
const HYSTERESIS: u64 = 4 * 1024;

/// Where bytes came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
    /// Both, too finely interleaved to tell.
    Mixed,
    /// A terminal, which has only one.
    Pty,
}

impl Stream {
    const fn code(self) -> u64 {
        match self {
            Self::Stdout => 0,
            Self::Stderr => 1,
            Self::Mixed => 2,
            Self::Pty => 3,
        }
    }

    const fn from_code(code: u64) -> Self {
        match code & 3 {
            0 => Self::Stdout,
            1 => Self::Stderr,
            2 => Self::Mixed,
            _ => Self::Pty,
        }
    }

    /// The word that every surface uses.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
            Self::Mixed => "mixed",
            Self::Pty => "pty",
        }
    }
}

/// From `offset` on, until the next span, bytes are of this stream and were seen at this time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Logical offset of the first byte.
    pub offset: u64,
    /// Where the bytes came from.
    pub stream: Stream,
    /// Wall-clock milliseconds.
    pub at: i64,
}

impl Span {
    fn encode(self) -> [u8; ENTRY] {
        let mut bytes = [0; ENTRY];
        bytes[..8].copy_from_slice(&(self.offset << 2 | self.stream.code()).to_le_bytes());
        bytes[8..].copy_from_slice(&self.at.to_le_bytes());
        bytes
    }

    /// Reads one entry.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let (head, rest) = bytes.split_first_chunk::<8>()?;
        let head = u64::from_le_bytes(*head);
        let at = i64::from_le_bytes(*rest.first_chunk::<8>()?);
        Some(Self { offset: head >> 2, stream: Stream::from_code(head), at })
    }
}

/// Writes one segment's index. Nothing here can fail a task: an entry that cannot be written is left out.
#[derive(Debug)]
pub(super) struct IndexWriter {
    file: Option<OwnedFd>,
    base: u64,
    written: u64,
    last: Option<Span>,
}

impl IndexWriter {
    /// For the segment that begins at `base`; the file is made with the first entry.
    pub(super) const fn new(base: u64) -> Self {
        Self { file: None, base, written: 0, last: None }
    }

    /// What follows at `offset` is of this stream. Called before the bytes are written, so that a reader never sees them as another's.
    pub(super) fn mark(&mut self, folder: BorrowedFd<'_>, offset: u64, stream: Stream, now: i64) {
        let budget = ALLOWANCE + offset.saturating_sub(self.base) / 2;
        let free = budget.saturating_sub(self.written);
        let entry = match self.last {
            Some(last) if last.stream == stream => {
                (now - last.at >= RESOLUTION_MS && free >= ENTRY as u64).then_some(stream)
            }
            Some(last) if last.stream == Stream::Mixed => (free >= HYSTERESIS).then_some(stream),
            Some(_) if free < ENTRY as u64 => Some(Stream::Mixed),
            Some(_) | None => Some(stream),
        };
        if let Some(stream) = entry {
            self.append(folder, Span { offset, stream, at: now });
        }
    }

    fn append(&mut self, folder: BorrowedFd<'_>, span: Span) {
        if self.file.is_none() {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::CLOEXEC | OFlags::NOFOLLOW;
            let name = segment::index_name(self.base);
            self.file = fs::openat(folder, name.as_str(), flags, Mode::RUSR | Mode::WUSR).ok();
        }
        let Some(file) = &self.file else { return };
        if rustix::io::pwrite(file.as_fd(), &span.encode(), self.written) == Ok(ENTRY) {
            self.written += ENTRY as u64;
            self.last = Some(span);
        }
    }
}
