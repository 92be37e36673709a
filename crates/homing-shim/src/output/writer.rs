//! Writes the output: whatever a pipe or a terminal gave, up to the cap.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{self, AtFlags, Mode, OFlags};
use rustix::io::Errno;

use super::index::{IndexWriter, Stream};
use super::segment;

/// A pipe whose writer is fast holds this much: the writer goes on while what it wrote goes to the file.
const WIDE: usize = 1 << 20;
/// Segments that the tail is cut into.
const TAIL_SEGMENTS: u64 = 8;

/// What one attempt to take output gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Taken {
    /// So many bytes; kept or counted as dropped.
    Bytes(u64),
    /// Nothing there now.
    Nothing,
    /// Nothing will come any more.
    End,
    /// Nobody has the terminal open now; somebody may open it again.
    HangUp,
}

#[derive(Debug)]
struct Segment {
    base: u64,
    len: u64,
    limit: u64,
    log: OwnedFd,
    index: IndexWriter,
}

/// The output of one attempt.
#[derive(Debug)]
pub(crate) struct Writer {
    folder: OwnedFd,
    head_limit: u64,
    tail_limit: u64,
    current: Option<Segment>,
    /// Ended tail segments, oldest first: where each begins and how long it is.
    tail: VecDeque<(u64, u64)>,
    total: u64,
    dropped: u64,
}

impl Writer {
    /// Begins the output in an attempt's folder. A disk that is full already is met when the first bytes come.
    pub(crate) fn new(folder: OwnedFd, cap: u64) -> Self {
        let head_limit = (cap / 2).max(1);
        let mut writer = Self {
            folder,
            head_limit,
            tail_limit: (cap - cap / 2).max(TAIL_SEGMENTS),
            current: None,
            tail: VecDeque::new(),
            total: 0,
            dropped: 0,
        };
        writer.current = writer.begin(0, head_limit).ok();
        writer
    }

    /// Bytes seen in all.
    pub(crate) const fn total(&self) -> u64 {
        self.total
    }

    /// Of those, bytes no longer kept.
    pub(crate) const fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Reads what a pipe or a terminal holds, as much as `buffer` takes, and keeps it. A terminal whose last user is gone answers with
    /// an error.
    pub(crate) fn take(
        &mut self,
        source: BorrowedFd<'_>,
        stream: Stream,
        buffer: &mut [u8],
        now: i64,
    ) -> Taken {
        match rustix::io::read(source, &mut *buffer) {
            Ok(0) => Taken::End,
            Ok(count) => {
                self.append(buffer.get(..count).unwrap_or_default(), stream, now);
                Taken::Bytes(count as u64)
            }
            Err(Errno::AGAIN | Errno::INTR) => Taken::Nothing,
            Err(Errno::IO) if stream == Stream::Pty => Taken::HangUp,
            Err(_) => Taken::End,
        }
    }

    fn append(&mut self, mut bytes: &[u8], stream: Stream, now: i64) {
        while !bytes.is_empty() {
            let written = match self.room(stream, now) {
                Ok(segment) => {
                    let room =
                        usize::try_from(segment.limit - segment.len).unwrap_or(usize::MAX).min(bytes.len());
                    let part = bytes.get(..room).unwrap_or(bytes);
                    rustix::io::pwrite(segment.log.as_fd(), part, segment.len).inspect(|count| {
                        segment.len += *count as u64;
                    })
                }
                Err(error) => Err(error),
            };
            match written {
                Ok(count) if count > 0 => {
                    self.total += count as u64;
                    bytes = bytes.get(count..).unwrap_or_default();
                }
                Err(Errno::INTR) => {}
                // The disk, not the pipe: what cannot be kept is counted and let go, so that the task does not hang on it.
                Ok(_) | Err(_) => {
                    self.abandon();
                    self.total += bytes.len() as u64;
                    self.dropped += bytes.len() as u64;
                    return;
                }
            }
        }
    }

    /// The segment that takes the next byte, with its index told of the stream.
    fn room(&mut self, stream: Stream, now: i64) -> Result<&mut Segment, Errno> {
        let full = match &self.current {
            Some(segment) => segment.len >= segment.limit,
            None => true,
        };
        if full {
            self.rotate()?;
        }
        let folder = self.folder.as_fd();
        let segment = self.current.as_mut().ok_or(Errno::NOSPC)?;
        segment.index.mark(folder, segment.base + segment.len, stream, now);
        Ok(segment)
    }

    /// Ends the current segment and begins the next, dropping the oldest of the tail where the cap asks for it.
    fn rotate(&mut self) -> Result<(), Errno> {
        if let Some(segment) = self.current.take()
            && segment.base > 0
        {
            self.tail.push_back((segment.base, segment.len));
        }
        let mut kept: u64 = self.tail.iter().map(|(_, len)| len).sum();
        while kept >= self.tail_limit
            && let Some((base, len)) = self.tail.pop_front()
        {
            let _ = fs::unlinkat(&self.folder, segment::log_name(base).as_str(), AtFlags::empty());
            let _ = fs::unlinkat(&self.folder, segment::index_name(base).as_str(), AtFlags::empty());
            kept -= len;
            self.dropped += len;
        }
        // Never beyond the cap, and nothing dropped before it is reached.
        let limit =
            (self.tail_limit / TAIL_SEGMENTS).clamp(1, (self.tail_limit - kept.min(self.tail_limit)).max(1));
        // Nothing was written yet: the head itself could not be made before.
        let limit = if self.total == 0 { self.head_limit } else { limit };
        self.current = Some(self.begin(self.total, limit)?);
        Ok(())
    }

