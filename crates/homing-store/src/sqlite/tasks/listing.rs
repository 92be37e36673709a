//! Tasks by id, all live ones, pages of a list, and how many there are.

use homing_model::counts::TaskCounts;
use homing_model::{Kind, Status, TaskId};
use rusqlite::{Connection, Statement, params};

use crate::record::Record;
use crate::sqlite::notices::events;
use crate::sqlite::schema;
use crate::sqlite::tasks::row::{self, select_task, unsigned};
use crate::sqlite::threads::cursor::{Cursor, Section};
use crate::store::{Error, Filter, Listed};

/// The largest page.
const LIMIT: u32 = 1000;

/// A page ends early, with a cursor, once what it read of the tasks has so many bytes.
const PAGE_BYTES: usize = 4 << 20;

/// A page looks at so many tasks at most: one with a rare label ends early, with a cursor, instead of holding up other readers.
const LOOKED_AT: usize = 5_000;

/// Every task that has not ended, oldest first, and beside them the rows that cannot be read.
pub(in crate::sqlite) fn live(conn: &Connection) -> Result<(Vec<Record>, Vec<Error>), Error> {
    let mut query =
        conn.prepare_cached(select_task!("INDEXED BY tasks_live WHERE ended_at IS NULL ORDER BY seq"))?;
    let mut rows = query.query([])?;
    let (mut records, mut errors) = (Vec::new(), Vec::new());
    while let Some(row) = rows.next()? {
        match row::decode(row) {
            Ok(record) => records.push(record),
            Err(error) => errors.push(error),
        }
    }
    Ok((records, errors))
}

