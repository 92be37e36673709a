//! The thorough check, for when somebody asks.

use homing_model::Kind;
use rusqlite::Connection;

use crate::sqlite::schema;
use crate::sqlite::tasks::row::{self, select_task};
use crate::store::Error;

/// Checks pages and indexes, then that every task can be read, then that the totals add up.
pub(in crate::sqlite) fn check(conn: &Connection) -> Result<(), Error> {
    let mut pragma = conn.prepare("PRAGMA integrity_check(10)")?;
    let findings = pragma.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<Vec<String>>>()?;
    if findings != ["ok"] {
        return Err(Error::Corrupt(findings.join("; ")));
    }
    let mut query = conn.prepare(select_task!("ORDER BY seq"))?;
    let mut rows = query.query([])?;
    let (mut count, mut bytes, mut hooks) = (0, 0, 0);
    while let Some(row) = rows.next()? {
        let record = row::decode(row)?;
        if record.ended_at.is_some() != record.status.is_terminal() {
            let why = format!("it is {}, which contradicts its time of end", record.status);
            return Err(Error::BadRow { task: record.id.to_string(), why });
        }
        if record.ended_at.is_none() || record.forgotten {
            continue;
        }
        if record.kind == Kind::Hook {
            hooks += 1;
        } else {
            count += 1;
            bytes += crate::sqlite::tasks::life::kept(&record);
        }
    }
    let meta = |name| schema::meta(conn, name);
    let totals = (meta("finished")?, meta("finished_bytes")?, meta("finished_hooks")?);
    if totals == (count, bytes, hooks) {
        return Ok(());
    }
    Err(Error::Corrupt(format!(
        "there are {count} finished tasks with {bytes} bytes of output and {hooks} hooks, but the totals say {totals:?}"
    )))
}
