//! An agent's output as it lies on the disk: bounded pieces, each stream apart.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use homing_agents::parse::Listening;
use homing_shim::output::{self, Span, Stream};

/// Read at once at most.
const PIECE: usize = 256 * 1024;
/// Pieces of one turn: others wait for theirs.
const PIECES: usize = 16;

/// Takes in what there is from `from` on, and no further than `until`. Answers how far it came, and whether there may be more.
pub(super) fn read(
    folder: &OwnedFd,
    from: u64,
    until: u64,
    listening: &mut Listening,
) -> io::Result<(u64, bool)> {
    let mut at = from;
    for _ in 0..PIECES {
        if at >= until {
            return Ok((at, false));
        }
        let mut chunk = output::read(folder, at, PIECE)?;
        if chunk.bytes.is_empty() || chunk.offset >= until {
            return Ok((at, false));
        }
        if chunk.offset > at {
            listening.gap(chunk.offset - at);
        }
        chunk.bytes.truncate(usize::try_from(until - chunk.offset).unwrap_or(usize::MAX));
        hand_over(folder, chunk.offset, &chunk.bytes, listening)?;
        at = chunk.offset + chunk.bytes.len() as u64;
    }
    Ok((at, true))
}

/// What no index tells apart is taken for stdout: what is not JSON is passed over there.
fn hand_over(folder: impl AsFd, offset: u64, bytes: &[u8], listening: &mut Listening) -> io::Result<()> {
    let end = offset + bytes.len() as u64;
    let spans = output::spans(folder, offset, end)?;
    let place = |at: u64| usize::try_from(at.saturating_sub(offset)).unwrap_or(usize::MAX);
    let first = spans.first().map_or(end, |span| span.offset);
    listening.stdout(bytes.get(..place(first)).unwrap_or_default());
    let ends = spans.iter().skip(1).map(|span| span.offset).chain([end]);
    for (Span { offset: begin, stream, .. }, until) in spans.iter().zip(ends) {
        let part = bytes.get(place(*begin)..place(until)).unwrap_or_default();
        match stream {
            Stream::Stderr => listening.stderr(part),
            Stream::Stdout | Stream::Mixed | Stream::Pty => listening.stdout(part),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use homing_model::agent::Driver;
    use homing_shim::folder;

    use super::*;

    /// An index entry, as the shim writes them.
    fn entry(offset: u64, stream: u64) -> Vec<u8> {
        [((offset << 2) | stream).to_le_bytes(), 0_u64.to_le_bytes()].concat()
    }

    fn answer(files: &[(&str, &[u8])], until: u64) -> (Option<String>, Option<String>) {
        let dir = tempfile::tempdir().unwrap();
        for (name, bytes) in files {
            std::fs::write(dir.path().join(name), bytes).unwrap();
        }
        let folder = folder::open(dir.path()).unwrap();
        let lines = Driver::Lines { answer: "/a".into(), error: None, session: None };
        let mut listening = Listening::new(&lines);
        let mut at = 0;
        loop {
            let (next, more) = read(&folder, at, until, &mut listening).unwrap();
            at = next;
            if !more {
                let said = listening.finish();
                return (said.answer.map(|answer| answer.text), said.complaint);
            }
        }
    }

    #[test]
    fn stderr_in_the_middle_of_a_line_does_not_break_it() {
        let index = [entry(0, 0), entry(4, 1), entry(9, 0)].concat();
        let files: &[(&str, &[u8])] = &[("output.log", b"{\"a\"oops\n:\"x\"}\n"), ("output.idx", &index)];
        assert_eq!(answer(files, 99), (Some("x".into()), Some("oops".into())));
        let unknown: &[(&str, &[u8])] = &[("output.log", b"{\"a\":\"x\"}\nwarning\n")];
        assert_eq!(answer(unknown, 99), (Some("x".into()), None), "without an index");
    }

    #[test]
    fn the_end_counts_and_a_gap_cuts_a_line_in_two() {
        let files: &[(&str, &[u8])] = &[
            ("output.log", b"{\"a\":\"one\"}\n{\"a\":\"cut"),
            ("output.0000000000000100.log", b" off\"}\n{\"a\":\"two\"}\n{\"a\":\"three\"}\n"),
        ];
        assert_eq!(answer(files, 1000).0.as_deref(), Some("three"));
        assert_eq!(answer(files, 118).0.as_deref(), Some("two"), "what comes later is not of this task");
        assert_eq!(answer(files, 12).0.as_deref(), Some("one"));
    }

    #[test]
    fn much_is_read_in_pieces() {
        let line = [b"{\"b\":\"".to_vec(), vec![b'x'; 3 << 20], b"\"}\n".to_vec()].concat();
        let all = [line.repeat(3), b"{\"a\":\"end\"}".to_vec()].concat();
        assert_eq!(answer(&[("output.log", &all)], u64::MAX).0.as_deref(), Some("end"));
    }
}
