//! Forgetting: finished tasks become tombstones, and those go in their time (P12).
//!
//! None of it reads a whole row: a task whose row is damaged can still be forgotten.

use homing_model::retention::Policy;
use homing_model::{EventKind, TaskId, Timestamp};
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde_json::json;

use super::row::{self, unsigned};
use super::{deliveries, events, notices, schema, wakes};
use crate::store::{Applied, Error, Retired};

/// Turns one ended task into a tombstone.
pub(super) fn forget(conn: &Connection, id: &TaskId, now: Timestamp) -> Result<Applied, Error> {
    let mut query = conn.prepare_cached(
        "SELECT seq, id, owner, status, ended_at, max(output_bytes - output_dropped, 0) FROM tasks \
         WHERE id = ?1 AND ended_at IS NOT NULL AND forgotten_at IS NULL",
    )?;
    let finished = query.query_row([id.as_str()], Finished::read).optional()?;
    if let Some(task) = &finished {
        task.bury(conn, now)?;
    }
    let Some(record) = row::by_id(conn, id)? else { return Ok(Applied::Unknown) };
    Ok(if finished.is_some() { Applied::Done(record) } else { Applied::Rejected(record) })
}

/// Turns at most `limit` tasks past the policy into tombstones, oldest end first.
pub(super) fn retire(
    conn: &Connection,
    policy: &Policy,
    now: Timestamp,
    limit: u32,
) -> Result<Vec<Retired>, Error> {
    let cutoff = before(now, policy.age);
    let mut count = unsigned(schema::meta(conn, "finished")?);
    let mut bytes = unsigned(schema::meta(conn, "finished_bytes")?);
    let mut query = conn.prepare_cached(
        "SELECT seq, id, owner, status, ended_at, max(output_bytes - output_dropped, 0) FROM tasks INDEXED BY tasks_finished_age \
         WHERE ended_at IS NOT NULL AND forgotten_at IS NULL ORDER BY ended_at, seq LIMIT ?1",
    )?;
    // All are read before the first is changed: a walk along an index that is being changed has no defined order.
    let mut doomed = Vec::new();
    let mut rows = query.query([limit])?;
    while let Some(row) = rows.next()? {
        let task = Finished::read(row)?;
        if task.ended_at > cutoff.as_millis() && count <= policy.count && bytes <= policy.bytes {
            break;
        }
        count = count.saturating_sub(1);
        bytes = bytes.saturating_sub(unsigned(task.kept));
        doomed.push(task);
    }
    drop(rows);
    let mut retired = Vec::with_capacity(doomed.len());
    for task in doomed {
        task.bury(conn, now)?;
        let why = |error: homing_model::id::Malformed| Error::BadRow {
            task: task.id.clone(),
            why: error.to_string(),
        };
        retired.push(Retired { id: task.id.parse().map_err(why)?, output_bytes: unsigned(task.kept) });
    }
    Ok(retired)
}

/// Drops what is past even its time as a tombstone, keys that expired, and events as old as forgotten tasks.
pub(super) fn trim(conn: &Connection, policy: &Policy, now: Timestamp, limit: u32) -> Result<u64, Error> {
    conn.prepare_cached(
        "DELETE FROM idempotency WHERE (owner, key) IN \
         (SELECT owner, key FROM idempotency INDEXED BY idempotency_expiry WHERE expires_at <= ?1 ORDER BY expires_at LIMIT ?2)",
    )?
    .execute(params![now.as_millis(), limit])?;
    events::trim(conn, before(now, policy.age), limit)?;
    deliveries::trim(conn, before(now, policy.age), limit)?;
    wakes::trim(conn, now)?;
    notices::trim(conn, schema::meta(conn, "events_trimmed_to")?, limit)?;
    drop_tombstones(conn, before(now, policy.tombstones), limit)
}

fn drop_tombstones(conn: &Connection, cutoff: Timestamp, limit: u32) -> Result<u64, Error> {
    let mut query = conn.prepare_cached(
        "SELECT seq FROM tasks INDEXED BY tasks_tombstones \
         WHERE forgotten_at IS NOT NULL AND forgotten_at <= ?1 ORDER BY forgotten_at LIMIT ?2",
    )?;
    let seqs = query
        .query_map(params![cutoff.as_millis(), limit], |row| row.get(0))?
        .collect::<rusqlite::Result<Vec<i64>>>()?;
    let mut keep_id = conn.prepare_cached("INSERT INTO issued (id) SELECT id FROM tasks WHERE seq = ?1")?;
    let mut delete = conn.prepare_cached("DELETE FROM tasks WHERE seq = ?1")?;
    for seq in &seqs {
        keep_id.execute([seq])?;
        delete.execute([seq])?;
    }
    Ok(seqs.len() as u64)
}

fn before(now: Timestamp, age: std::time::Duration) -> Timestamp {
    now.plus_millis(i64::try_from(age.as_millis()).unwrap_or(i64::MAX).saturating_neg())
}

/// What retention has to know of a finished task.
struct Finished {
    seq: i64,
    id: String,
    owner: String,
    status: String,
    ended_at: i64,
    kept: i64,
}

impl Finished {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            seq: row.get(0)?,
            id: row.get(1)?,
            owner: row.get(2)?,
            status: row.get(3)?,
            ended_at: row.get(4)?,
            kept: row.get(5)?,
        })
    }

    /// Leaves what a tombstone answers with: who, what in one line, when and how it ended.
    fn bury(&self, conn: &Connection, now: Timestamp) -> Result<(), Error> {
        conn.prepare_cached(
            "UPDATE tasks SET forgotten_at = ?2, spec = CASE WHEN name IS NULL THEN '{}' ELSE json_object('name', name) END, \
             key = NULL, labels = NULL, env_names = '[]', volatile_secrets = '[]', masks = NULL, parent = NULL, pid = NULL, progress = NULL, answer = NULL, \
             answer_state = NULL, watch = NULL \
             WHERE seq = ?1",
        )?
        .execute(params![self.seq, now.as_millis()])?;
        let data = json!({ "status": self.status });
        if self.owner.is_empty() {
            // A hook: nobody's task, and nobody's news.
            return schema::count_finished(conn, -1, -self.kept);
        }
        events::insert(conn, EventKind::TaskForgotten, now, Some((&self.id, &self.owner)), &data)?;
        schema::count_finished(conn, -1, -self.kept)
    }
}