/// How many there are.
pub(in crate::sqlite) fn counts(conn: &Connection) -> Result<TaskCounts, Error> {
    let mut query = conn.prepare_cached(
        "SELECT count(*) FILTER (WHERE status = 'queued'), count(*) FROM tasks INDEXED BY tasks_live WHERE ended_at IS NULL",
    )?;
    let (queued, live): (i64, i64) = query.query_row([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let mut query = conn.prepare_cached(
        "SELECT count(*) FROM tasks INDEXED BY tasks_hooks \
         WHERE kind = 'hook' AND forgotten_at IS NULL AND ended_at IS NULL",
    )?;
    let live_hooks: i64 = query.query_row([], |row| row.get(0))?;
    Ok(TaskCounts {
        queued: unsigned(queued),
        running: unsigned(live - queued - live_hooks),
        finished: unsigned(schema::meta(conn, "finished")?),
    })
}

/// A page of tasks.
pub(in crate::sqlite) fn list(conn: &Connection, filter: &Filter) -> Result<Listed, Error> {
    let last_event = events::last(conn)?;
    let mut at = match filter.cursor.as_deref().map(str::parse) {
        None => Cursor { section: Section::Live, as_of: last_event, below: i64::MAX },
        Some(Ok(cursor)) => cursor,
        Some(Err(_)) => {
            return Ok(Listed {
                records: Vec::new(),
                next_cursor: None,
                cursor_valid: false,
                as_of: unsigned(last_event),
            });
        }
    };
    let limit = filter.limit.clamp(1, LIMIT) as usize;
    // Without labels every candidate is a hit, and one more than the page tells whether another follows.
    let stride = if filter.labels.is_empty() { limit + 1 } else { limit.max(256) };
    let mut records = Vec::with_capacity(limit);
    let (mut looked_at, mut read) = (0, 0);
    let mut by_seq = conn.prepare_cached(select_task!("WHERE seq = ?1"))?;
    let next_cursor = 'page: loop {
        let seqs = match (&filter.within, at.section) {
            (Some(task), _) => seqs_within(conn, task, filter, at, stride)?,
            (None, Section::Live) => live_seqs(conn, filter, at, last_event, stride)?,
            (None, Section::Finished) => {
                finished_seqs(conn, filter.owner.as_deref(), &finished_statuses(filter), at, stride)?
            }
        };
        let exhausted = seqs.len() < stride;
        for seq in seqs {
            if records.len() == limit || looked_at == LOOKED_AT || read >= PAGE_BYTES {
                break 'page Some(at.to_string());
            }
            looked_at += 1;
            if let Some((record, bytes)) = hit(&mut by_seq, filter, seq)? {
                read += bytes;
                records.push(record);
            }
            at.below = seq;
        }
        match (exhausted, at.section) {
            (false, _) => {}
            (true, Section::Live) => {
                at = Cursor { section: Section::Finished, below: i64::MAX, ..at };
            }
            (true, Section::Finished) => break None,
        }
    };
    Ok(Listed { records, next_cursor, cursor_valid: true, as_of: unsigned(last_event) })
}

/// The record, if it has the labels, and how much was read. A row that cannot be read is left out: it must not hide the others.
fn hit(by_seq: &mut Statement<'_>, filter: &Filter, seq: i64) -> Result<Option<(Record, usize)>, Error> {
    let found = by_seq
        .query_row([seq], |row| Ok(row::decode(row).and_then(|record| Ok((record, row::bytes(row)?)))))?;
    let (record, bytes) = match found {
        Ok(found) => found,
        Err(error) => {
            tracing::error!(%error, "a task is left out of a list");
            return Ok(None);
        }
    };
    if record.kind == Kind::Hook {
        return Ok(None);
    }
    let fits = filter.labels.iter().all(|(name, value)| record.spec.labels.get(name) == Some(value));
    Ok(fits.then_some((record, bytes)))
}

fn wanted(filter: &Filter, owner: &str, status: &str) -> bool {
    filter.owner.as_ref().is_none_or(|wanted| wanted == owner)
        && (filter.statuses.is_empty() || filter.statuses.iter().any(|wanted| wanted.as_str() == status))
}

fn finished_statuses(filter: &Filter) -> Vec<Status> {
    let all = if filter.statuses.is_empty() { &Status::ALL[..] } else { &filter.statuses };
    let mut statuses: Vec<Status> = Vec::new();
    for &status in all {
        if status.is_terminal() && !statuses.contains(&status) {
            statuses.push(status);
        }
    }
    statuses
}

/// Places, newest first, of at most `n` tasks that were live as of the cursor.
fn live_seqs(
    conn: &Connection,
    filter: &Filter,
    at: Cursor,
    last_event: i64,
    n: usize,
) -> Result<Vec<i64>, Error> {
    if !filter.statuses.is_empty() && filter.statuses.iter().all(|status| status.is_terminal()) {
        return Ok(Vec::new());
    }
    let mut query = conn.prepare_cached(
        "SELECT seq, owner, status FROM tasks INDEXED BY tasks_live WHERE ended_at IS NULL AND seq < ?1 ORDER BY seq DESC",
    )?;
    let mut rows = query.query([at.below])?;
    let mut seqs = Vec::new();
    while seqs.len() < n
        && let Some(row) = rows.next()?
    {
        if wanted(filter, row.get_ref(1)?.as_str().unwrap_or(""), row.get_ref(2)?.as_str().unwrap_or("")) {
            seqs.push(row.get(0)?);
        }
    }
    if at.as_of < last_event {
        seqs.extend(ended_since(conn, filter, at)?);
        seqs.sort_unstable_by(|a, b| b.cmp(a));
        seqs.truncate(n);
    }
    Ok(seqs)
}

/// Places, newest first, of at most `n` tasks below one that had, or had not, ended as of the cursor. A family is small: it is looked at whole.
fn seqs_within(
    conn: &Connection,
    task: &TaskId,
    filter: &Filter,
    at: Cursor,
    n: usize,
) -> Result<Vec<i64>, Error> {
    let mut query = conn.prepare_cached(
        "WITH RECURSIVE below (id) AS (\
           SELECT id FROM tasks INDEXED BY tasks_children WHERE parent = ?1 \
           UNION \
           SELECT tasks.id FROM below CROSS JOIN tasks INDEXED BY tasks_children ON tasks.parent = below.id) \
         SELECT seq, owner, status FROM below CROSS JOIN tasks ON tasks.id = below.id \
         WHERE seq < ?2 AND forgotten_at IS NULL AND (ended_at IS NOT NULL AND ended_seq <= ?3) = ?4 ORDER BY seq DESC",
    )?;
    let ended = at.section == Section::Finished;
    let mut rows = query.query(params![task.as_str(), at.below, at.as_of, ended])?;
    let mut seqs = Vec::new();
    while seqs.len() < n
        && let Some(row) = rows.next()?
    {
        if wanted(filter, row.get_ref(1)?.as_str().unwrap_or(""), row.get_ref(2)?.as_str().unwrap_or("")) {
            seqs.push(row.get(0)?);
        }
    }
    Ok(seqs)
}

/// Tasks that ended while the list was being walked; the log knows them, so no index has to.
fn ended_since(conn: &Connection, filter: &Filter, at: Cursor) -> Result<Vec<i64>, Error> {
    let mut query = conn.prepare_cached(
        "SELECT tasks.seq, tasks.owner, tasks.status FROM events CROSS JOIN tasks ON tasks.id = events.task_id \
         WHERE events.seq > ?1 AND events.type = 'task.completed' AND tasks.seq < ?2 AND tasks.forgotten_at IS NULL",
    )?;
    let mut rows = query.query(params![at.as_of, at.below])?;
    let mut seqs = Vec::new();
    while let Some(row) = rows.next()? {
        if wanted(filter, row.get_ref(1)?.as_str().unwrap_or(""), row.get_ref(2)?.as_str().unwrap_or("")) {
            seqs.push(row.get(0)?);
        }
    }
    Ok(seqs)
}

/// Places, newest first, of at most `n` finished tasks that had ended as of the cursor. One short walk per status, each within an
/// index, then merged: no number of tasks of other states or owners makes it longer.
pub(in crate::sqlite) fn finished_seqs(
    conn: &Connection,
    owner: Option<&str>,
    statuses: &[Status],
    at: Cursor,
    n: usize,
) -> Result<Vec<i64>, Error> {
    let mut query = conn.prepare_cached(match owner {
        None => {
            "SELECT seq FROM tasks INDEXED BY tasks_finished \
             WHERE ?1 IS NULL AND status = ?2 AND seq < ?3 AND ended_seq <= ?4 AND ended_at IS NOT NULL AND forgotten_at IS NULL \
             ORDER BY seq DESC LIMIT ?5"
        }
        Some(_) => {
            "SELECT seq FROM tasks INDEXED BY tasks_finished_owner \
             WHERE owner = ?1 AND status = ?2 AND seq < ?3 AND ended_seq <= ?4 AND ended_at IS NOT NULL AND forgotten_at IS NULL \
             ORDER BY seq DESC LIMIT ?5"
        }
    })?;
    let mut seqs: Vec<i64> = Vec::new();
    for status in statuses {
        let n = i64::try_from(n).unwrap_or(i64::MAX);
        let mut rows = query.query(params![owner, status.as_str(), at.below, at.as_of, n])?;
        while let Some(row) = rows.next()? {
            seqs.push(row.get(0)?);
        }
    }
    seqs.sort_unstable_by(|a, b| b.cmp(a));
    seqs.truncate(n);
    Ok(seqs)
}
