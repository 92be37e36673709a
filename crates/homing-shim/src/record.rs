//! The exit record: how an attempt ended, durable before anybody is told that nobody else could tell.
//!
//! Keeps P2, P3 and P9. The bytes are `HMEX`, a format version, a length, one CBOR value and a checksum over all of it. The space is
//! reserved in the start marker when the attempt starts, so that the record fits on a full disk and costs no file of its own. It is
//! written, synced, given its name `exit` by a link (as atomic as a rename, and the marker stays), and the folder is synced. While a
//! daemon is about to make the same end durable in its ledger, the syncs wait a moment for its word and are left out when it comes.
//! A reader that finds anything else than a whole record finds none.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;

use minicbor::{Decode, Encode};
use rustix::fs::{self, AtFlags, FallocateFlags, Mode, OFlags};
use rustix::io::Errno;

/// The name of the finished record.
pub const NAME: &str = "exit";
/// No record is longer.
pub const MAX_BYTES: usize = 4096;
/// At most so many survivors are named, so that the record stays within its space.
pub const MAX_SURVIVORS: usize = 32;
/// The same of requests of input.
pub const MAX_INPUTS: usize = 8;

const MAGIC: &[u8; 4] = b"HMEX";
const VERSION: u16 = 1;
const HEADER: usize = 10;

/// How it ended, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum Verdict {
    /// By itself, with the kernel's code or signal.
    #[n(0)]
    Exited,
    /// The shim had signalled it on request before it saw the end.
    #[n(1)]
    Stopped,
    /// The shim had signalled it for its time limit before it saw the end.
    #[n(2)]
    TimedOut,
    /// It was never executed.
    #[n(3)]
    StartFailed,
}

/// What a start failed at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum StartError {
    /// There is no such program.
    #[n(0)]
    NotFound,
    /// It is there, and the kernel does not execute it.
    #[n(1)]
    NotExecutable,
    /// Something else: the folder, the input, a limit.
    #[n(2)]
    Other,
}

/// A process that was alive at the end.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Survivor {
    /// Its pid.
    #[n(0)]
    pub pid: u32,
    /// Its program's name.
    #[n(1)]
    pub name: String,
}

/// All that a shim knows of an end.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct ExitRecord {
    /// The task.
    #[n(0)]
    pub task: String,
    /// Which try.
    #[n(1)]
    pub attempt: u32,
    /// Which launch.
    #[n(2)]
    pub nonce: u64,
    /// Which boot.
    #[n(3)]
    pub boot_id: String,
    /// One word.
    #[n(4)]
    pub verdict: Verdict,
    /// What the main process passed to `exit`.
    #[n(5)]
    pub exit_code: Option<i32>,
    /// Which signal ended it.
    #[n(6)]
    pub signal: Option<i32>,
    /// More, where the code does not say.
    #[n(7)]
    pub reason: Option<String>,
    /// Who asked for the end.
    #[n(8)]
    pub stopped_by: Option<String>,
    /// Who was still alive.
    #[n(9)]
    pub survivors: Vec<Survivor>,
    /// The main process.
    #[n(10)]
    pub pid: Option<u32>,
    /// When it was executed, in wall-clock milliseconds.
    #[n(11)]
    pub started_at: Option<i64>,
    /// When it ended.
    #[n(12)]
    pub ended_at: i64,
    /// How long it ran, monotonic.
    #[n(13)]
    pub duration_ms: u64,
    /// Peak memory.
    #[n(14)]
    pub max_rss_bytes: u64,
    /// Processor time.
    #[n(15)]
    pub cpu_ms: u64,
    /// Bytes of output in all.
    #[n(16)]
    pub output_bytes: u64,
    /// Of those, bytes no longer kept.
    #[n(17)]
    pub output_dropped: u64,
    /// Why it was never executed; records of earlier releases do not say.
    #[n(18)]
    pub start_error: Option<StartError>,
    /// The numbers of the last requests of input that were taken whole; records of earlier releases do not say.
    #[n(19)]
    pub inputs: Option<Vec<u64>>,
}

