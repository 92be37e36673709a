//! `daemon.log`, which never grows beyond its share of the disk.
//!
//! # Theory of operation
//!
//! A line is one `write` to a file that is open for appending, so lines of two writers (a daemon that leaves and the next one) never mix. Before each, the
//! writer looks which file the name means: one that was renamed or removed is let go of, and the name is opened anew. Once a file is full it becomes
//! `daemon.log.1`, and what had that name `daemon.log.2`, up to as many as are kept; the oldest goes. Whoever does that holds a lock on the full
//! file and looks at the name again under it, so that of two writers one does it, once. A kill between two renames leaves a number unused, which the
//! next turn fills; nothing is lost by it but what would have gone anyway. The lock goes with the process. One that is stopped in the middle of it keeps
//! the others from turning: they go on to twice the size, and what is beyond that is dropped.
//!
//! What else this process says on stderr goes to the same file: the descriptor is replaced with the file.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use homing_sys::presence::{self, Identity};
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;
use rustix::thread::{Timespec, nanosleep};

/// No line is longer; the rest of it is cut off.
const LONGEST: usize = 64 * 1024;

/// How often a lock is looked at that another writer has, and the pause in between: a tenth of a second in all.
const LOOKS: u32 = 100;
const PAUSE_NS: i64 = 1_000_000;

/// How much is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limits {
    /// The size of one file, in bytes.
    pub(crate) max: u64,
    /// How many full ones are kept beside the one that is written.
    pub(crate) keep: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max: 4 << 20, keep: 3 }
    }
}

/// The file, open.
#[derive(Debug)]
pub(crate) struct Rotating {
    path: PathBuf,
    limits: Limits,
    file: File,
    held: Option<Identity>,
    /// Whether stderr is to be the same file.
    is_stderr: bool,
}

impl Rotating {
    /// Opens it, for a process whose stderr it is to be or not.
    pub(crate) fn open(path: &Path, limits: Limits, is_stderr: bool) -> io::Result<Self> {
        let file = open(path)?;
        let held = presence::held(&file);
        let opened = Self { path: path.to_owned(), limits, file, held, is_stderr };
        opened.redirect();
        Ok(opened)
    }

    /// Other limits, from the next line on.
    pub(crate) fn limit(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// Writes one line, to the file that the name means, once there is room in it.
    fn line(&mut self, bytes: &[u8]) -> io::Result<()> {
        if presence::at(&self.path) != self.held {
            self.reopen()?;
        }
        if !self.has_room(bytes, 1)? {
            // Another is at it for too long, or it cannot be done: some lines too many are better than none, and than waiting.
            let _ = self.turn();
            if !self.has_room(bytes, 2)? {
                return Ok(());
            }
        }
        self.file.write_all(bytes)
    }

    /// Whether the file stays within so many times its size with this.
    fn has_room(&self, bytes: &[u8], times: u64) -> io::Result<bool> {
        let size = self.file.metadata()?.len();
        Ok(size == 0 || size.saturating_add(bytes.len() as u64) <= self.limits.max.saturating_mul(times))
    }

    /// Takes the lock of the full file, or gives up in a moment: whoever has it may have been stopped in the middle.
    fn lock(&self) -> io::Result<()> {
        let mut looks = LOOKS;
        loop {
            match flock(&self.file, FlockOperation::NonBlockingLockExclusive) {
                Err(Errno::AGAIN) if looks > 0 => looks -= 1,
                locked => return Ok(locked?),
            }
            let _ = nanosleep(&Timespec { tv_sec: 0, tv_nsec: PAUSE_NS });
        }
    }

    fn reopen(&mut self) -> io::Result<()> {
        self.file = open(&self.path)?;
        self.held = presence::held(&self.file);
        self.redirect();
        Ok(())
    }

    fn redirect(&self) {
        if self.is_stderr {
            let _ = rustix::stdio::dup2_stderr(&self.file);
        }
    }

    /// The full file becomes the first of those that are kept, and an empty one takes its name; unless another writer has just done so.
    fn turn(&mut self) -> io::Result<()> {
        self.lock()?;
        if presence::at(&self.path) == self.held {
            shift(&self.path, self.limits.keep)?;
        }
        // The lock goes with the old file.
        self.reopen()
    }
}

impl Write for Rotating {
    /// Takes whole lines: the subscriber writes each of them at once.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() <= LONGEST {
            self.line(bytes)?;
        } else {
            let head = bytes.get(..LONGEST).unwrap_or(bytes);
            self.line(&[head, b" [cut off]\n"].concat())?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// No link is followed: the home is ours, and what is in it is.
fn open(path: &Path) -> io::Result<File> {
    let flags = i32::try_from(OFlags::NOFOLLOW.bits()).unwrap_or_default();
    File::options().append(true).create(true).mode(0o600).custom_flags(flags).open(path)
}

/// The path of the full file of this number.
pub(crate) fn numbered(path: &Path, number: u32) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{number}"));
    name.into()
}

/// Renames from the oldest on. What is beyond the limit goes, also what an earlier limit had kept.
fn shift(path: &Path, keep: u32) -> io::Result<()> {
    let mut beyond = keep.max(1);
    while std::fs::remove_file(numbered(path, beyond)).is_ok() {
        beyond += 1;
    }
    for number in (1..keep).rev() {
        match std::fs::rename(numbered(path, number), numbered(path, number + 1)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
    }
    if keep == 0 { std::fs::remove_file(path) } else { std::fs::rename(path, numbered(path, 1)) }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Barrier};

    use super::*;

    const SMALL: Limits = Limits { max: 1000, keep: 2 };

    fn whole(folder: &Path) -> (u64, Vec<String>) {
        let path = folder.join("daemon.log");
        let files = (1..9).rev().map(|number| numbered(&path, number)).chain([path.clone()]);
        let texts: Vec<_> = files.filter_map(|file| std::fs::read_to_string(file).ok()).collect();
        let size = texts.iter().map(|text| text.len() as u64).sum();
        (size, texts.concat().lines().map(str::to_owned).collect())
    }

    #[test]
    fn the_log_keeps_its_end_and_never_grows_beyond_its_limits() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = Rotating::open(&folder.path().join("daemon.log"), SMALL, false).unwrap();
        for number in 0..500 {
            log.write_all(format!("line {number:04} {}\n", "x".repeat(number % 90)).as_bytes()).unwrap();
            assert!(whole(folder.path()).0 <= 3 * SMALL.max);
        }
        let (_, lines) = whole(folder.path());
        let first: usize = lines[0][5..9].parse().unwrap();
        let numbers: Vec<usize> = lines.iter().map(|line| line[5..9].parse().unwrap()).collect();
        assert_eq!(numbers, (first..500).collect::<Vec<_>>(), "a stretch without a gap, to the last line");
        assert!(!numbered(&folder.path().join("daemon.log"), 3).exists());
    }

