//! What a notice says of a task's output: the end of it, read when the task ends.

use std::io;

use homing_model::Ending;
use homing_model::notice::{self, TAIL};
use homing_shim::output;
use homing_store::Record;
use homing_store::outbox::Report;

use crate::engine::Inner;
use crate::entropy;

/// Read at first: as many characters as are told, were each of them four bytes long.
const FIRST: u64 = 4 * TAIL as u64;
/// Read before a window: no sequence that matters is longer.
const BEFORE: u64 = 4_096;
/// Read at most, where most of it is nothing that is told.
const MOST: u64 = 64 * FIRST;

/// The report of an end. Output that cannot be read is no reason not to tell of the end.
pub(crate) fn report(inner: &Inner, record: &Record, ending: &Ending) -> Report {
    let path = inner.home.output(&record.attempt());
    let mut report =
        Report { entropy: entropy::draw(), at_most: Some(inner.config().notify.on), ..Report::default() };
    if ending.output_bytes > 0 {
        report.output_path = Some(path.to_string_lossy().into_owned());
        match tail(inner, record) {
            Ok((text, truncated)) => (report.output_tail, report.output_truncated) = (text, truncated),
            Err(error) => {
                tracing::warn!(task = %record.id, %error, "the end of an output could not be read");
                report.output_truncated = true;
            }
        }
    }
    report
}

fn tail(inner: &Inner, record: &Record) -> io::Result<(String, bool)> {
    let folder = inner.home.open_attempt(&record.attempt())?;
    let end = output::extent(&folder)?.end;
    let mut window = FIRST;
    loop {
        let begin = end.saturating_sub(window);
        let before = before(&folder, begin)?;
        let bytes = masked(&folder, record, begin, end)?;
        let (text, truncated) = notice::tail(before.as_deref(), &bytes, &record.masks);
        if begin == 0 || text.chars().count() >= TAIL || window >= MOST {
            return Ok((text, truncated));
        }
        window *= 4;
    }
}

/// What came right before a window, on the same line: a window may begin in a character or in a sequence. None at the beginning.
pub(crate) fn before(folder: &std::os::fd::OwnedFd, begin: u64) -> io::Result<Option<Vec<u8>>> {
    if begin == 0 {
        return Ok(None);
    }
    let mut bytes = stretch(folder, begin.saturating_sub(BEFORE), begin)?;
    let line = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    Ok(Some(bytes.split_off(line)))
}

/// The bytes from `begin` to `end` with markers for secrets, also for one that began before.
pub(crate) fn masked(
    folder: &std::os::fd::OwnedFd,
    record: &Record,
    begin: u64,
    end: u64,
) -> io::Result<Vec<u8>> {
    if record.masks.is_empty() {
        return stretch(folder, begin, end);
    }
    let mut bytes = stretch(folder, begin.saturating_sub(record.masks.longest() as u64), begin)?;
    let before = bytes.len();
    bytes.extend(stretch(folder, begin, end)?);
    Ok(record.masks.bytes_from(&bytes, before))
}

/// The bytes from `begin` to `end`, with one marker for what is missing among them.
pub(crate) fn stretch(folder: &std::os::fd::OwnedFd, begin: u64, end: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut at = begin;
    while at < end {
        let chunk = output::read(folder, at, usize::try_from(end - at).unwrap_or(usize::MAX))?;
        if chunk.bytes.is_empty() || chunk.offset >= end {
            break;
        }
        if chunk.offset > at {
            bytes.extend_from_slice(format!("\n[{} bytes were not kept]\n", chunk.offset - at).as_bytes());
        }
        at = chunk.offset + chunk.bytes.len() as u64;
        bytes.extend_from_slice(&chunk.bytes);
    }
    Ok(bytes)
}
