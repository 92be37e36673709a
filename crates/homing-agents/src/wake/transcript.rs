//! The transcript of a session, as evidence: what is in it was taken by the agent.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::time::Duration;

use homing_model::NoticeId;
use homing_sys::plain;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify;
use serde_json::Value;
use tokio::time::Instant;

use super::told::{self, Line, Told};

/// Looked at again after this long at the latest, where nobody says that the file has changed.
const LOOK: Duration = Duration::from_millis(500);
/// What is added is read in pieces: however much it is, no more than two of them are held. No line of ours is longer than one.
pub(crate) const PIECE: u64 = 1 << 20;

/// What the lines of an agent's transcripts mean.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Format {
    /// What a line of the transcript of this session says of us, if it does.
    pub(crate) judge: fn(&str, &str) -> Option<Line>,
    /// Whether a line is a note of the agent for itself.
    pub(crate) is_note: fn(&Value) -> bool,
}

/// A transcript, from where it ended when it was found.
#[derive(Debug)]
pub(crate) struct Transcript {
    session: String,
    format: Format,
    file: File,
    changes: rustix::fd::OwnedFd,
    /// What was read of a line that goes on.
    pub(crate) rest: Vec<u8>,
    /// Whether that began with more than was held.
    cut: bool,
}

impl Transcript {
    /// The first of these files that can be opened.
    pub(crate) fn open(
        mut paths: impl Iterator<Item = PathBuf>,
        session: &str,
        format: Format,
    ) -> Option<Self> {
        let (path, mut file) = paths.find_map(|path| plain::open(&path).ok().map(|file| (path, file)))?;
        file.seek(SeekFrom::End(0)).ok()?;
        let changes = inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK).ok()?;
        inotify::add_watch(&changes, &path, inotify::WatchFlags::MODIFY).ok()?;
        Some(Self { session: session.to_owned(), format, file, changes, rest: Vec::new(), cut: false })
    }

    /// Which of these notices were in it when it was found, in words of ours, and what became of them.
    pub(crate) fn told(&mut self, ids: &[NoticeId]) -> io::Result<Vec<(NoticeId, Told)>> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let end = self.file.stream_position()?;
        let recent = told::recent(&self.file, end)?;
        self.file.seek(SeekFrom::Start(end))?;
        Ok(told::what_became_of(ids, &recent, |line| (self.format.judge)(&self.session, line)))
    }

    /// Whether a line with these words is added to it within this time, other than a note for itself.
    pub(crate) fn has(&mut self, words: &str, limit: Duration) -> io::Result<bool> {
        let end = Instant::now() + limit;
        loop {
            let read = (&self.file).take(PIECE).read_to_end(&mut self.rest)?;
            if self.take_lines(words) {
                return Ok(true);
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(false);
            }
            if read == 0 {
                self.changed(left.min(LOOK))?;
            }
        }
    }

    /// Looks through the lines that are whole, and leaves the rest.
    fn take_lines(&mut self, words: &str) -> bool {
        let whole = self.rest.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        let lines: Vec<u8> = self.rest.drain(..whole).collect();
        let mut lines = lines.split_inclusive(|byte| *byte == b'\n');
        if self.cut && lines.next().is_some() {
            self.cut = false;
        }
        let is_note = |line: &[u8]| {
            serde_json::from_slice::<Value>(line).is_ok_and(|line| (self.format.is_note)(&line))
        };
        let told = lines.any(|line| holds(line, words) && !is_note(line));
        if self.rest.len() as u64 > PIECE {
            self.rest.clear();
            self.cut = true;
        }
        told
    }

    /// Waits for a change, or this long.
    fn changed(&self, limit: Duration) -> io::Result<()> {
        let limit = Timespec {
            tv_sec: i64::try_from(limit.as_secs()).unwrap_or(0),
            tv_nsec: limit.subsec_nanos().into(),
        };
        match poll(&mut [PollFd::new(&self.changes, PollFlags::IN)], Some(&limit)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let mut events = [0; 4096];
        match rustix::io::read(&self.changes, &mut events) {
            Ok(_) | Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

fn holds(line: &[u8], words: &str) -> bool {
    line.windows(words.len()).any(|window| window == words.as_bytes())
}