    fn begin(&self, base: u64, limit: u64) -> Result<Segment, Errno> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let log = fs::openat(&self.folder, segment::log_name(base).as_str(), flags, Mode::RUSR | Mode::WUSR)?;
        Ok(Segment { base, len: 0, limit, log, index: IndexWriter::new(base) })
    }

    /// Gives up a segment that can no longer be written; the next one begins where writing works again.
    fn abandon(&mut self) {
        let Some(segment) = self.current.take() else { return };
        if segment.base == 0 {
            return;
        }
        if segment.len == 0 {
            let _ = fs::unlinkat(&self.folder, segment::log_name(segment.base).as_str(), AtFlags::empty());
            let _ = fs::unlinkat(&self.folder, segment::index_name(segment.base).as_str(), AtFlags::empty());
        } else {
            self.tail.push_back((segment.base, segment.len));
        }
    }
}

/// Makes a pipe large, once its writer has shown that it needs it. Pages of pipes are a shared good.
pub(crate) fn widen(pipe: BorrowedFd<'_>) -> io::Result<()> {
    rustix::pipe::fcntl_setpipe_size(pipe, WIDE)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{extent, read, spans};
    use super::*;

    struct Bench {
        dir: tempfile::TempDir,
        writer: Writer,
    }

    fn bench(cap: u64) -> Bench {
        let dir = tempfile::tempdir().unwrap();
        let writer = Writer::new(crate::folder::open(dir.path()).unwrap(), cap);
        Bench { dir, writer }
    }

    fn collect(dir: &std::path::Path) -> Vec<(u64, Vec<u8>)> {
        let folder = crate::folder::open(dir).unwrap();
        let (mut at, mut chunks) = (0, Vec::new());
        loop {
            let chunk = read(&folder, at, 1 << 20).unwrap();
            if chunk.bytes.is_empty() {
                return chunks;
            }
            at = chunk.offset + chunk.bytes.len() as u64;
            chunks.push((chunk.offset, chunk.bytes));
        }
    }

    proptest! {
        #[test]
        fn p7_every_byte_up_to_the_cap_is_kept_and_offsets_never_move(
            cap in 16u64..4096, writes in proptest::collection::vec(1usize..700, 1..60)) {
            let Bench { dir, mut writer } = bench(cap);
            let mut truth = Vec::new();
            for (number, len) in writes.into_iter().enumerate() {
                let bytes: Vec<u8> = (0..len).map(|i| ((truth.len() + i) % 251) as u8).collect();
                let stream = if number % 3 == 0 { Stream::Stderr } else { Stream::Stdout };
                writer.append(&bytes, stream, number as i64);
                truth.extend(bytes);
            }
            let chunks = collect(dir.path());
            let kept: u64 = chunks.iter().map(|(_, bytes)| bytes.len() as u64).sum();
            for (offset, bytes) in &chunks {
                let at = *offset as usize;
                prop_assert_eq!(bytes.as_slice(), &truth[at..at + bytes.len()]);
            }
            prop_assert_eq!(writer.total(), truth.len() as u64);
            prop_assert_eq!(kept + writer.dropped(), truth.len() as u64);
            if truth.len() as u64 <= cap {
                prop_assert_eq!(writer.dropped(), 0);
            } else {
                prop_assert!(kept <= cap.max(16) && kept >= cap / 2);
            }
            let (last, bytes) = chunks.last().unwrap();
            prop_assert_eq!(last + bytes.len() as u64, truth.len() as u64);
        }
    }

    #[test]
    fn streams_are_told_apart_by_the_index() {
        let Bench { dir, mut writer } = bench(1 << 20);
        writer.append(b"out", Stream::Stdout, 5);
        writer.append(b"err", Stream::Stderr, 6);
        writer.append(b"more", Stream::Stdout, 7);
        let folder = crate::folder::open(dir.path()).unwrap();
        let spans: Vec<_> =
            spans(&folder, 0, 10).unwrap().iter().map(|s| (s.offset, s.stream, s.at)).collect();
        assert_eq!(spans, [(0, Stream::Stdout, 5), (3, Stream::Stderr, 6), (6, Stream::Stdout, 7)]);
    }

    #[test]
    fn the_index_stays_smaller_than_its_budget_and_says_mixed() {
        let Bench { dir, mut writer } = bench(64 << 20);
        for i in 0..40_000 {
            let stream = if i % 2 == 0 { Stream::Stdout } else { Stream::Stderr };
            writer.append(b"x", stream, 0);
        }
        let index = std::fs::metadata(dir.path().join("output.idx")).unwrap().len();
        assert!(index <= 64 * 1024 + 40_000 / 2 + 32, "{index}");
        let folder = crate::folder::open(dir.path()).unwrap();
        assert!(spans(&folder, 0, 40_000).unwrap().iter().any(|span| span.stream == Stream::Mixed));
    }

    #[test]
    fn pipes_are_moved_whole_and_their_end_is_seen() {
        let Bench { dir, mut writer } = bench(1 << 20);
        let (reader, sender) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::NONBLOCK).unwrap();
        assert_eq!(writer.take(reader.as_fd(), Stream::Stdout, &mut [0; 64], 0), Taken::Nothing);
        rustix::io::write(&sender, b"hello").unwrap();
        assert_eq!(writer.take(reader.as_fd(), Stream::Stdout, &mut [0; 64], 0), Taken::Bytes(5));
        drop(sender);
        assert_eq!(writer.take(reader.as_fd(), Stream::Stdout, &mut [0; 64], 0), Taken::End);
        assert_eq!(std::fs::read(dir.path().join("output.log")).unwrap(), b"hello");
        let extent = extent(crate::folder::open(dir.path()).unwrap()).unwrap();
        assert_eq!((extent.end, extent.kept), (5, 5));
    }
}
