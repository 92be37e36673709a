//! The tables, and how they came to be: a list of forward-only migrations.
//!
//! `user_version` counts the migrations that were applied, `application_id` says that the file is ours. A later release appends to
//! [`MIGRATIONS`]; what is in the list is never edited, since files made by it exist.
//!
//! A task is live while `ended_at` is null, finished once it is set, and a tombstone once `forgotten_at` is set. Indexes are partial on
//! these, so that a hundred thousand finished tasks cost the live ones nothing. Queries that must not scan name their index
//! (`INDEXED BY`): a plan that stops fitting is then an error in a test, not a slow daemon.

use rusqlite::Connection;

use crate::store::Error;

/// "homi".
pub(super) const APPLICATION_ID: i32 = 0x686f_6d69;

/// Step `n` leads from version `n` to `n + 1`.
const MIGRATIONS: [&str; 5] = [V1, V2, V3, V4, V5];

/// The version that this release writes.
pub(super) const VERSION: u32 = MIGRATIONS.len() as u32;

const V1: &str = "
CREATE TABLE tasks (
  seq               INTEGER PRIMARY KEY AUTOINCREMENT,
  id                TEXT NOT NULL UNIQUE,
  kind              TEXT NOT NULL DEFAULT 'command',
  owner             TEXT NOT NULL,
  name              TEXT,
  key               TEXT,
  grp               TEXT NOT NULL DEFAULT 'default',
  priority          INTEGER NOT NULL DEFAULT 0,
  not_before        INTEGER,
  status            TEXT NOT NULL,
  attempt           INTEGER NOT NULL,
  fence             INTEGER NOT NULL DEFAULT 0,
  node              TEXT NOT NULL,
  boot_id           TEXT NOT NULL,
  pid               INTEGER,
  parent            TEXT,
  depth             INTEGER NOT NULL,
  command           TEXT NOT NULL,
  created_at        INTEGER NOT NULL,
  started_at        INTEGER,
  ended_at          INTEGER,
  ended_seq         INTEGER,
  duration_ms       INTEGER,
  stop_requested_by TEXT,
  output_bytes      INTEGER NOT NULL DEFAULT 0,
  output_dropped    INTEGER NOT NULL DEFAULT 0,
  forgotten_at      INTEGER,
  outcome           TEXT,
  labels            TEXT,
  env_names         TEXT NOT NULL,
  volatile_secrets  TEXT NOT NULL,
  spec              TEXT NOT NULL
) STRICT;

CREATE INDEX tasks_live ON tasks (seq, status, owner) WHERE ended_at IS NULL;
CREATE UNIQUE INDEX tasks_live_key ON tasks (owner, key) WHERE ended_at IS NULL AND key IS NOT NULL;
CREATE INDEX tasks_live_name ON tasks (name, seq) WHERE ended_at IS NULL AND name IS NOT NULL;
CREATE INDEX tasks_ended_name ON tasks (name, seq) WHERE ended_at IS NOT NULL AND name IS NOT NULL;
CREATE INDEX tasks_finished ON tasks (status, seq, ended_seq) WHERE ended_at IS NOT NULL AND forgotten_at IS NULL;
CREATE INDEX tasks_finished_owner ON tasks (owner, status, seq, ended_seq) WHERE ended_at IS NOT NULL AND forgotten_at IS NULL;
CREATE INDEX tasks_finished_age ON tasks (ended_at, seq) WHERE ended_at IS NOT NULL AND forgotten_at IS NULL;
CREATE INDEX tasks_tombstones ON tasks (forgotten_at, seq) WHERE forgotten_at IS NOT NULL;

CREATE TABLE events (
  seq     INTEGER PRIMARY KEY AUTOINCREMENT,
  type    TEXT NOT NULL,
  at      INTEGER NOT NULL,
  task_id TEXT,
  owner   TEXT,
  data    TEXT NOT NULL
) STRICT;

