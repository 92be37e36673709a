//! Where sessions of agents are: one row each, of the process that it is in or was in last.
//!
//! Rows outlive their process: only so can a session that begins anew elsewhere be told what was said to the process that is gone. A row
//! outlives its session too, marked as ended: the session may be resumed, so no task may claim it,
//! or have its files removed (P11). Rows are bounded in age and number, in the transaction that adds
//! one.

use homing_model::reservation::{Event, POLL_MS};
use homing_model::{AgentName, Session, TaskId, Timestamp};
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::session::{Bind, Binding, SessionClaim};
use crate::sqlite::notices::reservations;
use crate::sqlite::tasks::row;
use crate::store::Error;

/// So many are kept, and so long.
const MOST: u32 = 1_000;
const AGE_MS: i64 = 30 * 24 * 3_600 * 1_000;

const COLUMNS: &str = "agent, session, node, boot_id, pid, start, streak, bound_at";

/// A session is in this process from now on.
pub(in crate::sqlite) fn bind(conn: &Connection, bind: &Bind) -> Result<(), Error> {
    let Bind { binding, alone, gives_back, polls, outside } = bind;
    let (agent, now) = (binding.agent.as_str(), binding.bound_at);
    // Of two hooks that saw the old process gone at the same moment, the second must not take back what the first has told since.
    let before = of_session(conn, &binding.agent, &binding.session)?;
    let moves = before.is_none_or(|before| !before.same_process(binding));
    let gives_back = *gives_back && moves;
    if *alone {
        conn.prepare_cached(
            "UPDATE sessions INDEXED BY sessions_process SET ended = 1 \
             WHERE pid = ?1 AND start = ?2 AND boot_id = ?3 AND node = ?4 AND agent = ?5 AND session <> ?6 AND ended = 0",
        )?
        .execute(params![
            binding.pid,
            row::signed(binding.start),
            binding.boot_id,
            binding.node,
            agent,
            binding.session
        ])?;
    }
    conn.prepare_cached(
        "INSERT OR REPLACE INTO sessions (agent, session, node, boot_id, pid, start, streak, bound_at) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    )?
    .execute(params![
        agent,
        binding.session,
        binding.node,
        binding.boot_id,
        binding.pid,
        row::signed(binding.start),
        binding.streak,
        now.as_millis()
    ])?;
    let owner = format!("{agent}:{}", binding.session);
    if gives_back {
        reservations::recipient(conn, &owner, &Event::RecipientGone, now)?;
        if *polls {
            reservations::hold_polled(conn, &owner, now.plus_millis(POLL_MS))?;
        }
    }
    if moves {
        // What a process that no hook had named was handed went to this one, as far as is known.
        reservations::recipient(conn, &owner, &Event::RecipientNamed, now)?;
    }
    if *outside {
        revoke_claims(conn, &owner, None)?;
    }
    trim(conn, now)
}

fn trim(conn: &Connection, now: Timestamp) -> Result<(), Error> {
    conn.prepare_cached("DELETE FROM sessions INDEXED BY sessions_age WHERE bound_at < ?1")?
        .execute([now.plus_millis(-AGE_MS).as_millis()])?;
    conn.prepare_cached(
        "DELETE FROM sessions WHERE (agent, session) IN \
         (SELECT agent, session FROM sessions ORDER BY ended, bound_at DESC, agent, session LIMIT -1 OFFSET ?1)",
    )?
    .execute([MOST])?;
    Ok(())
}

/// A session is nowhere, if it is still where it was seen.
pub(in crate::sqlite) fn unbind(conn: &Connection, seen: &Binding, now: Timestamp) -> Result<bool, Error> {
    let ended = conn
        .prepare_cached(
            "UPDATE sessions SET ended = 1 WHERE ended = 0 \
             AND agent = ?1 AND session = ?2 AND pid = ?3 AND start = ?4 AND boot_id = ?5 AND node = ?6",
        )?
        .execute(params![
            seen.agent.as_str(),
            seen.session,
            seen.pid,
            row::signed(seen.start),
            seen.boot_id,
            seen.node
        ])?;
    if ended > 0 {
        let owner = format!("{}:{}", seen.agent, seen.session);
        reservations::recipient(conn, &owner, &Event::RecipientGone, now)?;
    }
    Ok(ended > 0)
}

/// Where a session is, or was last; none if it has ended there.
pub(in crate::sqlite) fn of_session(
    conn: &Connection,
    agent: &AgentName,
    session: &str,
) -> Result<Option<Binding>, Error> {
    row_of_session(conn, agent, session, "AND ended = 0")
}

fn row_of_session(
    conn: &Connection,
    agent: &AgentName,
    session: &str,
    filter: &str,
) -> Result<Option<Binding>, Error> {
    let mut query = conn.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM sessions WHERE agent = ?1 AND session = ?2 {filter}"
    ))?;
    Ok(query.query_row(params![agent.as_str(), session], read).optional()?.flatten())
}

