//! Questions that are open: an owner waits for ends, by a call whose answer tells them. Until it is answered or given up, nobody else tells
//! the owner those ends: no hook, no waiter, no wake (P6).
//!
//! Rows, so that a daemon that dies during the call changes nothing: the client asks the next one again, and until then nobody came before it. A
//! row that nobody takes back, because daemon and client died together, ends by the clock.

use homing_model::{TaskId, Timestamp};
use rusqlite::{Connection, params};

use crate::question::Question;
use crate::sqlite::notices::wakes;
use crate::sqlite::tasks::row;
use crate::store::Error;

/// The call of a submit that will be followed by a wait, which takes its place.
const OF_SUBMIT: i64 = 0;

/// Whether an entry is the end of a task that its owner asks for at `?2`; to be put into a condition on `inbox`.
macro_rules! asked {
    () => {
        "EXISTS (SELECT 1 FROM questions WHERE questions.task_id = inbox.task_id AND questions.owner = inbox.owner \
         AND questions.until > ?2 AND inbox.seq = (SELECT ended_seq FROM tasks WHERE tasks.id = inbox.task_id))"
    };
}
pub(in crate::sqlite) use asked;

/// An owner asks for the ends of those of these tasks that are its own, until then; once more with the same call, for longer.
pub(in crate::sqlite) fn ask(conn: &Connection, question: &Question, now: Timestamp) -> Result<(), Error> {
    let Question { owner, tasks, call, until } = question;
    trim(conn, now)?;
    let mut insert = conn.prepare_cached(
        "INSERT OR REPLACE INTO questions (task_id, call, owner, until) SELECT id, ?3, owner, ?4 FROM tasks WHERE id = ?1 AND owner = ?2",
    )?;
    let mut follow =
        conn.prepare_cached("DELETE FROM questions WHERE task_id = ?1 AND call = ?2 AND owner = ?3")?;
    for task in tasks {
        insert.execute(params![task.as_str(), owner, row::signed(*call), until.as_millis()])?;
        follow.execute(params![task.as_str(), OF_SUBMIT, owner])?;
    }
    Ok(())
}

/// Drops those that are over.
pub(in crate::sqlite) fn trim(conn: &Connection, now: Timestamp) -> Result<(), Error> {
    conn.prepare_cached("DELETE FROM questions INDEXED BY questions_age WHERE until <= ?1")?
        .execute([now.as_millis()])?;
    Ok(())
}

/// Whoever submits this will ask for its end.
pub(in crate::sqlite) fn will_ask(
    conn: &Connection,
    owner: &str,
    task: &TaskId,
    until: Timestamp,
) -> Result<(), Error> {
    conn.prepare_cached(
        "INSERT OR REPLACE INTO questions (task_id, call, owner, until) VALUES (?1, ?2, ?3, ?4)",
    )?
    .execute(params![task.as_str(), OF_SUBMIT, owner, until.as_millis()])?;
    Ok(())
}

/// A call has its answer, or is given up: who waited for that goes on.
pub(in crate::sqlite) fn close(conn: &Connection, question: &Question, now: Timestamp) -> Result<(), Error> {
    let mut delete = conn.prepare_cached("DELETE FROM questions WHERE task_id = ?1 AND call = ?2")?;
    for task in &question.tasks {
        if delete.execute(params![task.as_str(), row::signed(question.call)])? > 0 {
            wakes::go_on(conn, task, now)?;
        }
    }
    Ok(())
}
