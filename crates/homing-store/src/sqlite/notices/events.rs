//! The log of events: appended in the transaction of what they tell, read after a cursor.

use homing_model::{Event, EventKind, Kind, Timestamp};
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde_json::Value;

use crate::record::Record;
use crate::sqlite::schema;
use crate::sqlite::tasks::row::{self, signed, unsigned};
use crate::store::{Error, EventFilter, Events};

/// Appends an event of a task; answers with its place.
pub(in crate::sqlite) fn append(
    conn: &Connection,
    kind: EventKind,
    at: Timestamp,
    task: &Record,
    data: &Value,
) -> Result<i64, Error> {
    if task.kind == Kind::Hook {
        // Nobody's task, and nobody's news; its place is that of the newest event.
        return last(conn);
    }
    insert(conn, kind, at, Some((task.id.as_str(), &task.owner)), data)
}

/// Appends an event; `about` is the task's id and its owner.
pub(in crate::sqlite) fn insert(
    conn: &Connection,
    kind: EventKind,
    at: Timestamp,
    about: Option<(&str, &str)>,
    data: &Value,
) -> Result<i64, Error> {
    let mut insert = conn
        .prepare_cached("INSERT INTO events (type, at, task_id, owner, data) VALUES (?1, ?2, ?3, ?4, ?5)")?;
    let (task, owner) = about.unzip();
    Ok(insert.insert(params![kind.as_str(), at.as_millis(), task, owner, data.to_string()])?)
}

/// More than a machine can tell of before it syncs.
const LEAP: i64 = 1_000_000;

/// Numbers events on from far beyond the last, if the machine was started anew since.
pub(in crate::sqlite) fn booted(conn: &Connection, boot_id: &str) -> Result<(), Error> {
    let last: Option<String> =
        conn.prepare_cached("SELECT id FROM boot")?.query_row([], |row| row.get(0)).optional()?;
    if last.as_deref() == Some(boot_id) {
        return Ok(());
    }
    conn.execute("DELETE FROM boot", [])?;
    conn.execute("INSERT INTO boot (id) VALUES (?1)", [boot_id])?;
    // A log that nothing was ever written to begins at one.
    conn.execute("UPDATE sqlite_sequence SET seq = seq + ?1 WHERE name = 'events'", [LEAP])?;
    Ok(())
}

/// The newest event's place, trimmed or not.
pub(in crate::sqlite) fn last(conn: &Connection) -> Result<i64, Error> {
    let newest: i64 =
        conn.prepare_cached("SELECT coalesce(max(seq), 0) FROM events")?.query_row([], |row| row.get(0))?;
    Ok(newest.max(schema::meta(conn, "events_trimmed_to")?))
}

/// What a page holds of events, in bytes; it ends early then, and the cursor goes on after its last.
pub(in crate::sqlite) const PAGE_BYTES: usize = 1 << 20;

/// Events after a cursor.
pub(in crate::sqlite) fn after(
    conn: &Connection,
    after: u64,
    filter: &EventFilter,
    limit: u32,
) -> Result<Events, Error> {
    let kinds = (!filter.kinds.is_empty())
        .then(|| Value::from_iter(filter.kinds.iter().map(|kind| kind.as_str())).to_string());
    let mut query = conn.prepare_cached(
        "SELECT events.seq, type, at, task_id, owner, coalesce(body, data) FROM events \
         LEFT JOIN notices ON notices.seq = events.seq WHERE events.seq > ?1 AND (?2 IS NULL OR owner = ?2) \
         AND (?3 IS NULL OR type IN (SELECT value FROM json_each(?3))) ORDER BY events.seq LIMIT ?4",
    )?;
    let mut rows = query.query(params![signed(after), filter.owner, kinds, limit])?;
    let mut events = Vec::new();
    let (mut cursor, mut taken, mut bytes) = (after, 0, 0);
    while bytes < PAGE_BYTES
        && let Some(row) = rows.next()?
    {
        bytes += row::bytes(row)?;
        cursor = unsigned(row.get(0)?);
        taken += 1;
        match decode(row) {
            Ok(event) => events.push(event),
            // One bad line does not hide the rest of the log.
            Err(why) => tracing::error!(event = cursor, %why, "an event could not be read"),
        }
    }
    let newest = unsigned(last(conn)?);
    if taken < limit && bytes < PAGE_BYTES {
        // All that there is was looked at, in the same snapshot.
        cursor = cursor.max(newest);
    }
    Ok(Events { events, cursor, trimmed_to: unsigned(schema::meta(conn, "events_trimmed_to")?), newest })
}

fn decode(row: &Row<'_>) -> Result<Event, String> {
    fn text(error: impl std::fmt::Display) -> String {
        error.to_string()
    }
    Ok(Event {
        seq: unsigned(row.get(0).map_err(text)?),
        kind: row.get::<_, String>(1).map_err(text)?.parse().map_err(text)?,
        at: Timestamp::from_millis(row.get(2).map_err(text)?),
        task_id: row
            .get::<_, Option<String>>(3)
            .map_err(text)?
            .map(|id| id.parse().map_err(text))
            .transpose()?,
        owner: row.get(4).map_err(text)?,
        data: serde_json::from_str(&row.get::<_, String>(5).map_err(text)?).map_err(text)?,
    })
}

/// Drops the oldest events from before `cutoff`, at most `limit`; answers how many. Only ever a beginning of the log goes, so that one
/// number tells what is missing. What was written by a clock that was ahead says nothing of its age: it goes with what follows it.
pub(in crate::sqlite) fn trim(
    conn: &Connection,
    cutoff: Timestamp,
    limit: u32,
    now: Timestamp,
) -> Result<usize, Error> {
    let mut oldest =
        conn.prepare_cached("SELECT seq, at FROM events WHERE at <= ?2 ORDER BY seq LIMIT ?1")?;
    let mut rows = oldest.query(params![limit, now.as_millis()])?;
    let mut trimmed_to = None;
    while let Some(row) = rows.next()? {
        if row.get::<_, i64>(1)? >= cutoff.as_millis() {
            break;
        }
        trimmed_to = Some(row.get::<_, i64>(0)?);
    }
    drop(rows);
    let Some(seq) = trimmed_to else { return Ok(0) };
    let gone = conn.prepare_cached("DELETE FROM events WHERE seq <= ?1")?.execute([seq])?;
    conn.prepare_cached("UPDATE meta SET value = ?1 WHERE name = 'events_trimmed_to'")?.execute([seq])?;
    Ok(gone)
}
