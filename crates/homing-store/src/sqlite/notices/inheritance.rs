//! Who gets the reports of a sub-agent's tasks once the sub-agent has ended: the owner of the task that it ran in. Keeps P5.
//!
//! A sub-agent's session is not resumed by anybody, so its inbox has no reader. A later task may continue the session; while one runs, the
//! session has its inbox again.

use homing_model::notify::When;
use homing_model::{Route, Session, Target, TaskId, Timestamp};
use rusqlite::{Connection, params};

use crate::record::Record;
use crate::sqlite::notices::reservations::OfNotice;
use crate::sqlite::tasks::row;
use crate::store::Error;

/// Families are as deep as the configuration lets them be; a longer chain is a damaged ledger.
const MAX_GENERATIONS: usize = 1_000;

impl Record {
    /// What starts a turn of this task's owner with a notice of its sub-agent's tasks: the first
    /// wake that the task names, else that of the session that submitted it. Such a session waits
    /// for the task itself in other ways (a poll of its client, a waiter), which end with the task.
    /// A session that a caller inside another task named is woken only where the task names the
    /// wake: at its submit a hook had to have named that session.
    pub(in crate::sqlite) fn wake(&self) -> Option<Target> {
        let notify = self.spec.notify.as_ref().filter(|notify| notify.on != When::Never)?;
        let named = notify.targets.iter().find(|target| matches!(target, Target::Wake(_)));
        let session = self.spec.session.as_ref();
        let session = session.filter(|session| session.owner() == self.owner && self.parent.is_none());
        let by_session = Target::Wake(None);
        let reachable =
            !notify.targets.is_empty() && matches!(Route::of(&by_session, session, None), Ok(Some(_)));
        named.cloned().or_else(|| reachable.then_some(by_session))
    }
}

/// The ended task whose owner gets the notices of this one; none while the session that owns it can read them itself.
pub(in crate::sqlite) fn of(conn: &Connection, task: &Record) -> Result<Option<Record>, Error> {
    let mut heir: Option<Record> = None;
    let mut parent = task.parent.clone();
    for _ in 0..MAX_GENERATIONS {
        let Some(id) = parent.take() else { break };
        let Some(above) = row::by_id(conn, &id)? else { break };
        parent.clone_from(&above.parent);
        let owner = heir.as_ref().map_or(&task.owner, |heir| &heir.owner);
        let nested =
            above.nested_session.is_some() && Session::named(owner).is_some() && above.owner != *owner;
        if nested {
            if !above.status.is_terminal() || is_continued(conn, owner, &above.id)? {
                break;
            }
            heir = Some(above);
        }
    }
    Ok(heir)
}

/// The agent of a task that ends now leaves its unread entries to the task's owner.
pub(in crate::sqlite) fn inherit(conn: &Connection, ended: &Record, now: Timestamp) -> Result<(), Error> {
    let Some(session) = &ended.nested_session else { return Ok(()) };
    if is_continued(conn, session, &ended.id)? {
        return Ok(());
    }
    let heir = of(conn, ended)?;
    let owner = heir.as_ref().map_or(&ended.owner, |heir| &heir.owner);
    let mut query = conn.prepare_cached("SELECT seq, task_id FROM inbox WHERE owner = ?1")?;
    let entries = query.query_map([session], |row| Ok((row.get(0)?, row.get(1)?)))?;
    for (seq, task) in entries.collect::<rusqlite::Result<Vec<(i64, String)>>>()? {
        // What was handed to the agent, or is being handed over, stays where it is.
        if !OfNotice::read(conn, &task, seq)?.is_taken(now) {
            conn.prepare_cached("UPDATE inbox SET owner = ?3 WHERE owner = ?1 AND seq = ?2")?
                .execute(params![session, seq, owner])?;
        }
    }
    Ok(())
}

/// Whether another live task has this session.
fn is_continued(conn: &Connection, session: &str, but: &TaskId) -> Result<bool, Error> {
    let mut query = conn.prepare_cached(
        "SELECT EXISTS (SELECT 1 FROM tasks INDEXED BY tasks_nested_session \
         WHERE nested_session = ?1 AND id <> ?2 AND ended_at IS NULL)",
    )?;
    Ok(query.query_row(params![session, but.as_str()], |row| row.get(0))?)
}
