//! Reading output as it lies on the disk, and judging its lines: one bounded piece at a time.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use homing_model::watch::{Pattern, State, Stretch};
use homing_model::{Masks, Timestamp};
use homing_shim::output;

/// Read at once at most; more than the longest line, so that each piece has one that ends.
const PIECE: usize = 256 * 1024;

/// A piece of work for a thread that may block.
pub(super) struct Scan {
    pub(super) folder: OwnedFd,
    pub(super) patterns: Arc<[Pattern]>,
    pub(super) masks: Masks,
    pub(super) state: State,
    /// Nothing may be told now: everything is counted.
    pub(super) hold: bool,
    /// The output ends here; without it, it goes on.
    pub(super) until: Option<u64>,
    pub(super) now: Timestamp,
}

/// What came of it.
pub(super) struct Scanned {
    pub(super) state: State,
    /// Where the bytes that were read end.
    pub(super) seen: u64,
    /// There is more to judge at once.
    pub(super) more: bool,
}

impl Scan {
    pub(super) fn run(self) -> io::Result<Scanned> {
        let Self { folder, patterns, masks, mut state, hold, until, now } = self;
        let piece = gather(&folder, state.scanned, until.unwrap_or(u64::MAX))?;
        let more = piece.full || piece.broken;
        // A line ends where the output does, and where what follows it was not kept.
        let last = piece.broken || (until.is_some() && !piece.full);
        let stretch = Stretch { offset: piece.offset, bytes: &piece.bytes, last };
        state.judge(&patterns, stretch, hold, &masks, now);
        let seen = piece.offset + piece.bytes.len() as u64;
        let stopped = !hold && state.due(now).is_some_and(|due| due <= now);
        Ok(Scanned { state, seen, more: more || stopped })
    }
}

/// A stretch without a gap.
#[derive(Debug, PartialEq, Eq)]
struct Piece {
    offset: u64,
    bytes: Vec<u8>,
    /// There may be more behind it.
    full: bool,
    /// What is behind it was not kept.
    broken: bool,
}

/// The first stretch at or after `from`, across the files that it lies in, but not across what was dropped.
fn gather(folder: impl AsFd, from: u64, until: u64) -> io::Result<Piece> {
    let mut piece = Piece { offset: from, bytes: Vec::new(), full: false, broken: false };
    loop {
        let at = piece.offset + piece.bytes.len() as u64;
        piece.full = piece.bytes.len() >= PIECE;
        if piece.full || at >= until {
            return Ok(piece);
        }
        let mut chunk = output::read(folder.as_fd(), at, PIECE - piece.bytes.len())?;
        if chunk.bytes.is_empty() || chunk.offset >= until {
            return Ok(piece);
        }
        if chunk.offset > at {
            if !piece.bytes.is_empty() {
                piece.broken = true;
                return Ok(piece);
            }
            piece.offset = chunk.offset;
        }
        chunk.bytes.truncate(usize::try_from(until - chunk.offset).unwrap_or(usize::MAX));
        piece.bytes.append(&mut chunk.bytes);
    }
}

#[cfg(test)]
mod tests {
    use homing_shim::folder;

    use super::*;

    fn written(files: &[(&str, &[u8])]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (name, bytes) in files {
            std::fs::write(dir.path().join(name), bytes).unwrap();
        }
        dir
    }

    fn scan(dir: &tempfile::TempDir, until: Option<u64>) -> Vec<String> {
        let patterns: Arc<[Pattern]> = homing_model::watch::patterns(&["x".to_owned()]).unwrap().into();
        let mut state = State::default();
        state.expect(1);
        let (mut lines, mut far) = (Vec::new(), 0);
        loop {
            // Far enough apart that each match is told.
            far += 60_000;
            let now = Timestamp::from_millis(far);
            let scan = Scan {
                folder: folder::open(dir.path()).unwrap(),
                patterns: Arc::clone(&patterns),
                masks: Masks::default(),
                state,
                hold: false,
                until,
                now,
            };
            let scanned = scan.run().unwrap();
            state = scanned.state;
            lines.extend(state.tell(now).map(|(_, telling)| telling.line));
            if !scanned.more {
                return lines;
            }
        }
    }

    #[test]
    fn a_line_across_two_files_is_one_and_one_before_a_gap_ends_there() {
        let dir = written(&[
            ("output.log", b"x1\nx2 begins"),
            ("output.0000000000000012.log", b" and ends\nx3 is cut"),
            ("output.0000000000000100.log", b"off\nx4\nx5 has no end"),
        ]);
        assert_eq!(scan(&dir, None), ["x1", "x2 begins and ends", "x3 is cut", "x4"]);
        assert_eq!(scan(&dir, Some(120)).last().map(String::as_str), Some("x5 has no end"));
        assert_eq!(scan(&dir, Some(106)).last().map(String::as_str), Some("x4"), "no further than the end");
    }

    #[test]
    fn much_output_is_read_in_pieces_and_a_line_without_end_does_not_stop_it() {
        let long = [vec![b'.'; 3 * PIECE], b"\nx\n".to_vec()].concat();
        let dir = written(&[("output.log", &long)]);
        assert_eq!(scan(&dir, None), ["x"]);
        let none = written(&[]);
        assert_eq!(scan(&none, Some(7)), Vec::<String>::new());
    }
}
