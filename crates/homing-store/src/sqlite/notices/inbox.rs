//! The owner's inbox: looked at, taken under a lease, acknowledged.

use homing_model::reservation::{Access, Reader, State};
use homing_model::{Notice, NoticeId, TaskId, Timestamp};
use rusqlite::{Connection, OptionalExtension, params};

use crate::outbox::{Available, Waiting};
use crate::reservation::Take;
use crate::sqlite::notices::reservations::{self, OfNotice};
use crate::sqlite::tasks::row;
use crate::store::Error;

/// Owners with something in it, by name.
pub(in crate::sqlite) fn waiting(conn: &Connection, after: &str, limit: u32) -> Result<Vec<Waiting>, Error> {
    let mut query = conn.prepare_cached(
        "SELECT owner, count(*) FROM inbox WHERE owner > ?1 GROUP BY owner ORDER BY owner LIMIT ?2",
    )?;
    let rows = query.query_map(params![after, limit], |row| {
        Ok(Waiting { owner: row.get(0)?, open: row::unsigned(row.get(1)?) })
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// What is free, whether there is more of it, and when the next of the others is free.
pub(in crate::sqlite) fn peek(
    conn: &Connection,
    owner: &str,
    limit: u32,
    access: Access,
    now: Timestamp,
) -> Result<Available, Error> {
    let (entries, more, free_at) = free(conn, owner, limit, access, now)?;
    Ok(Available { notices: entries.into_iter().map(|(_, notice)| notice).collect(), more, free_at })
}

/// Gives out entries: the oldest that are free, held for the taker; or those that were delivered.
pub(in crate::sqlite) fn take(
    conn: &Connection,
    owner: &str,
    take: &Take,
    now: Timestamp,
) -> Result<Vec<Notice>, Error> {
    let given = match take {
        Take::Oldest { limit, .. } => free(conn, owner, *limit, Access::Take, now)?.0,
        Take::Delivered { ids, .. } => named(conn, owner, ids)?,
    };
    for (seq, notice) in &given {
        let key = (notice.task.id.as_str(), *seq);
        match take {
            Take::Oldest { until, .. } => {
                reservations::set(conn, key, owner, &State::Held(Reader::Taker), *until)?;
            }
            Take::Delivered { handed, .. } => reservations::deliver(conn, key, owner, handed, now)?,
        }
    }
    Ok(given.into_iter().map(|(_, notice)| notice).collect())
}

/// What is given of an inbox at once, in bytes; the rest is given when that was acknowledged.
const PAGE_BYTES: usize = 4 << 20;

/// Entries that are free, whether there are more than fit, and when the first of the others is free.
type Free = (Vec<(i64, Notice)>, bool, Option<Timestamp>);

fn free(conn: &Connection, owner: &str, limit: u32, access: Access, now: Timestamp) -> Result<Free, Error> {
    let mut query = conn.prepare_cached(
        "SELECT inbox.seq, task_id, body FROM inbox JOIN notices ON notices.seq = inbox.seq WHERE owner = ?1 ORDER BY inbox.seq",
    )?;
    let mut rows = query.query([owner])?;
    let (mut entries, limit) = (Vec::new(), usize::try_from(limit).unwrap_or(usize::MAX));
    let (mut bytes, mut free_at) = (0, None::<Timestamp>);
    // Only what can be given counts: what is damaged must not stand before the rest for ever.
    while let Some(row) = rows.next()? {
        let (seq, task): (i64, String) = (row.get(0)?, row.get(1)?);
        if let Some(until) = OfNotice::read(conn, &task, seq)?.held_until(owner, access, now) {
            free_at = Some(free_at.map_or(until, |first| first.min(until)));
            continue;
        }
        if entries.len() >= limit || bytes >= PAGE_BYTES {
            return Ok((entries, true, free_at));
        }
        bytes += row::bytes(row)?;
        // One bad row does not hide the others.
        entries.extend(parse(seq, row.get(2)).map(|notice| (seq, notice)));
    }
    Ok((entries, false, free_at))
}

/// Those of these that are the owner's.
fn named(conn: &Connection, owner: &str, ids: &[NoticeId]) -> Result<Vec<(i64, Notice)>, Error> {
    let mut query = conn.prepare_cached(
        "SELECT inbox.seq, body FROM inbox JOIN notices ON notices.seq = inbox.seq WHERE owner = ?1 AND inbox.id = ?2",
    )?;
    let mut found = Vec::with_capacity(ids.len());
    for id in ids {
        let row =
            query.query_row(params![owner, id.as_str()], |row| Ok((row.get(0)?, row.get(1)))).optional()?;
        found.extend(row.and_then(|(seq, body)| Some((seq, parse(seq, body)?))));
    }
    Ok(found)
}

fn parse(seq: i64, body: rusqlite::Result<String>) -> Option<Notice> {
    let body = body.map_err(|error| error.to_string());
    match body.and_then(|body| serde_json::from_str(&body).map_err(|error| error.to_string())) {
        Ok(notice) => Some(notice),
        Err(error) => {
            tracing::error!(notice = seq, %error, "a notice could not be read");
            None
        }
    }
}

/// Removes entries; answers with those that were there.
pub(in crate::sqlite) fn acknowledge(
    conn: &Connection,
    owner: &str,
    ids: &[NoticeId],
    tasks: &[TaskId],
) -> Result<Vec<NoticeId>, Error> {
    let mut delete = conn.prepare_cached("DELETE FROM inbox WHERE owner = ?1 AND id = ?2")?;
    let mut gone = Vec::with_capacity(ids.len());
    for id in ids {
        if delete.execute(params![owner, id.as_str()])? > 0 {
            gone.push(id.clone());
        }
    }
    let mut of_task =
        conn.prepare_cached("DELETE FROM inbox WHERE owner = ?1 AND task_id = ?2 RETURNING id")?;
    for task in tasks {
        let rows = of_task.query_map(params![owner, task.as_str()], |row| row.get::<_, String>(0))?;
        for id in rows {
            gone.extend(id?.parse());
        }
    }
    Ok(gone)
}