/// Why bytes are not a record.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Too short, cut, or with a wrong checksum.
    #[error("the exit record is damaged")]
    Damaged,
    /// Of a later format.
    #[error("the exit record has format {0}, this release knows up to {VERSION}")]
    TooNew(u16),
    /// It could not be read.
    #[error("the exit record could not be read: {0}")]
    Io(#[from] io::Error),
}

impl ExitRecord {
    /// The record as bytes, whole.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut payload = Vec::with_capacity(512);
        // Writing to a Vec cannot fail; what cannot be encoded would read back as damaged.
        let _ = minicbor::encode(self, &mut payload);
        let mut bytes = Vec::with_capacity(HEADER + payload.len() + 4);
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&u32::try_from(payload.len()).unwrap_or(u32::MAX).to_le_bytes());
        bytes.extend_from_slice(&payload);
        let checksum = crc32fast::hash(&bytes);
        bytes.extend_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// Reads a record; trailing bytes of the reserved space are ignored.
    ///
    /// # Errors
    /// If it is not whole, or of a later format.
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let (magic, rest) = bytes.split_first_chunk::<4>().ok_or(Error::Damaged)?;
        let (version, rest) = rest.split_first_chunk::<2>().ok_or(Error::Damaged)?;
        let (length, rest) = rest.split_first_chunk::<4>().ok_or(Error::Damaged)?;
        let length = u32::from_le_bytes(*length) as usize;
        if magic != MAGIC || length > MAX_BYTES {
            return Err(Error::Damaged);
        }
        let payload = rest.get(..length).ok_or(Error::Damaged)?;
        let checksum = rest.get(length..).and_then(|rest| rest.first_chunk::<4>()).ok_or(Error::Damaged)?;
        let covered = bytes.get(..HEADER + length).ok_or(Error::Damaged)?;
        if crc32fast::hash(covered).to_le_bytes() != *checksum {
            return Err(Error::Damaged);
        }
        // The checksum stands for any version; what it covers is known only up to ours.
        let version = u16::from_le_bytes(*version);
        if version > VERSION {
            return Err(Error::TooNew(version));
        }
        minicbor::decode(payload).map_err(|_| Error::Damaged)
    }
}

/// Reserves the space for a record in the attempt's start marker.
pub(crate) fn reserve(marker: &File) {
    // A filesystem that cannot reserve keeps the promise all the same unless it is full at the end.
    let _ = fs::fallocate(marker, FallocateFlags::empty(), 0, MAX_BYTES as u64);
}

/// Puts a record in place, safe from the end of any process; a power cut may take it until it is synced.
///
/// # Errors
/// If the disk does not take it.
pub fn place(folder: BorrowedFd<'_>, marker: &File, bytes: &[u8]) -> io::Result<()> {
    marker.write_all_at(bytes, 0)?;
    name(folder, bytes)
}