CREATE TABLE idempotency (
  owner      TEXT NOT NULL,
  key        TEXT NOT NULL,
  body_hash  TEXT NOT NULL,
  task_id    TEXT NOT NULL,
  expires_at INTEGER NOT NULL,
  PRIMARY KEY (owner, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX idempotency_expiry ON idempotency (expires_at);

-- Ids whose tombstones were dropped; together with tasks.id, every id that was ever issued.
CREATE TABLE issued (id TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;

-- Running totals of finished tasks (count, bytes of output kept) and how far the log was trimmed.
CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;
INSERT INTO meta (name, value) VALUES ('finished', 0), ('finished_bytes', 0), ('events_trimmed_to', 0);
";

/// Notices. Each is an event of the log, whose `data` it is; its text is kept here, once, until the log, the inbox and the deliveries
/// are all done with it. An owner with nothing in the inbox leaves no row behind.
const V2: &str = "
ALTER TABLE tasks ADD COLUMN progress TEXT;
ALTER TABLE tasks ADD COLUMN lease_ms INTEGER;
ALTER TABLE tasks ADD COLUMN heard_at INTEGER;
ALTER TABLE tasks ADD COLUMN process_start INTEGER;
ALTER TABLE tasks ADD COLUMN answer TEXT;
ALTER TABLE tasks ADD COLUMN answer_state TEXT;
ALTER TABLE tasks ADD COLUMN watch TEXT;
ALTER TABLE tasks ADD COLUMN stop_signal INTEGER;
ALTER TABLE tasks ADD COLUMN stop_grace_ms INTEGER;
ALTER TABLE tasks ADD COLUMN masks TEXT;
-- 1: whoever submitted it came over the network, not by the socket. Deliveries keep it too: they may outlive their task.
ALTER TABLE tasks ADD COLUMN network INTEGER NOT NULL DEFAULT 0;
CREATE INDEX tasks_children ON tasks (parent, ended_at, seq) WHERE parent IS NOT NULL;
ALTER TABLE tasks ADD COLUMN agent TEXT;
ALTER TABLE tasks ADD COLUMN agent_session TEXT;
CREATE INDEX tasks_agent_session ON tasks (agent_session) WHERE agent_session IS NOT NULL AND forgotten_at IS NULL;

-- Hooks are counted and retired apart: they must not use up the retention of tasks.
CREATE INDEX tasks_hooks ON tasks (ended_at, seq) WHERE kind = 'hook' AND forgotten_at IS NULL;
DROP INDEX tasks_finished_age;
CREATE INDEX tasks_finished_age ON tasks (ended_at, seq) WHERE ended_at IS NOT NULL AND forgotten_at IS NULL AND kind <> 'hook';
INSERT INTO meta (name, value) VALUES ('finished_hooks', 0), ('notices_trimmed_to', 0);

-- inboxed: 0 never was in the inbox, 1 was put there, 2 was put there for want of a wake. told: its owner was handed it some other way.
CREATE TABLE notices (
  seq     INTEGER PRIMARY KEY,
  id      TEXT NOT NULL UNIQUE,
  task    TEXT NOT NULL,
  inboxed INTEGER NOT NULL DEFAULT 0,
  told    INTEGER NOT NULL DEFAULT 0,
  body    TEXT NOT NULL
) STRICT;
CREATE INDEX notices_task ON notices (task, seq);

-- Hand-overs of the last hour to commands that wake a session, and when its owner was last told that there were too many.
CREATE TABLE wakes (
  owner TEXT NOT NULL,
  at    INTEGER NOT NULL,
  hook  TEXT NOT NULL,
  PRIMARY KEY (owner, at, hook)
) STRICT, WITHOUT ROWID;
CREATE INDEX wakes_hook ON wakes (hook);
CREATE TABLE wake_pauses (owner TEXT PRIMARY KEY, told_at INTEGER NOT NULL) STRICT, WITHOUT ROWID;

-- Which process a session of an agent is in, or was in last; streak: how often in a row its end of a turn was put off.
CREATE TABLE sessions (
  agent    TEXT NOT NULL,
  session  TEXT NOT NULL,
  node     TEXT NOT NULL,
  boot_id  TEXT NOT NULL,
  pid      INTEGER NOT NULL,
  start    INTEGER NOT NULL,
  streak   INTEGER NOT NULL,
  bound_at INTEGER NOT NULL,
  PRIMARY KEY (agent, session)
) STRICT, WITHOUT ROWID;
CREATE INDEX sessions_process ON sessions (pid);
CREATE INDEX sessions_age ON sessions (bound_at);

CREATE TABLE inbox (
  owner      TEXT NOT NULL,
  seq        INTEGER NOT NULL,
  id         TEXT NOT NULL,
  task_id    TEXT NOT NULL,
  held_until INTEGER,
  told       INTEGER NOT NULL DEFAULT 0,
  polled     INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (owner, seq)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX inbox_notice ON inbox (id);
CREATE INDEX inbox_seq ON inbox (seq);

-- again: 1 somebody asked for it again, 2 while a command has it. earlier: how many of the attempts were made before that.
-- said: a command was given it and may have told it, whatever came of that; only to ask for it again takes that back.
CREATE TABLE deliveries (
  seq        INTEGER PRIMARY KEY AUTOINCREMENT,
  id         TEXT NOT NULL UNIQUE,
  notice_seq INTEGER NOT NULL,
  notice_id  TEXT NOT NULL,
  task_id    TEXT NOT NULL,
  owner      TEXT NOT NULL,
  channel    TEXT NOT NULL CHECK (channel IN ('webhook', 'exec', 'wake', 'desktop')),
  channel_owner  TEXT NOT NULL,
  channel_to     TEXT NOT NULL,
  channel_folder TEXT NOT NULL,
  target     TEXT NOT NULL,
  shown      TEXT NOT NULL,
  route      TEXT,
  secret     TEXT,
  network    INTEGER NOT NULL DEFAULT 0,
  state      TEXT NOT NULL DEFAULT 'pending',
  attempts   INTEGER NOT NULL DEFAULT 0,
  earlier    INTEGER NOT NULL DEFAULT 0,
  busy       INTEGER NOT NULL DEFAULT 0,
  said       INTEGER NOT NULL DEFAULT 0,
  fence      INTEGER NOT NULL DEFAULT 0,
  next_at    INTEGER NOT NULL,
  held_until INTEGER,
  again      INTEGER NOT NULL DEFAULT 0,
  hook       TEXT,
  created_at INTEGER NOT NULL,
  ended_at   INTEGER,
  reason     TEXT,
  history    TEXT NOT NULL DEFAULT '[]'
) STRICT;
CREATE INDEX deliveries_pending
  ON deliveries (channel, channel_owner, channel_to, channel_folder, max(next_at, coalesce(held_until, 0)), seq)
  WHERE state = 'pending';
CREATE INDEX deliveries_state ON deliveries (state, seq);
CREATE INDEX deliveries_task ON deliveries (task_id, seq);
CREATE INDEX deliveries_hook ON deliveries (hook) WHERE hook IS NOT NULL;
CREATE INDEX deliveries_notice ON deliveries (notice_seq);
CREATE INDEX deliveries_ended ON deliveries (ended_at) WHERE ended_at IS NOT NULL;

-- The text of a notice that the log is done with goes with the last that needs it, however that goes.
CREATE TRIGGER inbox_done AFTER DELETE ON inbox BEGIN
  DELETE FROM notices WHERE seq = OLD.seq AND seq <= (SELECT value FROM meta WHERE name = 'notices_trimmed_to')
    AND NOT EXISTS (SELECT 1 FROM inbox WHERE inbox.seq = OLD.seq)
    AND NOT EXISTS (SELECT 1 FROM deliveries WHERE notice_seq = OLD.seq);
END;
CREATE TRIGGER deliveries_done AFTER DELETE ON deliveries BEGIN
  DELETE FROM notices WHERE seq = OLD.notice_seq AND seq <= (SELECT value FROM meta WHERE name = 'notices_trimmed_to')
    AND NOT EXISTS (SELECT 1 FROM inbox WHERE inbox.seq = OLD.notice_seq)
    AND NOT EXISTS (SELECT 1 FROM deliveries WHERE notice_seq = OLD.notice_seq);
END;
";

/// Who waits for an end by a call whose answer tells it. `inbox.told`, from here on: 1 to the process that the session was in, 2 while it was in
/// none that was known.
const V3: &str = "
CREATE TABLE questions (
  task_id TEXT NOT NULL,
  call    INTEGER NOT NULL,
  owner   TEXT NOT NULL,
  until   INTEGER NOT NULL,
  PRIMARY KEY (task_id, call)
) STRICT, WITHOUT ROWID;
CREATE INDEX questions_age ON questions (until);
";

/// Whether a request joined what it was answered with, and the start of the machine that the log was last written in.
const V4: &str = "
ALTER TABLE idempotency ADD COLUMN joined INTEGER NOT NULL DEFAULT 0;
CREATE TABLE boot (id TEXT NOT NULL) STRICT;
";

/// The session, as an owner, of the agent that runs inside a task. Only its tasks and its inbox belong to callers in there.
///
/// And whether a session has ended in the process that it was in. Its row stays: the session still
/// does not belong to a task.
///
/// And reservations of notices in one table (`homing_model::reservation`). `notice` is 0 while the task
/// has not ended, whose end a waiter reserved; `holder` says which of several readers of a kind it is.
const V5: &str = "
ALTER TABLE tasks ADD COLUMN nested_session TEXT;
CREATE INDEX tasks_nested_session ON tasks (nested_session) WHERE nested_session IS NOT NULL;
ALTER TABLE sessions ADD COLUMN ended INTEGER NOT NULL DEFAULT 0;

DROP TABLE questions;
ALTER TABLE inbox DROP COLUMN held_until;
ALTER TABLE inbox DROP COLUMN told;
ALTER TABLE inbox DROP COLUMN polled;
ALTER TABLE notices DROP COLUMN told;
CREATE TABLE reservations (
  task_id      TEXT NOT NULL,
  notice       INTEGER NOT NULL,
  reader       TEXT NOT NULL,
  holder       TEXT NOT NULL,
  owner        TEXT NOT NULL,
  until        INTEGER NOT NULL,
  confirmed_by TEXT,
  bound        INTEGER NOT NULL,
  PRIMARY KEY (task_id, notice, reader, holder)
) STRICT, WITHOUT ROWID;
CREATE INDEX reservations_waiters ON reservations (until) WHERE reader = 'waiter';
CREATE INDEX reservations_owner ON reservations (owner, reader);
CREATE INDEX reservations_inside ON reservations (holder) WHERE reader = 'owner' AND holder <> '';
CREATE TRIGGER inbox_free AFTER DELETE ON inbox BEGIN
  DELETE FROM reservations WHERE task_id = OLD.task_id AND notice = OLD.seq;
END;
CREATE TRIGGER notices_free AFTER DELETE ON notices BEGIN
  DELETE FROM reservations WHERE task_id = OLD.task AND notice = OLD.seq;
END;
";

/// Brings a database up to [`VERSION`], in one transaction.
pub(super) fn migrate(conn: &mut Connection) -> Result<(), Error> {
    let tx = conn.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    let version: u32 = tx.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if version > VERSION {
        return Err(Error::TooNew { found: version, known: VERSION });
    }
    if version < VERSION {
        for step in MIGRATIONS.iter().skip(version as usize) {
            tx.execute_batch(step)?;
        }
        tx.pragma_update(None, "application_id", APPLICATION_ID)?;
        tx.pragma_update(None, "user_version", VERSION)?;
    }
    Ok(tx.commit()?)
}

/// One number of `meta`.
pub(super) fn meta(conn: &Connection, name: &str) -> Result<i64, Error> {
    let mut query = conn.prepare_cached("SELECT value FROM meta WHERE name = ?1")?;
    Ok(query.query_row([name], |row| row.get(0))?)
}

/// Counts a task in (`1`) or out (`-1`) of the finished ones, with the bytes of output it keeps.
pub(super) fn count_finished(conn: &Connection, tasks: i64, bytes: i64) -> Result<(), Error> {
    let mut update = conn.prepare_cached("UPDATE meta SET value = value + ?2 WHERE name = ?1")?;
    update.execute(rusqlite::params!["finished", tasks])?;
    if bytes != 0 {
        update.execute(rusqlite::params!["finished_bytes", bytes])?;
    }
    Ok(())
}

/// Counts a hook in or out of the finished ones.
pub(super) fn count_hooks(conn: &Connection, hooks: i64) -> Result<(), Error> {
    conn.prepare_cached("UPDATE meta SET value = value + ?1 WHERE name = 'finished_hooks'")?
        .execute([hooks])?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_database_becomes_the_current_version_and_stays_it() {
        let mut conn = Connection::open_in_memory().unwrap();
        for _ in 0..2 {
            migrate(&mut conn).unwrap();
            let version: u32 = conn.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
            assert_eq!(version, VERSION);
            assert_eq!(meta(&conn, "finished"), Ok(0));
        }
    }

    #[test]
    fn a_newer_database_is_not_migrated() {
        let mut conn = Connection::open_in_memory().unwrap();
        conn.pragma_update(None, "user_version", VERSION + 1).unwrap();
        assert_eq!(migrate(&mut conn), Err(Error::TooNew { found: VERSION + 1, known: VERSION }));
    }
}
