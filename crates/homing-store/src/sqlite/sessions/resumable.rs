//! Sessions of agents: who goes on with which, and whether anybody still may.

use homing_model::agent::Driver;
use homing_model::{Session, SubAgent, TaskId, Timestamp};
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::record::NewTask;
use crate::sqlite::tasks::row;
use crate::store::{Error, Submitted};

/// Why a task cannot go on with the session that it names: what it continues was forgotten, and the session goes with it, or somebody is at
/// it. Asked in the transaction that accepts the task, so that neither can happen in between.
pub(in crate::sqlite) fn cannot_continue(
    conn: &Connection,
    task: &NewTask,
) -> Result<Option<Submitted>, Error> {
    let Some((earlier, session)) = task.agent.as_ref().and_then(continued) else { return Ok(None) };
    let mut query = conn.prepare_cached("SELECT forgotten_at IS NULL FROM tasks WHERE id = ?1")?;
    let kept: Option<bool> = query.query_row([earlier.as_str()], |row| row.get(0)).optional()?;
    if kept != Some(true) {
        return Ok(Some(Submitted::SessionGone(earlier.clone())));
    }
    let mut query = conn.prepare_cached(
        "SELECT id FROM tasks INDEXED BY tasks_agent_session \
         WHERE agent_session = ?1 AND forgotten_at IS NULL AND ended_at IS NULL LIMIT 1",
    )?;
    let live: Option<String> = query.query_row(params![session], |row| row.get(0)).optional()?;
    live.map(|id| row::id(&id).map(Submitted::SessionBusy)).transpose()
}

fn continued(agent: &SubAgent) -> Option<(&TaskId, &str)> {
    agent.continues.as_ref().zip(agent.heard.session_id.as_deref())
}

/// When the first task of the session that this task reported was accepted; none while a task that is not forgotten has it, and none if a hook
/// has named it in a process, also if it has ended there, and no task that reported it has it
/// recorded as its own: such a process was outside of those tasks. None either if it owns a task that
/// was submitted outside of tasks.
///
/// Follows `continues` from task to task, so that no index over tombstones is needed. Where an earlier tombstone is gone
/// already, the time of the first one that is left counts.
pub(in crate::sqlite) fn released_session(
    conn: &Connection,
    id: &TaskId,
) -> Result<Option<Timestamp>, Error> {
    let mut read = conn.prepare_cached("SELECT agent, agent_session, created_at FROM tasks WHERE id = ?1")?;
    let mut kept = conn.prepare_cached(
        "SELECT EXISTS (SELECT 1 FROM tasks INDEXED BY tasks_agent_session WHERE agent_session = ?1 AND forgotten_at IS NULL)",
    )?;
    let mut elsewhere = conn.prepare_cached(
        "SELECT EXISTS (SELECT 1 FROM sessions WHERE session = ?1 AND NOT EXISTS \
         (SELECT 1 FROM tasks INDEXED BY tasks_nested_session \
          WHERE nested_session IS NOT NULL AND nested_session = sessions.agent || ':' || sessions.session \
            AND agent_session = ?1))",
    )?;
    let mut owns = conn.prepare_cached(
        "SELECT EXISTS (SELECT 1 FROM tasks INDEXED BY tasks_live \
           WHERE ended_at IS NULL AND owner = ?1 AND parent IS NULL) \
         OR EXISTS (SELECT 1 FROM tasks INDEXED BY tasks_finished_owner \
           WHERE owner = ?1 AND ended_at IS NOT NULL AND forgotten_at IS NULL AND parent IS NULL)",
    )?;
    // Only the files of a known agent's sessions are removed, so only its sessions matter.
    let mut owns_tasks = |agent: &str, session: &str| -> Result<bool, Error> {
        let named = match serde_json::from_str::<SubAgent>(agent).map(|agent| agent.driver) {
            Ok(Driver::Agent(name)) => Session::new(name, session),
            Ok(_) | Err(_) => None,
        };
        Ok(match named {
            Some(named) => owns.query_row([named.owner()], |row| row.get(0))?,
            None => false,
        })
    };
    let mut since = None;
    let mut released: Option<String> = None;
    let mut next = Some(id.clone());
    while let Some(id) = next.take() {
        let columns = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
        let found: Option<(Option<String>, Option<String>, i64)> =
            read.query_row([id.as_str()], columns).optional()?;
        let Some((Some(agent), Some(session), created_at)) = found else { break };
        match &released {
            Some(released) if *released != session => break,
            Some(_) => {}
            None if kept.query_row([&session], |row| row.get(0))? => break,
            None if elsewhere.query_row([&session], |row| row.get(0))? => break,
            None if owns_tasks(&agent, &session)? => break,
            None => released = Some(session),
        }
        since = Some(Timestamp::from_millis(created_at));
        next = serde_json::from_str::<SubAgent>(&agent).ok().and_then(|agent| agent.continues);
    }
    Ok(since)
}