/// Gives the marker the record's name. Where the filesystem has no links, a copy gets it, by rename.
fn name(folder: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<()> {
    match fs::linkat(folder, homing_sys::home::START_MARKER, folder, NAME, AtFlags::empty()) {
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(Errno::PERM | Errno::OPNOTSUPP | Errno::MLINK) => {
            const COPY: &str = "exit.copy";
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::CLOEXEC | OFlags::NOFOLLOW;
            let copy = File::from(fs::openat(folder, COPY, flags, Mode::RUSR | Mode::WUSR)?);
            copy.write_all_at(bytes, 0)?;
            copy.sync_data()?;
            Ok(fs::renameat(folder, COPY, folder, NAME)?)
        }
        Err(error) => Err(error.into()),
    }
}

/// Makes a record that is in place durable.
pub(crate) fn sync(folder: BorrowedFd<'_>, marker: &File) -> io::Result<()> {
    fs::fdatasync(marker)?;
    // The descriptor that locks the folder was opened for reading; it can be synced all the same.
    Ok(fs::fsync(folder)?)
}

/// Makes a record durable: write, sync, name it, sync the folder.
pub(crate) fn commit(folder: BorrowedFd<'_>, marker: &File, bytes: &[u8]) -> io::Result<()> {
    marker.write_all_at(bytes, 0)?;
    fs::fdatasync(marker)?;
    name(folder, bytes)?;
    Ok(fs::fsync(folder)?)
}

/// Reads the record of an attempt's folder; none if there is none.
///
/// # Errors
/// If there is one that cannot be read.
pub fn read(folder: impl AsFd) -> Result<Option<ExitRecord>, Error> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = match fs::openat(folder, NAME, flags, Mode::empty()) {
        Ok(file) => file,
        Err(Errno::NOENT) => return Ok(None),
        Err(error) => return Err(Error::Io(error.into())),
    };
    let mut bytes = Vec::new();
    File::from(file).take(2 * MAX_BYTES as u64).read_to_end(&mut bytes)?;
    ExitRecord::decode(&bytes).map(Some)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::folder;

    pub(super) fn sample() -> ExitRecord {
        ExitRecord {
            task: "t-2222222222".into(),
            attempt: 1,
            nonce: 7,
            boot_id: "b".into(),
            verdict: Verdict::Exited,
            exit_code: Some(3),
            signal: None,
            reason: None,
            stopped_by: None,
            survivors: vec![Survivor { pid: 9, name: "sleep".into() }],
            pid: Some(8),
            started_at: Some(1),
            ended_at: 2,
            duration_ms: 1,
            max_rss_bytes: 4096,
            cpu_ms: 5,
            output_bytes: 6,
            output_dropped: 0,
            start_error: None,
            inputs: None,
        }
    }

    #[test]
    fn what_a_start_failed_at_reads_back() {
        for why in [StartError::NotFound, StartError::NotExecutable, StartError::Other] {
            let failed = ExitRecord { verdict: Verdict::StartFailed, start_error: Some(why), ..sample() };
            assert_eq!(ExitRecord::decode(&failed.encode()).unwrap(), failed);
        }
    }

    #[test]
    fn a_record_reads_back_even_with_the_reserved_space_behind_it() {
        let mut bytes = sample().encode();
        bytes.resize(MAX_BYTES, 0);
        assert_eq!(ExitRecord::decode(&bytes).unwrap(), sample());
    }

    #[test]
    fn p2_any_flipped_bit_or_cut_is_no_record() {
        let bytes = sample().encode();
        for at in 0..bytes.len() {
            let mut bad = bytes.clone();
            bad[at] ^= 1;
            assert!(ExitRecord::decode(&bad).is_err(), "bit at {at}");
            assert!(ExitRecord::decode(&bytes[..at]).is_err(), "cut at {at}");
        }
    }

    #[test]
    fn p2_the_fattest_record_fits_into_its_space() {
        let survivors = vec![Survivor { pid: u32::MAX, name: "\u{fffd}".repeat(15) }; MAX_SURVIVORS];
        let fat = ExitRecord {
            reason: Some("\u{10ffff}".repeat(300)),
            stopped_by: Some("\u{10ffff}".repeat(200)),
            survivors,
            inputs: Some(vec![u64::MAX; MAX_INPUTS]),
            ..sample()
        };
        assert!(fat.encode().len() <= MAX_BYTES, "{}", fat.encode().len());
        assert_eq!(ExitRecord::decode(&fat.encode()).unwrap(), fat);
    }

    #[test]
    fn a_record_of_the_first_format_still_reads() {
        let golden = include_bytes!("../tests/golden/exit-v1.bin");
        assert_eq!(ExitRecord::decode(golden).unwrap(), sample());
    }

    #[test]
    fn p9_commit_names_the_record_and_the_marker_stays() {
        let dir = tempfile::tempdir().unwrap();
        let folder = File::open(dir.path()).unwrap();
        let marker = folder::mark(&folder).unwrap().unwrap();
        reserve(&marker);
        assert!(read(&folder).unwrap().is_none());
        commit(folder.as_fd(), &marker, &sample().encode()).unwrap();
        assert_eq!(read(&folder).unwrap(), Some(sample()));
        assert!(folder::is_marked(&folder).unwrap());
    }

    proptest! {
        #[test]
        fn garbage_is_never_a_record(bytes: Vec<u8>) {
            prop_assert!(ExitRecord::decode(&bytes).is_err());
        }
    }
}
