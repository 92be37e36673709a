//! A task's row, and back.

use std::str::FromStr;

use homing_model::{Answer, Kind, TaskId, Timestamp};
use rusqlite::types::{FromSql, ValueRef};
use rusqlite::{Connection, OptionalExtension, Row};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::record::{Record, Stop, Tracking};
use crate::store::Error;

/// `SELECT` of all that [`decode`] reads, and the rest of the statement.
macro_rules! select_task {
    ($rest:literal) => {
        concat!(
            "SELECT seq, id, spec, owner, command, env_names, volatile_secrets, parent, depth, status, attempt, node, boot_id, pid, ",
            "created_at, started_at, ended_at, duration_ms, outcome, stop_requested_by, output_bytes, output_dropped, ",
            "forgotten_at IS NOT NULL, progress, kind, stop_signal, stop_grace_ms, lease_ms, heard_at, process_start, answer, answer_state, masks, watch, agent, network, nested_session FROM tasks ",
            $rest
        )
    };
}
pub(in crate::sqlite) use select_task;

/// The task of that id.
pub(in crate::sqlite) fn by_id(conn: &Connection, id: &TaskId) -> Result<Option<Record>, Error> {
    let mut query = conn.prepare_cached(select_task!("WHERE id = ?1"))?;
    query.query_row([id.as_str()], |row| Ok(decode(row))).optional()?.transpose()
}

/// The task at that place in the order of acceptance.
pub(in crate::sqlite) fn by_seq(conn: &Connection, seq: i64) -> Result<Option<Record>, Error> {
    let mut query = conn.prepare_cached(select_task!("WHERE seq = ?1"))?;
    query.query_row([seq], |row| Ok(decode(row))).optional()?.transpose()
}

/// Reads a row of [`select_task`]. Whatever does not make sense in it is this row's fault alone.
pub(in crate::sqlite) fn decode(row: &Row<'_>) -> Result<Record, Error> {
    let cells = Cells(row);
    let kind = cells.parsed(24)?;
    Ok(Record {
        seq: cells.count(0)?,
        id: cells.parsed(1)?,
        kind,
        spec: cells.json(2)?,
        owner: cells.get(3)?,
        command: cells.get(4)?,
        env_names: cells.json(5)?,
        volatile_secrets: cells.json(6)?,
        masks: cells
            .get::<Option<String>>(32)?
            .map(|text| cells.read(&text))
            .transpose()?
            .unwrap_or_default(),
        parent: cells.get::<Option<String>>(7)?.map(|id| cells.parse(&id)).transpose()?,
        depth: cells.get(8)?,
        network: cells.get(35)?,
        nested_session: cells.get(36)?,
        status: cells.parsed(9)?,
        attempt: cells.get(10)?,
        node: cells.get(11)?,
        boot_id: cells.get(12)?,
        pid: cells.get(13)?,
        created_at: Timestamp::from_millis(cells.get(14)?),
        started_at: cells.get::<Option<i64>>(15)?.map(Timestamp::from_millis),
        ended_at: cells.get::<Option<i64>>(16)?.map(Timestamp::from_millis),
        duration_ms: cells.get::<Option<i64>>(17)?.map(unsigned),
        outcome: cells.get::<Option<String>>(18)?.map(|text| cells.read(&text)).transpose()?,
        stop: match cells.get(19)? {
            Some(by) => Some(Stop {
                by,
                signal: cells.get(25)?,
                grace_ms: cells.get::<Option<i64>>(26)?.map(unsigned),
            }),
            None => None,
        },
        output_bytes: cells.count(20)?,
        output_dropped: cells.count(21)?,
        forgotten: cells.get(22)?,
        watch: cells.get::<Option<String>>(33)?.map(|text| cells.read(&text)).transpose()?,
        agent: cells.get::<Option<String>>(34)?.map(|text| cells.read(&text)).transpose()?,
        progress: cells.get::<Option<String>>(23)?.map(|text| cells.read(&text)).transpose()?,
        tracking: if kind == Kind::External { cells.tracking()? } else { None },
        heard_at: cells.get::<Option<i64>>(28)?.map(Timestamp::from_millis),
        answer: match (cells.get(30)?, cells.get::<Option<String>>(31)?) {
            (Some(text), Some(state)) => Some(Answer { text, state: cells.parse(&state)? }),
            _ => None,
        },
    })
}

/// How many bytes of text there are in a row.
pub(in crate::sqlite) fn bytes(row: &Row<'_>) -> Result<usize, Error> {
    let mut sum = 0;
    for column in 0..row.as_ref().column_count() {
        if let ValueRef::Text(text) = row.get_ref(column)? {
            sum += text.len();
        }
    }
    Ok(sum)
}

struct Cells<'a>(&'a Row<'a>);

impl Cells<'_> {
    fn get<T: FromSql>(&self, column: usize) -> Result<T, Error> {
        self.0.get(column).map_err(|error| self.bad(&error))
    }

    fn count(&self, column: usize) -> Result<u64, Error> {
        u64::try_from(self.get::<i64>(column)?).map_err(|error| self.bad(&error))
    }

    fn parse<T: FromStr<Err: std::fmt::Display>>(&self, text: &str) -> Result<T, Error> {
        text.parse().map_err(|error| self.bad(&error))
    }

    /// How the end of an external task is seen; none of a tombstone.
    fn tracking(&self) -> Result<Option<Tracking>, Error> {
        let lease = self.get::<Option<i64>>(27)?.map(|ms| Tracking::Lease { ms: unsigned(ms) });
        Ok(match (self.get(13)?, self.get::<Option<i64>>(29)?) {
            (Some(pid), Some(start)) => Some(Tracking::Process { pid, start: unsigned(start) }),
            _ => lease,
        })
    }

    fn parsed<T: FromStr<Err: std::fmt::Display>>(&self, column: usize) -> Result<T, Error> {
        self.parse(&self.get::<String>(column)?)
    }

    fn read<T: DeserializeOwned>(&self, text: &str) -> Result<T, Error> {
        serde_json::from_str(text).map_err(|error| self.bad(&error))
    }

    fn json<T: DeserializeOwned>(&self, column: usize) -> Result<T, Error> {
        self.read(&self.get::<String>(column)?)
    }

    fn bad(&self, why: &dyn std::fmt::Display) -> Error {
        let task = self.0.get(1).unwrap_or_else(|_| "(unreadable)".to_owned());
        Error::BadRow { task, why: why.to_string() }
    }
}

/// An id that this ledger wrote.
pub(in crate::sqlite) fn id(text: &str) -> Result<TaskId, Error> {
    text.parse().map_err(|error: homing_model::id::Malformed| Error::Corrupt(error.to_string()))
}

/// A value as JSON text. `id` names the task if that fails, which no value of the model does.
pub(in crate::sqlite) fn json<T: Serialize>(id: &TaskId, value: &T) -> Result<String, Error> {
    serde_json::to_string(value)
        .map_err(|error| Error::BadRow { task: id.as_str().to_owned(), why: error.to_string() })
}

/// SQLite's integers are signed; a count beyond 2^63 does not occur, and would be kept as 2^63 - 1.
pub(in crate::sqlite) fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// The other way; what is negative is none of ours.
pub(in crate::sqlite) fn unsigned(count: i64) -> u64 {
    u64::try_from(count).unwrap_or(0)
}
