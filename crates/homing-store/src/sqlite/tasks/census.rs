//! Counting what is in the ledger. Every count goes over an index, and none over the rows of finished tasks.

use homing_model::operator::TargetKind;
use homing_model::{DeliveryState, Status};
use rusqlite::Connection;

use crate::census::Census;
use crate::sqlite::tasks::row::unsigned;
use crate::store::Error;

const LIVE: &str =
    "SELECT status, count(*) FROM tasks INDEXED BY tasks_live WHERE ended_at IS NULL GROUP BY status";
const FINISHED: &str = "SELECT status, count(*) FROM tasks INDEXED BY tasks_finished \
    WHERE ended_at IS NOT NULL AND forgotten_at IS NULL GROUP BY status";
const HOOKS: &str = "SELECT status, count(*) FROM tasks INDEXED BY tasks_hooks \
    WHERE kind = 'hook' AND forgotten_at IS NULL GROUP BY status";
const WAITING: &str =
    "SELECT channel, count(*) FROM deliveries INDEXED BY deliveries_state WHERE state = ?1 GROUP BY channel";

/// Counts everything, in one moment.
pub(in crate::sqlite) fn take(conn: &Connection) -> Result<Census, Error> {
    let mut census = Census::default();
    for sql in [LIVE, FINISHED] {
        census.tasks.extend(by_status(conn, sql)?);
    }
    for (status, hooks) in by_status(conn, HOOKS)? {
        for (_, count) in census.tasks.iter_mut().filter(|(known, _)| *known == status) {
            *count = count.saturating_sub(hooks);
        }
    }
    let mut waiting = conn.prepare_cached(WAITING)?;
    for state in [DeliveryState::Pending, DeliveryState::Superseded, DeliveryState::Dead] {
        let rows = waiting
            .query_map([state.as_str()], |row| Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?)))?
            .collect::<rusqlite::Result<Vec<_>>>()?;
        census.deliveries.extend(
            rows.into_iter()
                .filter_map(|(kind, count)| Some((state, TargetKind::parse(&kind)?, unsigned(count)))),
        );
    }
    let entries: i64 = conn.prepare_cached("SELECT count(*) FROM inbox")?.query_row([], |row| row.get(0))?;
    census.inbox = unsigned(entries);
    Ok(census)
}

/// A status that this release does not know is not counted.
fn by_status(conn: &Connection, sql: &str) -> Result<Vec<(Status, u64)>, Error> {
    let mut query = conn.prepare_cached(sql)?;
    let rows = query
        .query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?)))?
        .collect::<rusqlite::Result<Vec<_>>>()?;
    Ok(rows
        .into_iter()
        .filter_map(|(status, count)| Some((status.parse::<Status>().ok()?, unsigned(count))))
        .collect())
}
