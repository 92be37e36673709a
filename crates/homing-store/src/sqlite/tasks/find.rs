//! What a person means by a few characters.

use homing_model::{DeliveryId, NoticeId, Reference, Status, TaskId};
use rusqlite::{Connection, OptionalExtension, Params, params};

use crate::sqlite::tasks::listing;
use crate::sqlite::threads::cursor::{Cursor, Section};
use crate::store::{Error, Found};

/// How many candidates an ambiguous answer has: one more than are named, so that it is known whether there are more.
const FEW: usize = 6;

/// Among how many of the newest of one name one is looked for of which more is kept than a tombstone: an old name may have any number.
const NAMESAKES: u32 = 1_000;

/// Finds the task. A task with exactly this name comes before an id that merely starts so: a live one, else the newest that ended and is
/// kept, else the newest that is forgotten. With thousands of random ids some stranger begins like any short name, and must not be stopped or forgotten in its place. Who means the
/// start of an id can always write its `t-`.
pub(in crate::sqlite) fn find(conn: &Connection, reference: &Reference, owner: &str) -> Result<Found, Error> {
    among(conn, reference, owner, None)
}

/// The same among the tasks of one owner.
pub(in crate::sqlite) fn find_own(
    conn: &Connection,
    reference: &Reference,
    owner: &str,
) -> Result<Found, Error> {
    among(conn, reference, owner, Some(owner))
}

fn among(conn: &Connection, reference: &Reference, owner: &str, only: Option<&str>) -> Result<Found, Error> {
    match reference {
        Reference::Id(id) => {
            let known = found(
                conn,
                "SELECT id FROM tasks WHERE id = ?1 AND (?2 IS NULL OR owner = ?2)",
                params![id.as_str(), only],
            )?;
            or_expired(known, || found(conn, "SELECT id FROM issued WHERE id = ?1", [id.as_str()]))
        }
        Reference::Last => last_of(conn, owner),
        Reference::PrefixOrName { prefix, name } => {
            let live = found(
                conn,
                "SELECT id FROM tasks INDEXED BY tasks_live_name \
                 WHERE name = ?1 AND ended_at IS NULL AND name IS NOT NULL AND (?2 IS NULL OR owner = ?2) \
                 ORDER BY seq DESC LIMIT 6",
                params![name, only],
            )?;
            if live != Found::None {
                return Ok(live);
            }
            let ended = found(
                conn,
                "SELECT id FROM (SELECT id, seq, forgotten_at FROM tasks INDEXED BY tasks_ended_name \
                 WHERE name = ?1 AND ended_at IS NOT NULL AND name IS NOT NULL AND (?2 IS NULL OR owner = ?2) \
                 ORDER BY seq DESC LIMIT ?3) \
                 ORDER BY forgotten_at IS NOT NULL, seq DESC LIMIT 1",
                params![name, only, NAMESAKES],
            )?;
            match prefix {
                Some(prefix) if ended == Found::None => starting_with(conn, prefix, only),
                Some(_) | None => Ok(ended),
            }
        }
    }
}

/// A range of the index, since `LIKE` would not use it. `~` is above every character of an id.
fn starting_with(conn: &Connection, prefix: &str, only: Option<&str>) -> Result<Found, Error> {
    let above = format!("{prefix}~");
    let known = found(
        conn,
        "SELECT id FROM tasks WHERE id >= ?1 AND id < ?2 AND (?3 IS NULL OR owner = ?3) ORDER BY id LIMIT 6",
        params![prefix, above, only],
    )?;
    or_expired(known, || {
        found(conn, "SELECT id FROM issued WHERE id >= ?1 AND id < ?2 ORDER BY id LIMIT 6", [prefix, &above])
    })
}

/// Notices that begin so: of those that wait for the owner, or else of all.
pub(in crate::sqlite) fn notices(
    conn: &Connection,
    start: &str,
    owner: &str,
) -> Result<Vec<NoticeId>, Error> {
    let above = format!("{start}~");
    let waiting = few(
        conn,
        "SELECT id FROM inbox INDEXED BY inbox_notice WHERE id >= ?1 AND id < ?2 AND owner = ?3 ORDER BY id LIMIT 6",
        params![start, above, owner],
    )?;
    if !waiting.is_empty() {
        return Ok(waiting);
    }
    few(conn, "SELECT id FROM notices WHERE id >= ?1 AND id < ?2 ORDER BY id LIMIT 6", params![start, above])
}

/// Deliveries that begin so.
pub(in crate::sqlite) fn deliveries(conn: &Connection, start: &str) -> Result<Vec<DeliveryId>, Error> {
    let above = format!("{start}~");
    few(
        conn,
        "SELECT id FROM deliveries WHERE id >= ?1 AND id < ?2 ORDER BY id LIMIT 6",
        params![start, above],
    )
}

/// Ids that make sense; a damaged one is not what anybody meant.
fn few<Id: std::str::FromStr>(conn: &Connection, sql: &str, params: impl Params) -> Result<Vec<Id>, Error> {
    let mut query = conn.prepare_cached(sql)?;
    let ids =
        query.query_map(params, |row| row.get::<_, String>(0))?.collect::<rusqlite::Result<Vec<_>>>()?;
    Ok(ids.iter().filter_map(|id| id.parse().ok()).collect())
}

/// Where there is no task and no tombstone: an id of which only that is left.
fn or_expired(known: Found, issued: impl FnOnce() -> Result<Found, Error>) -> Result<Found, Error> {
    match known {
        Found::None => Ok(match issued()? {
            Found::One(id) => Found::Expired(id),
            other => other,
        }),
        known => Ok(known),
    }
}

fn last_of(conn: &Connection, owner: &str) -> Result<Found, Error> {
    let mut query = conn.prepare_cached(
        "SELECT seq FROM tasks INDEXED BY tasks_live WHERE ended_at IS NULL AND owner = ?1 ORDER BY seq DESC LIMIT 1",
    )?;
    let live: Option<i64> = query.query_row(params![owner], |row| row.get(0)).optional()?;
    let now = Cursor { section: Section::Finished, as_of: i64::MAX, below: i64::MAX };
    let finished = listing::finished_seqs(conn, Some(owner), &Status::ALL, now, 1)?;
    match live.into_iter().chain(finished).max() {
        Some(seq) => found(conn, "SELECT id FROM tasks WHERE seq = ?1", [seq]),
        None => Ok(Found::None),
    }
}

fn found(conn: &Connection, sql: &str, params: impl Params) -> Result<Found, Error> {
    let mut query = conn.prepare_cached(sql)?;
    let mut rows = query.query(params)?;
    let mut ids: Vec<TaskId> = Vec::with_capacity(FEW);
    while let Some(row) = rows.next()? {
        let text: String = row.get(0)?;
        ids.push(text.parse().map_err(|error: homing_model::id::Malformed| Error::BadRow {
            task: text.clone(),
            why: error.to_string(),
        })?);
    }
    Ok(match ids.len() {
        0 => Found::None,
        1 => ids.pop().map_or(Found::None, Found::One),
        _ => Found::Several(ids),
    })
}
