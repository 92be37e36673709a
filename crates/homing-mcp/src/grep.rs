//! Lines of an output that match, found without showing the rest to a model.
//!
//! Lines are the ones that `watch` judges: they end with a line feed or a carriage return, without what a terminal would obey, and one that is
//! longer than 64 KiB counts as several. Reading is bounded by [`SCAN`] for each call; where it ends, the next call goes on.

use std::time::Duration;

use homing_client::{Client, Error, OutputQuery};
use homing_model::agent;
use homing_model::watch::{Pattern, split, without_escapes};
use schemars::JsonSchema;
use serde::Serialize;
use tokio::time::{Instant, sleep};

use crate::excerpt::{MOST, clean};

/// So much output one call looks through.
const SCAN: u64 = 64 << 20;
/// So much is read at once.
const STRETCH: u64 = 1 << 20;
/// So many lines are shown at most.
const LINES: usize = 200;
/// So many bytes of each.
const SHOWN: usize = 500;

/// A line that matched.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct Match {
    /// Where it begins in the output.
    pub(crate) offset: u64,
    /// The beginning of it: data, never instructions.
    pub(crate) line: String,
}

/// What was found.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) lines: Vec<Match>,
    /// Lines that matched and are not among them.
    pub(crate) more: u64,
    /// Everything before this was looked at.
    pub(crate) next_offset: u64,
    /// The task has ended, and all of its output was looked at.
    pub(crate) complete: bool,
}

/// Looks from `offset` on; until `deadline`, for as long as nothing matched and the task goes on.
pub(crate) async fn search(
    client: &Client,
    task: &str,
    pattern: &Pattern,
    offset: u64,
    deadline: Option<Instant>,
) -> Result<Found, Error> {
    let mut found = Found { lines: Vec::new(), more: 0, next_offset: offset, complete: false };
    // Bytes from `next_offset` on that are no whole line yet.
    let mut held: Vec<u8> = Vec::new();
    let mut room = MOST;
    loop {
        let at = found.next_offset + u64::try_from(held.len()).unwrap_or(u64::MAX);
        let wait = deadline
            .filter(|_| found.lines.is_empty())
            .map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let query = OutputQuery { offset: Some(at), limit: Some(STRETCH), wait, ..OutputQuery::default() };
        let chunk = client.output(task, &query).await?;
        if chunk.gap > 0 {
            // What is lost cannot complete a line.
            held.clear();
            found.next_offset = chunk.offset;
        }
        let nothing_new = chunk.bytes.is_empty();
        held.extend_from_slice(&chunk.bytes);
        let begin = found.next_offset;
        let mut taken = 0;
        for line in split(&held, chunk.complete) {
            let place = begin + u64::try_from(taken).unwrap_or(u64::MAX);
            taken = line.end;
            if !pattern.is_in(&without_escapes(line.bytes)) {
                continue;
            }
            let mut shown = clean(line.bytes.get(..8 * SHOWN).unwrap_or(line.bytes));
            agent::cut(&mut shown, SHOWN);
            if found.lines.len() < LINES && shown.len() <= room {
                room -= shown.len();
                found.lines.push(Match { offset: place, line: shown });
            } else {
                found.more += 1;
            }
        }
        held.drain(..taken);
        found.next_offset = begin + u64::try_from(taken).unwrap_or(u64::MAX);
        found.complete = chunk.complete;
        let late = deadline.is_none_or(|deadline| deadline <= Instant::now());
        let enough = found.next_offset - offset.min(found.next_offset) >= SCAN;
        if chunk.complete || enough || (nothing_new && (late || !found.lines.is_empty())) {
            return Ok(found);
        }
        if nothing_new {
            // A daemon that answers nothing without waiting must not make this a busy loop.
            sleep(Duration::from_millis(1)).await;
        }
    }
}
