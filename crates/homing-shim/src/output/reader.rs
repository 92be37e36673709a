//! Reads the output while it grows: no lock, no help from the writer.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{self, Mode, OFlags};
use rustix::io::Errno;

use super::index::{ENTRY, Span};
use super::segment;

/// Spans in one answer at most.
const MOST: usize = 1 << 16;
/// Bytes of an index read at once.
const BLOCK: usize = 256 * ENTRY;

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
    /// When the last of them was written, in wall-clock milliseconds; none if there are none.
    pub written_at: Option<i64>,
}

#[derive(Debug, Clone, Copy)]
struct Part {
    base: u64,
    len: u64,
    written_at: i64,
}

/// The segments, in order. A segment dropped while we look is simply not there.
fn parts(folder: impl AsFd) -> io::Result<Vec<Part>> {
    let mut parts = Vec::new();
    for entry in fs::Dir::read_from(folder.as_fd())? {
        let entry = entry?;
        let Some(base) = segment::base_of(entry.file_name().to_bytes()) else { continue };
        match fs::statat(folder.as_fd(), entry.file_name(), fs::AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => parts.push(Part {
                base,
                len: u64::try_from(stat.st_size).unwrap_or(0),
                written_at: millis(stat.st_mtime, stat.st_mtime_nsec),
            }),
            Err(Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
    }
    parts.sort_unstable_by_key(|part| part.base);
    Ok(parts)
}

/// The kernel's time of a file; its types differ between machines.
fn millis(seconds: impl TryInto<i64>, nanos: impl TryInto<i64>) -> i64 {
    let seconds = seconds.try_into().unwrap_or(0);
    seconds.saturating_mul(1000).saturating_add(nanos.try_into().unwrap_or(0) / 1_000_000)
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
        written_at: parts.iter().filter(|part| part.len > 0).map(|part| part.written_at).max(),
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

/// The spans that cover `from..to`, clipped to begin at `from`; at most 65,536 of them, so go on from the last one's offset until it comes
/// alone.
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
        let end = to.min(part.base + part.len);
        let mut at = entry_before(&file, from)?;
        'index: loop {
            let block = read_at(&file, at, BLOCK)?;
            for span in block.chunks_exact(ENTRY).filter_map(Span::decode) {
                if span.offset >= end {
                    break 'index;
                }
                let span = Span { offset: span.offset.max(from), ..span };
                let full = spans.len() == MOST;
                match spans.last_mut() {
                    // The later of two entries at one offset, or before the asked one, holds.
                    Some(last) if last.offset == span.offset => *last = span,
                    // Offsets never go back; what a power cut left in an index does not count.
                    Some(last) if last.offset > span.offset => {}
                    Some(_) if full => return Ok(spans),
                    Some(_) | None => spans.push(span),
                }
            }
            if block.len() < BLOCK {
                break;
            }
            at += BLOCK as u64;
        }
    }
    Ok(spans)
}

/// Where in an index the last entry at or before an offset is; its beginning if there is none. Entries are sorted, and there may be
/// millions of them.
fn entry_before(index: &OwnedFd, offset: u64) -> io::Result<u64> {
    let size = ENTRY as u64;
    let (mut low, mut high) = (0, u64::try_from(fs::fstat(index)?.st_size).unwrap_or(0) / size);
    while low < high {
        let middle = low + (high - low) / 2;
        match Span::decode(&read_at(index, middle * size, ENTRY)?) {
            Some(span) if span.offset <= offset => low = middle + 1,
            Some(_) | None => high = middle,
        }
    }
    Ok(low.saturating_sub(1) * size)
}

#[cfg(test)]
mod tests {
    use super::super::Stream;
    use super::*;

    /// A folder whose output has an index entry at each of these offsets, the streams in turn.
    fn indexed(offsets: impl Iterator<Item = u64>, len: usize) -> (tempfile::TempDir, OwnedFd) {
        let dir = tempfile::tempdir().unwrap();
        let entries = offsets.zip(0..).flat_map(|(offset, at): (u64, u64)| {
            [((offset << 2) | (at % 2)).to_le_bytes(), at.to_le_bytes()].concat()
        });
        std::fs::write(dir.path().join("output.idx"), entries.collect::<Vec<u8>>()).unwrap();
        std::fs::write(dir.path().join("output.log"), vec![b'x'; len]).unwrap();
        let folder = crate::folder::open(dir.path()).unwrap();
        (dir, folder)
    }

    #[test]
    fn spans_are_found_in_the_middle_of_a_large_index() {
        let (_dir, folder) = indexed((0..10_000).map(|n| n * 3), 30_000);
        let found = |from, to| -> Vec<_> {
            spans(&folder, from, to).unwrap().iter().map(|span| (span.offset, span.at)).collect()
        };
        assert_eq!(found(0, 4), [(0, 0), (3, 1)]);
        assert_eq!(found(15_000, 15_004), [(15_000, 5_000), (15_003, 5_001)]);
        assert_eq!(found(15_001, 15_003), [(15_001, 5_000)]);
        assert_eq!(found(29_998, u64::MAX), [(29_998, 9_999)]);
        assert_eq!(found(30_000, u64::MAX), []);
        for (from, to) in [(0, 30_000), (766, 1537), (767, 1536), (768, 1535), (5, 25_000)] {
            let all = found(from, to);
            assert_eq!(all[0], (from, i64::try_from(from / 3).unwrap()));
            assert_eq!(all.len() as u64, to.div_ceil(3) - from / 3, "{from} to {to}");
            assert!(all.windows(2).all(|pair| pair[1].1 == pair[0].1 + 1));
        }
    }

    #[test]
    fn the_later_of_two_entries_at_one_offset_holds_wherever_one_begins() {
        let (_dir, folder) = indexed([0, 5, 5, 5, 9].into_iter(), 12);
        let found = |from| -> Vec<_> {
            spans(&folder, from, 12).unwrap().iter().map(|span| (span.offset, span.at)).collect()
        };
        assert_eq!(found(0), [(0, 0), (5, 3), (9, 4)]);
        assert_eq!(found(5), [(5, 3), (9, 4)]);
        assert_eq!(found(7), [(7, 3), (9, 4)]);
        assert_eq!(spans(&folder, 6, 7).unwrap()[0].stream, Stream::Stderr);
    }

    #[test]
    fn more_spans_than_one_answer_holds_are_found_by_going_on() {
        let count = MOST + 100;
        let (_dir, folder) = indexed(0..count as u64, count);
        let first = spans(&folder, 0, u64::MAX).unwrap();
        assert_eq!(first.len(), MOST);
        let last = first[MOST - 1];
        let rest = spans(&folder, last.offset, u64::MAX).unwrap();
        assert_eq!((rest[0], rest.len()), (last, 101));
        assert_eq!(spans(&folder, rest[100].offset, u64::MAX).unwrap(), [rest[100]]);
    }
}
