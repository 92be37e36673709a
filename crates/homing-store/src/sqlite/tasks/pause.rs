//! A task stands still, and goes on.
//!
//! Each is a compare-and-set like every step of a life: the attempt must be the current one, and the transition table must know the step. What a shim
//! says twice, or says again to the next daemon, changes nothing (P1).

use homing_model::{Attempt, EventKind, Kind, Timestamp, Transition, transition};
use rusqlite::{Connection, params};
use serde_json::json;

use crate::sqlite::notices::events;
use crate::sqlite::tasks::life::expect_one;
use crate::sqlite::tasks::row;
use crate::store::{Applied, Error};

/// The tree stands still.
pub(in crate::sqlite) fn paused(
    conn: &Connection,
    attempt: &Attempt,
    now: Timestamp,
) -> Result<Applied, Error> {
    step(conn, attempt, Transition::Paused, EventKind::TaskPaused, now)
}

/// It goes on.
pub(in crate::sqlite) fn resumed(
    conn: &Connection,
    attempt: &Attempt,
    now: Timestamp,
) -> Result<Applied, Error> {
    step(conn, attempt, Transition::Resumed, EventKind::TaskResumed, now)
}

fn step(
    conn: &Connection,
    attempt: &Attempt,
    step: Transition,
    kind: EventKind,
    now: Timestamp,
) -> Result<Applied, Error> {
    let Some(mut record) = row::by_id(conn, &attempt.task)? else { return Ok(Applied::Unknown) };
    let Ok(status) = transition::next(record.status, step) else { return Ok(Applied::Rejected(record)) };
    // Nothing of an external task is ours to hold.
    if record.attempt != attempt.number || record.kind == Kind::External {
        return Ok(Applied::Rejected(record));
    }
    let before = std::mem::replace(&mut record.status, status);
    let changed = conn
        .prepare_cached("UPDATE tasks SET status = ?4 WHERE seq = ?1 AND attempt = ?2 AND status = ?3")?
        .execute(params![row::signed(record.seq), record.attempt, before.as_str(), status.as_str()])?;
    expect_one(changed, &record)?;
    events::append(conn, kind, now, &record, &json!({ "attempt": record.attempt }))?;
    Ok(Applied::Done(record))
}
