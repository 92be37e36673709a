//! Reads the output while it grows: no lock, no help from the writer.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{self, Mode, OFlags};
use rustix::io::Errno;

use super::index::{ENTRY, Span};
use super::segment;

/// A stretch of output.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Chunk {
    /// Offset of its first byte; beyond the asked one if there is a gap.
    pub offset: u64,
    /// The bytes; empty if there is nothing (yet) at or after the asked offset.
    pub bytes: Vec<u8>,
}

/// How much output there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Extent {
    /// Offset after the last kept byte.
    pub end: u64,
    /// Bytes on disk.
    pub kept: u64,
}

#[derive(Debug, Clone, Copy)]
struct Part {
    base: u64,
    len: u64,
}

/// The segments, in order. A segment dropped while we look is simply not there.
fn parts(folder: impl AsFd) -> io::Result<Vec<Part>> {
    let mut parts = Vec::new();
    for entry in fs::Dir::read_from(folder.as_fd())? {
        let entry = entry?;
        let Some(base) = segment::base_of(entry.file_name().to_bytes()) else { continue };
        match fs::statat(folder.as_fd(), entry.file_name(), fs::AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => parts.push(Part { base, len: u64::try_from(stat.st_size).unwrap_or(0) }),
            Err(Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
    }
    parts.sort_unstable_by_key(|part| part.base);
    Ok(parts)
}

fn open(folder: impl AsFd, name: &str) -> io::Result<Option<OwnedFd>> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    match fs::openat(folder, name, flags, Mode::empty()) {
        Ok(file) => Ok(Some(file)),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// How much output there is.
///
/// # Errors
/// If the folder cannot be read.
pub fn extent(folder: impl AsFd) -> io::Result<Extent> {
    let parts = parts(folder)?;
    Ok(Extent {
        end: parts.last().map_or(0, |part| part.base + part.len),
        kept: parts.iter().map(|part| part.len).sum(),
    })
}

/// Reads at most `limit` bytes from the first kept byte at or after `offset`; never across a gap.
///
/// # Errors
/// If the files cannot be read.
pub fn read(folder: impl AsFd, offset: u64, limit: usize) -> io::Result<Chunk> {
    // The common case needs no look at the folder: the head holds the offset.
    if let Some(head) = open(folder.as_fd(), segment::HEAD)? {
        let bytes = read_at(&head, offset, limit)?;
        if !bytes.is_empty() {
            return Ok(Chunk { offset, bytes });
        }
    }
    loop {
        let parts = parts(folder.as_fd())?;
        let Some(part) = parts.iter().find(|part| part.base + part.len > offset) else {
            return Ok(Chunk { offset, bytes: Vec::new() });
        };
        let from = offset.max(part.base);
        // Dropped since we looked: look again, further on.
        let Some(file) = open(folder.as_fd(), &segment::log_name(part.base))? else { continue };
        let bytes = read_at(&file, from - part.base, limit)?;
        return Ok(Chunk { offset: from, bytes });
    }
}

fn read_at(file: &OwnedFd, offset: u64, limit: usize) -> io::Result<Vec<u8>> {
    let len = u64::try_from(fs::fstat(file)?.st_size).unwrap_or(0).saturating_sub(offset);
    let want = usize::try_from(len).unwrap_or(usize::MAX).min(limit);
    let mut bytes = vec![0; want];
    let mut got = 0;
    while got < want {
        let Some(rest) = bytes.get_mut(got..) else { break };
        match rustix::io::pread(file, rest, offset + got as u64) {
            Ok(0) => break,
            Ok(count) => got += count,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    bytes.truncate(got);
    Ok(bytes)
}

/// The spans that cover `from..to`, clipped to begin at `from`.
///
/// # Errors
/// If the index cannot be read.
pub fn spans(folder: impl AsFd, from: u64, to: u64) -> io::Result<Vec<Span>> {
    let mut spans: Vec<Span> = Vec::new();
    for part in parts(folder.as_fd())? {
        if part.base + part.len <= from || part.base >= to {
            continue;
        }
        let Some(file) = open(folder.as_fd(), &segment::index_name(part.base))? else { continue };
        let size = usize::try_from(fs::fstat(&file)?.st_size).unwrap_or(0);
        let entries = read_at(&file, 0, size)?;
        for span in entries.chunks_exact(ENTRY).filter_map(Span::decode) {
            if span.offset >= to.min(part.base + part.len) {
                break;
            }
            match spans.last_mut() {
                // The later of two entries at one offset, or before the asked one, holds.
                Some(last) if last.offset == span.offset.max(from) => {
                    *last = Span { offset: last.offset, ..span }
                }
                _ => spans.push(Span { offset: span.offset.max(from), ..span }),
            }
        }
    }
    Ok(spans)
}
