//! Forgetting: finished tasks become tombstones, and those go in their time (P12).
//!
//! A task is unread while an inbox has an entry of it. Age does not end it then, and for count and size it goes after all others.
//!
//! None of it reads a whole row: a task whose row is damaged can still be forgotten.

use std::collections::HashMap;

use homing_model::retention::{Policy, Unread, displaced};
use homing_model::{EventKind, TaskId, Timestamp};
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde_json::json;

use crate::sqlite::notices::deliveries;
use crate::sqlite::notices::events;
use crate::sqlite::notices::publish;
use crate::sqlite::notices::reservations;
use crate::sqlite::notices::wakes;
use crate::sqlite::schema;
use crate::sqlite::tasks::row::{self, unsigned};
use crate::store::{Applied, Error, Retired, Trimmed};

/// Turns one ended task into a tombstone.
pub(in crate::sqlite) fn forget(conn: &Connection, id: &TaskId, now: Timestamp) -> Result<Applied, Error> {
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

/// No task is nested deeper in others; a longer chain is a damaged ledger.
const GENERATIONS: usize = 1_000;

/// Finished hooks that are kept for diagnosis.
const HOOKS: u64 = 1_000;

/// Turns at most `limit` tasks past the policy into tombstones, oldest end first; hooks by their own number.
pub(in crate::sqlite) fn retire(
    conn: &Connection,
    policy: &Policy,
    now: Timestamp,
    limit: u32,
) -> Result<Vec<Retired>, Error> {
    let cutoff = before(now, policy.age).as_millis();
    let mut count = unsigned(schema::meta(conn, "finished")?);
    let mut bytes = unsigned(schema::meta(conn, "finished_bytes")?);
    let mut hooks = unsigned(schema::meta(conn, "finished_hooks")?);
    // Where nothing is too much, what is too young is not even looked at.
    let youngest = if count > policy.count || bytes > policy.bytes { i64::MAX } else { cutoff };
    let tasks = "SELECT seq, id, owner, status, ended_at, max(output_bytes - output_dropped, 0) FROM tasks INDEXED BY tasks_finished_age \
         WHERE ended_at IS NOT NULL AND forgotten_at IS NULL AND kind <> 'hook' AND ended_at <= ?2 \
         AND id NOT IN (SELECT task_id FROM inbox) ORDER BY ended_at, seq LIMIT ?1";
    let mut doomed = oldest(conn, tasks, limit, youngest, |task| {
        let past = task.ended_at <= cutoff || count > policy.count || bytes > policy.bytes;
        count = count.saturating_sub(1);
        bytes = bytes.saturating_sub(unsigned(task.kept));
        past
    })?;
    let left = (limit as usize).saturating_sub(doomed.len());
    if left > 0 && (count > policy.count || bytes > policy.bytes) {
        doomed.extend(unread(
            conn,
            count.saturating_sub(policy.count),
            bytes.saturating_sub(policy.bytes),
            left,
        )?);
    }
    let ended_hooks = "SELECT seq, id, owner, status, ended_at, max(output_bytes - output_dropped, 0) FROM tasks INDEXED BY tasks_hooks \
         WHERE kind = 'hook' AND forgotten_at IS NULL AND ended_at IS NOT NULL AND ended_at <= ?2 ORDER BY ended_at, seq LIMIT ?1";
    let left = limit.saturating_sub(u32::try_from(doomed.len()).unwrap_or(limit));
    doomed.extend(oldest(conn, ended_hooks, left, i64::MAX, |hook| {
        let past = hook.ended_at <= cutoff || hooks > HOOKS;
        hooks = hooks.saturating_sub(1);
        past
    })?);
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

/// The first of these that are past. All are read before the first is changed: a walk along an index that is being changed has no defined order.
fn oldest(
    conn: &Connection,
    query: &str,
    limit: u32,
    youngest: i64,
    mut past: impl FnMut(&Finished) -> bool,
) -> Result<Vec<Finished>, Error> {
    let mut query = conn.prepare_cached(query)?;
    let mut rows = query.query(params![limit, youngest])?;
    let mut doomed = Vec::new();
    while let Some(row) = rows.next()? {
        let task = Finished::read(row)?;
        if !past(&task) {
            break;
        }
        doomed.push(task);
    }
    Ok(doomed)
}

/// The unread tasks that go where so many, and so many bytes, are too many and nothing else is left.
fn unread(conn: &Connection, count: u64, bytes: u64, limit: usize) -> Result<Vec<Finished>, Error> {
    let mut query = conn.prepare_cached(
        "SELECT seq, id, owner, status, ended_at, max(output_bytes - output_dropped, 0) FROM tasks INDEXED BY tasks_finished_age \
         WHERE ended_at IS NOT NULL AND forgotten_at IS NULL AND kind <> 'hook' AND id IN (SELECT task_id FROM inbox) ORDER BY ended_at, seq",
    )?;
    let mut tasks: Vec<_> =
        query.query_map([], Finished::read)?.map(|task| task.map(Some)).collect::<rusqlite::Result<_>>()?;
    let origins = origins(conn, tasks.iter().flatten())?;
    let shares: Vec<_> = tasks
        .iter()
        .flatten()
        .zip(&origins)
        .map(|(task, origin)| Unread {
            owner: &task.owner,
            came_of: origin.as_deref(),
            bytes: unsigned(task.kept),
        })
        .collect();
    let gone = displaced(&shares, count, bytes, limit);
    Ok(gone.into_iter().filter_map(|place| tasks.get_mut(place)?.take()).collect())
}

/// The task that each came of in the end, as far as that is still known; none for those that were submitted outside of tasks.
fn origins<'a>(
    conn: &Connection,
    tasks: impl Iterator<Item = &'a Finished>,
) -> Result<Vec<Option<String>>, Error> {
    let mut query = conn.prepare_cached("SELECT parent FROM tasks WHERE id = ?1")?;
    let mut parent = |id: &str| -> Result<Option<String>, Error> {
        Ok(query.query_row([id], |row| row.get(0)).optional()?.flatten())
    };
    // Most that came of a task came of the same one.
    let mut known: HashMap<String, String> = HashMap::new();
    let mut origins = Vec::new();
    for task in tasks {
        let Some(first) = parent(&task.id)? else {
            origins.push(None);
            continue;
        };
        let mut origin = first.clone();
        for _ in 0..GENERATIONS {
            if let Some(found) = known.get(&origin) {
                origin.clone_from(found);
                break;
            }
            match parent(&origin)? {
                Some(above) => origin = above,
                None => break,
            }
        }
        known.insert(first, origin.clone());
        origins.push(Some(origin));
    }
    Ok(origins)
}

/// Drops what is past even its time as a tombstone, keys that expired, and events as old as forgotten tasks.
pub(in crate::sqlite) fn trim(
    conn: &Connection,
    policy: &Policy,
    now: Timestamp,
    limit: u32,
) -> Result<Trimmed, Error> {
    reservations::trim(conn, now)?;
    let keys = conn
        .prepare_cached(
            "DELETE FROM idempotency WHERE (owner, key) IN \
             (SELECT owner, key FROM idempotency INDEXED BY idempotency_expiry WHERE expires_at <= ?1 ORDER BY expires_at LIMIT ?2)",
        )?
        .execute(params![now.as_millis(), limit])?;
    let events = events::trim(conn, before(now, policy.age), limit, now)?;
    let deliveries = deliveries::trim(conn, before(now, policy.age), limit)?;
    wakes::trim(conn, now)?;
    let notices = publish::trim(conn, schema::meta(conn, "events_trimmed_to")?, limit)?;
    let tombstones = drop_tombstones(conn, before(now, policy.tombstones), limit)?;
    let full = |gone: usize| gone >= limit as usize;
    Ok(Trimmed {
        tombstones: tombstones as u64,
        more: [keys, events, deliveries, notices, tombstones].into_iter().any(full),
    })
}

fn drop_tombstones(conn: &Connection, cutoff: Timestamp, limit: u32) -> Result<usize, Error> {
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
    Ok(seqs.len())
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
             key = NULL, labels = NULL, env_names = '[]', volatile_secrets = '[]', masks = NULL, pid = NULL, progress = NULL, answer = NULL, \
             answer_state = NULL, watch = NULL \
             WHERE seq = ?1",
        )?
        .execute(params![self.seq, now.as_millis()])?;
        let data = json!({ "status": self.status });
        if self.owner.is_empty() {
            // A hook: nobody's task, and nobody's news.
            return schema::count_hooks(conn, -1);
        }
        events::insert(conn, EventKind::TaskForgotten, now, Some((&self.id, &self.owner)), &data)?;
        schema::count_finished(conn, -1, -self.kept)
    }
}
