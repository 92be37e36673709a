//! Sessions of agents: who goes on with which, and whether anybody still may.

use homing_model::{SubAgent, TaskId};
use rusqlite::{Connection, OptionalExtension, params};

use super::row;
use crate::record::NewTask;
use crate::store::{Error, Submitted};

/// Why a task cannot go on with the session that it names: what it continues was forgotten, and the session goes with it, or somebody is at
/// it. Asked in the transaction that accepts the task, so that neither can happen in between.
pub(super) fn cannot_continue(conn: &Connection, task: &NewTask) -> Result<Option<Submitted>, Error> {
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

/// Whether a task that is not forgotten has this session.
pub(super) fn session_kept(conn: &Connection, session: &str) -> Result<bool, Error> {
    let mut query = conn.prepare_cached(
        "SELECT EXISTS (SELECT 1 FROM tasks INDEXED BY tasks_agent_session WHERE agent_session = ?1 AND forgotten_at IS NULL)",
    )?;
    Ok(query.query_row([session], |row| row.get(0))?)
}
