//! The owner's inbox: looked at, taken under a lease, acknowledged.

use homing_model::{Notice, NoticeId, TaskId, Timestamp};
use rusqlite::{Connection, params};

use crate::outbox::{Available, Waiting};
use crate::question::{Hearer, Proof};
use crate::sqlite::notices::questions;
use crate::sqlite::tasks::row;
use crate::store::Error;

/// Who looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::sqlite) enum Looker {
    /// Somebody who reads.
    Reader,
    /// Somebody who will tell the owner.
    Teller,
}

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

/// What nobody holds, whether there is more of it, and when the next of the others is free.
pub(in crate::sqlite) fn peek(
    conn: &Connection,
    owner: &str,
    limit: u32,
    looker: Looker,
    now: Timestamp,
) -> Result<Available, Error> {
    let (entries, more) = free(conn, owner, limit, looker, now)?;
    let mut next = conn.prepare_cached(match looker {
        Looker::Reader => "SELECT min(held_until) FROM inbox WHERE owner = ?1 AND held_until > ?2",
        Looker::Teller => {
            "SELECT min(until) FROM (SELECT held_until AS until FROM inbox WHERE owner = ?1 AND held_until > ?2 \
             UNION ALL SELECT until FROM inbox JOIN questions ON questions.task_id = inbox.task_id \
             WHERE inbox.owner = ?1 AND until > ?2)"
        }
    })?;
    let next: Option<i64> = next.query_row(params![owner, now.as_millis()], |row| row.get(0))?;
    Ok(Available {
        notices: entries.into_iter().map(|(_, notice)| notice).collect(),
        more,
        free_at: next.map(Timestamp::from_millis),
    })
}

/// The same, held until `until`.
pub(in crate::sqlite) fn take(
    conn: &Connection,
    owner: &str,
    limit: u32,
    until: Timestamp,
    now: Timestamp,
) -> Result<Vec<Notice>, Error> {
    let (entries, _) = free(conn, owner, limit, Looker::Teller, now)?;
    let mut hold =
        conn.prepare_cached("UPDATE inbox SET held_until = ?3, told = 0 WHERE owner = ?1 AND seq = ?2")?;
    for (seq, _) in &entries {
        hold.execute(params![owner, seq, until.as_millis()])?;
    }
    Ok(entries.into_iter().map(|(_, notice)| notice).collect())
}

/// What is given of an inbox at once, in bytes; the rest is given when that was acknowledged.
const PAGE_BYTES: usize = 4 << 20;

/// What nobody holds, and whether there is more than fits. What a question is open for is there to be
/// read, and not to be told.
fn free(
    conn: &Connection,
    owner: &str,
    limit: u32,
    looker: Looker,
    now: Timestamp,
) -> Result<(Vec<(i64, Notice)>, bool), Error> {
    let mut query = conn.prepare_cached(match looker {
        Looker::Reader => {
            "SELECT inbox.seq, body FROM inbox JOIN notices ON notices.seq = inbox.seq \
             WHERE owner = ?1 AND (held_until IS NULL OR held_until <= ?2) ORDER BY inbox.seq"
        }
        Looker::Teller => concat!(
            "SELECT inbox.seq, body FROM inbox JOIN notices ON notices.seq = inbox.seq \
             WHERE owner = ?1 AND (held_until IS NULL OR held_until <= ?2) AND NOT ",
            questions::asked!(),
            " ORDER BY inbox.seq"
        ),
    })?;
    let mut rows = query.query(params![owner, now.as_millis()])?;
    let (mut entries, limit) = (Vec::new(), usize::try_from(limit).unwrap_or(usize::MAX));
    let mut bytes = 0;
    // Only what can be given counts: what is damaged must not stand before the rest for ever.
    while let Some(row) = rows.next()? {
        if entries.len() >= limit || bytes >= PAGE_BYTES {
            return Ok((entries, true));
        }
        let seq = row.get(0)?;
        bytes += row::bytes(row)?;
        let body = row.get::<_, String>(1).map_err(|error| error.to_string());
        match body.and_then(|body| serde_json::from_str(&body).map_err(|error| error.to_string())) {
            Ok(notice) => entries.push((seq, notice)),
            // One bad row does not hide the others.
            Err(error) => tracing::error!(notice = seq, %error, "a notice could not be read"),
        }
    }
    Ok((entries, false))
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

/// The owner was handed the ends of these tasks.
pub(in crate::sqlite) fn told(
    conn: &Connection,
    owner: &str,
    tasks: &[TaskId],
    hearer: Hearer,
    until: Timestamp,
) -> Result<(), Error> {
    let mut hold = conn.prepare_cached(
        "UPDATE inbox SET held_until = ?3, told = ?4 WHERE owner = ?1 AND task_id = ?2 \
         AND seq = (SELECT ended_seq FROM tasks WHERE id = ?2)",
    )?;
    let mut mark = conn.prepare_cached(
        "UPDATE notices SET told = 1 WHERE task = ?2 \
         AND seq = (SELECT ended_seq FROM tasks WHERE id = ?2 AND owner = ?1)",
    )?;
    for task in tasks {
        hold.execute(params![owner, task.as_str(), until.as_millis(), hearer.number(Proof::Call)])?;
        mark.execute(params![owner, task.as_str()])?;
    }
    Ok(())
}

/// The owner was handed these notices; answers with those that were there.
pub(in crate::sqlite) fn told_notices(
    conn: &Connection,
    owner: &str,
    ids: Vec<NoticeId>,
    hearer: Hearer,
    proof: Proof,
    until: Timestamp,
) -> Result<Vec<NoticeId>, Error> {
    let mut hold =
        conn.prepare_cached("UPDATE inbox SET held_until = ?3, told = ?4 WHERE owner = ?1 AND id = ?2")?;
    let mut mark = conn.prepare_cached("UPDATE notices SET told = 1 WHERE id = ?1")?;
    let mut there = Vec::with_capacity(ids.len());
    for id in ids {
        if hold.execute(params![owner, id.as_str(), until.as_millis(), hearer.number(proof)])? > 0 {
            mark.execute([id.as_str()])?;
            there.push(id);
        }
    }
    Ok(there)
}

/// Owners that were told something which is still held, and until when.
pub(in crate::sqlite) fn unconfirmed(
    conn: &Connection,
    now: Timestamp,
) -> Result<Vec<(String, Timestamp)>, Error> {
    let mut query = conn.prepare_cached(
        "SELECT owner, max(held_until) FROM inbox WHERE told > 0 AND held_until > ?1 GROUP BY owner ORDER BY owner",
    )?;
    let rows =
        query.query_map([now.as_millis()], |row| Ok((row.get(0)?, Timestamp::from_millis(row.get(1)?))))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// The owner came back: what it was told, is still held and is proved by this, is acknowledged. The end of a turn proves what a call proves as well.
pub(in crate::sqlite) fn confirm(
    conn: &Connection,
    owner: &str,
    proof: Proof,
    now: Timestamp,
) -> Result<(), Error> {
    let most = match proof {
        Proof::Call => Hearer::Unknown.number(Proof::Call),
        Proof::TurnEnd => Hearer::Unknown.number(Proof::TurnEnd),
    };
    conn.prepare_cached("DELETE FROM inbox WHERE owner = ?1 AND told BETWEEN 1 AND ?3 AND held_until > ?2")?
        .execute(params![owner, now.as_millis(), most])?;
    Ok(())
}