/// What is bound to these process ids, in their order.
pub(in crate::sqlite) fn of_processes(conn: &Connection, pids: &[u32]) -> Result<Vec<Binding>, Error> {
    let mut query = conn.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM sessions INDEXED BY sessions_process WHERE pid = ?1 AND ended = 0 ORDER BY agent, session"
    ))?;
    let mut found = Vec::new();
    for pid in pids {
        let rows = query.query_map([pid], read)?.collect::<rusqlite::Result<Vec<_>>>()?;
        found.extend(rows.into_iter().flatten());
    }
    Ok(found)
}

/// A row; none if what it names is no agent.
fn read(found: &Row<'_>) -> rusqlite::Result<Option<Binding>> {
    let Some(agent) = AgentName::new(&found.get::<_, String>(0)?) else { return Ok(None) };
    Ok(Some(Binding {
        agent,
        session: found.get(1)?,
        node: found.get(2)?,
        boot_id: found.get(3)?,
        pid: found.get(4)?,
        start: row::unsigned(found.get(5)?),
        streak: found.get(6)?,
        bound_at: Timestamp::from_millis(found.get(7)?),
    }))
}

/// The session of the agent inside a task: recorded if it belongs to nobody else.
pub(in crate::sqlite) fn claim(conn: &Connection, claim: &SessionClaim) -> Result<Option<String>, Error> {
    let SessionClaim { task, session, replaces, inside } = claim;
    let mut read = conn.prepare_cached("SELECT owner, nested_session FROM tasks WHERE id = ?1")?;
    let found = read.query_row([task.as_str()], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
    let Some((owner, recorded)) = found else { return Ok(None) };
    let (owner, recorded): (String, Option<String>) = (owner, recorded);
    let open = recorded.is_none() || recorded == *replaces;
    if !open || owner == *session || is_foreign(conn, task, &owner, session, inside.as_ref())? {
        return Ok(recorded);
    }
    conn.prepare_cached("UPDATE tasks SET nested_session = ?2 WHERE id = ?1")?
        .execute(params![task.as_str(), session])?;
    Ok(Some(session.clone()))
}

/// A session that is used elsewhere is not that of the agent inside a task, whoever came first: it
/// may have been claimed before it was there. A `user` that has it too continues it.
pub(in crate::sqlite) fn revoke_claims(
    conn: &Connection,
    session: &str,
    user: Option<&TaskId>,
) -> Result<(), Error> {
    conn.prepare_cached(
        "UPDATE tasks INDEXED BY tasks_nested_session SET nested_session = NULL WHERE nested_session = ?1 \
         AND NOT EXISTS (SELECT 1 FROM tasks AS users WHERE users.id = ?2 AND users.nested_session = ?1)",
    )?
    .execute(params![session, user.map(TaskId::as_str)])?;
    Ok(())
}

fn is_foreign(
    conn: &Connection,
    task: &TaskId,
    owner: &str,
    session: &str,
    inside: Option<&Binding>,
) -> Result<bool, Error> {
    // The next task of the same owner may continue the session of an earlier one.
    let mut earlier = conn.prepare_cached(
        "SELECT ended_at IS NOT NULL AND owner = ?3 FROM tasks INDEXED BY tasks_nested_session \
         WHERE nested_session = ?1 AND id <> ?2 ORDER BY seq DESC",
    )?;
    let continued: Vec<bool> = earlier
        .query_map(params![session, task.as_str(), owner], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    if !continued.is_empty() {
        return Ok(continued.contains(&false));
    }
    // Looked up again here: a hook may have named it elsewhere since. An ended one may be resumed.
    let named = Session::named(session);
    let bound = named.map(|named| row_of_session(conn, &named.agent, &named.id, "")).transpose()?.flatten();
    if bound.is_some_and(|bound| inside.is_none_or(|inside| !inside.same_process(&bound))) {
        return Ok(true);
    }
    let mut owned = conn.prepare_cached(
        "SELECT EXISTS (SELECT 1 FROM tasks INDEXED BY tasks_live \
           WHERE ended_at IS NULL AND owner = ?1 AND parent IS NOT ?2) \
         OR EXISTS (SELECT 1 FROM tasks INDEXED BY tasks_finished_owner \
           WHERE owner = ?1 AND ended_at IS NOT NULL AND forgotten_at IS NULL AND parent IS NOT ?2)",
    )?;
    Ok(owned.query_row(params![session, task.as_str()], |row| row.get(0))?)
}