    #[test]
    fn two_writers_turn_one_file_once_and_lose_no_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("daemon.log");
        let limits = Limits { max: 20_000, keep: 50 };
        let begin = Arc::new(Barrier::new(4));
        let writers: Vec<_> = (0..4)
            .map(|writer| {
                let (path, begin) = (path.clone(), Arc::clone(&begin));
                std::thread::spawn(move || {
                    let mut log = Rotating::open(&path, limits, false).unwrap();
                    begin.wait();
                    for number in 0..2_000 {
                        let line = format!("{writer} {number:05} {}\n", "y".repeat(60));
                        log.write_all(line.as_bytes()).unwrap();
                    }
                })
            })
            .collect();
        for writer in writers {
            writer.join().unwrap();
        }
        let mut lines = Vec::new();
        for number in 0..50 {
            let file = if number == 0 { path.clone() } else { numbered(&path, number) };
            let Ok(text) = std::fs::read_to_string(&file) else { continue };
            assert!(text.len() as u64 <= 2 * limits.max, "{} has {}", file.display(), text.len());
            lines.extend(text.lines().map(str::to_owned));
        }
        assert!(lines.iter().all(|line| line.len() == 68), "no line is mixed with another");
        lines.sort();
        lines.dedup();
        assert_eq!(lines.len(), 8_000);
    }

    #[test]
    fn a_log_that_was_removed_is_made_again_and_a_turn_that_was_cut_off_is_made_good() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("daemon.log");
        let mut log = Rotating::open(&path, SMALL, false).unwrap();
        log.write_all(b"before\n").unwrap();
        std::fs::remove_file(&path).unwrap();
        log.write_all(b"after\n").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "after\n");
        // Killed after the first of the renames: a number is unused, and the name means nothing.
        std::fs::rename(&path, numbered(&path, 2)).unwrap();
        log.write_all(format!("{}\n", "z".repeat(998)).as_bytes()).unwrap();
        log.write_all(b"next\n").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "next\n");
        assert_eq!(std::fs::read_to_string(numbered(&path, 1)).unwrap().len(), 999);
    }

    #[test]
    fn a_line_without_end_is_cut_off() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("daemon.log");
        let mut log = Rotating::open(&path, Limits::default(), false).unwrap();
        assert_eq!(log.write(&[b'a'; 2 * LONGEST]).unwrap(), 2 * LONGEST);
        assert_eq!(std::fs::read(&path).unwrap().len(), LONGEST + 11);
    }
}
