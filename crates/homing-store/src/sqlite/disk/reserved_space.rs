//! How much room the ends of live tasks will need. Keeps P2.
//!
//! An end is written with its event, its notice and its deliveries, which repeat what the task was
//! submitted with. On a full disk that has to come from the [reserve](super::reserve), so the
//! reserve grows with what is live. Triggers of the writing connection keep the sum: they are
//! temporary, undone with the operation that fails, and cost no scan.

use rusqlite::Connection;

use crate::sqlite::tasks::row;
use crate::store::Error;

/// What an end writes in any case: its rows, the pages of their indexes, and what a full disk leaves
/// of the answer, twice, and of the end of the output.
const BASE: u64 = 8 << 10;

/// What it repeats, and how often: in the event and in the notice; a target in its delivery, its
/// channel, and their indexes.
const REPEATED: [(&str, u64); 5] = [
    ("labels", 2),
    ("command", 2),
    ("spec ->> '$.description'", 2),
    ("spec ->> '$.cwd'", 2),
    ("spec ->> '$.notify.targets'", 6),
];

fn estimate(row: &str) -> String {
    let terms = REPEATED.map(|(column, times)| format!("{times} * coalesce(length({row}.{column}), 0)"));
    format!("{BASE} + {}", terms.join(" + "))
}

/// Begins to keep the sum, of what is live now and will be.
pub(in crate::sqlite) fn begin(conn: &Connection) -> Result<(), Error> {
    let (old, new, live) = (estimate("old"), estimate("new"), estimate("tasks"));
    conn.execute_batch(&format!(
        "CREATE TEMP TABLE owed (bytes INTEGER NOT NULL);
         INSERT INTO temp.owed SELECT coalesce(sum({live}), 0) FROM tasks WHERE ended_at IS NULL;
         CREATE TEMP TRIGGER owed_more AFTER INSERT ON main.tasks WHEN new.ended_at IS NULL
           BEGIN UPDATE owed SET bytes = bytes + {new}; END;
         CREATE TEMP TRIGGER owed_less AFTER UPDATE OF ended_at ON main.tasks
           WHEN old.ended_at IS NULL AND new.ended_at IS NOT NULL
           BEGIN UPDATE owed SET bytes = max(bytes - ({old}), 0); END;"
    ))?;
    Ok(())
}

/// The sum, in bytes.
pub(in crate::sqlite) fn bytes(conn: &Connection) -> Result<u64, Error> {
    let mut query = conn.prepare_cached("SELECT bytes FROM temp.owed")?;
    Ok(row::unsigned(query.query_row([], |row| row.get(0))?))
}
