//! The sizes that an attempt's terminal had, and from which byte of the output on.
//!
//! What a program prints means something only at the size that it was printed for. So whoever replays the output (a terminal model, for
//! somebody who attaches) needs the sizes too, and finds them here, in the file `sizes`: entries of 16 bytes, in order (offset, columns, rows,
//! number). The shim, alone and in one thread, writes an entry before it takes any byte that was printed at the new size: who reads output
//! first and sizes second knows all sizes of what was read. Bounded: of more than [`MOST`] entries the older half goes.
//!
//! Nothing here can fail a task: an entry that cannot be written is left out. A reader takes what is whole.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{self, Mode, OFlags};
use rustix::io::Errno;

const NAME: &str = "sizes";
const NEXT: &str = "sizes.next";
const ENTRY: usize = 16;
/// Entries that are kept at most: 64 KiB.
const MOST: usize = 4096;

/// From `offset` on the terminal had this size, until the next entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SizeMark {
    /// Offset of the first byte that was taken at this size.
    pub offset: u64,
    /// Columns.
    pub cols: u16,
    /// Rows.
    pub rows: u16,
    /// Grows with every change, also where the offset does not.
    pub number: u32,
}

/// What a terminal has if neither its launch nor anybody since says otherwise: columns and rows.
pub const FIRST_SIZE: (u16, u16) = (80, 24);

impl SizeMark {
    fn encode(self) -> [u8; ENTRY] {
        let mut bytes = [0; ENTRY];
        bytes[..8].copy_from_slice(&self.offset.to_le_bytes());
        bytes[8..10].copy_from_slice(&self.cols.to_le_bytes());
        bytes[10..12].copy_from_slice(&self.rows.to_le_bytes());
        bytes[12..].copy_from_slice(&self.number.to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (offset, rest) = bytes.split_first_chunk::<8>()?;
        let (cols, rest) = rest.split_first_chunk::<2>()?;
        let (rows, rest) = rest.split_first_chunk::<2>()?;
        let number = u32::from_le_bytes(*rest.first_chunk::<4>()?);
        let (cols, rows) = (u16::from_le_bytes(*cols), u16::from_le_bytes(*rows));
        // What a power cut left as zeros is none.
        (cols > 0 && rows > 0).then_some(Self { offset: u64::from_le_bytes(*offset), cols, rows, number })
    }
}

/// Writes them.
#[derive(Debug, Default)]
pub(crate) struct SizeWriter {
    entries: usize,
    number: u32,
    last_offset: Option<u64>,
}

impl SizeWriter {
    /// From this offset on the terminal has this size. Of several changes at one offset only the last matters.
    pub(crate) fn note(&mut self, folder: impl AsFd, offset: u64, (cols, rows): (u16, u16)) {
        let folder = folder.as_fd();
        if self.entries >= MOST {
            self.halve(folder);
        }
        self.number = self.number.wrapping_add(1);
        let entry = SizeMark { offset, cols, rows, number: self.number };
        let again = self.last_offset == Some(offset);
        let at = if again { self.entries.saturating_sub(1) } else { self.entries };
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let written = fs::openat(folder, NAME, flags, Mode::RUSR | Mode::WUSR)
            .and_then(|file| rustix::io::pwrite(&file, &entry.encode(), (at * ENTRY) as u64));
        if written == Ok(ENTRY) {
            self.entries = at + 1;
            self.last_offset = Some(offset);
        }
    }

    /// Keeps the later half, by a file that takes the place of the old one.
    fn halve(&mut self, folder: impl AsFd) {
        let folder = folder.as_fd();
        let Ok(all) = read_sizes(folder) else { return };
        let kept = all.get(all.len() / 2..).unwrap_or_default();
        let bytes: Vec<u8> = kept.iter().flat_map(|entry| entry.encode()).collect();
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let written = fs::openat(folder, NEXT, flags, Mode::RUSR | Mode::WUSR)
            .and_then(|file| rustix::io::pwrite(&file, &bytes, 0));
        if written == Ok(bytes.len()) && fs::renameat(folder, NEXT, folder, NAME).is_ok() {
            self.entries = kept.len();
        }
    }
}

/// The sizes of an attempt's terminal, in order; empty if it always had its first one.
///
/// # Errors
/// If they are there and cannot be read.
pub fn read_sizes(folder: impl AsFd) -> io::Result<Vec<SizeMark>> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file: OwnedFd = match fs::openat(folder, NAME, flags, Mode::empty()) {
        Ok(file) => file,
        Err(Errno::NOENT) => return Ok(Vec::new()),
        Err(error) => return Err(error.into()),
    };
    let len = usize::try_from(fs::fstat(&file)?.st_size).unwrap_or(0);
    let mut bytes = vec![0; len.min(MOST * ENTRY)];
    let mut got = 0;
    while let Some(rest) = bytes.get_mut(got..).filter(|rest| !rest.is_empty()) {
        match rustix::io::pread(&file, rest, got as u64) {
            Ok(0) => break,
            Ok(count) => got += count,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    bytes.truncate(got);
    Ok(bytes.chunks_exact(ENTRY).filter_map(SizeMark::decode).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(folder: &OwnedFd) -> Vec<(u64, u16, u16)> {
        read_sizes(folder).unwrap().iter().map(|entry| (entry.offset, entry.cols, entry.rows)).collect()
    }

    #[test]
    fn sizes_read_back_in_order_and_the_last_at_one_offset_holds() {
        let dir = tempfile::tempdir().unwrap();
        let folder = crate::folder::open(dir.path()).unwrap();
        assert_eq!(read(&folder), []);
        let mut writer = SizeWriter::default();
        writer.note(&folder, 0, (100, 30));
        writer.note(&folder, 0, (200, 60));
        writer.note(&folder, 7, (80, 24));
        assert_eq!(read(&folder), [(0, 200, 60), (7, 80, 24)]);
        let numbers: Vec<_> = read_sizes(&folder).unwrap().iter().map(|entry| entry.number).collect();
        assert_eq!(numbers, [2, 3]);
    }

    #[test]
    fn the_file_stays_small_and_keeps_what_is_newest() {
        let dir = tempfile::tempdir().unwrap();
        let folder = crate::folder::open(dir.path()).unwrap();
        let mut writer = SizeWriter::default();
        let count = 3 * MOST as u64;
        for offset in 0..count {
            writer.note(&folder, offset, (80, 24));
        }
        let all = read_sizes(&folder).unwrap();
        assert!(all.len() <= MOST && all.len() >= MOST / 2, "{}", all.len());
        assert_eq!(all.last().map(|entry| entry.offset), Some(count - 1));
        assert!(all.windows(2).all(|pair| pair[1].offset == pair[0].offset + 1));
    }

    #[test]
    fn half_an_entry_and_zeros_are_none() {
        let dir = tempfile::tempdir().unwrap();
        let folder = crate::folder::open(dir.path()).unwrap();
        SizeWriter::default().note(&folder, 3, (90, 20));
        let path = dir.path().join(NAME);
        let mut bytes = std::fs::read(&path).unwrap();
        bytes.extend_from_slice(&[0; 20]);
        std::fs::write(path, bytes).unwrap();
        assert_eq!(read(&folder), [(3, 90, 20)]);
    }
}
