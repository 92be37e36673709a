//! The table of reservations: rows in, rows out. What they mean is decided by [`homing_model::reservation`].
//!
//! A waiter reserves the end of a task before it is there: its row names no notice until the
//! transaction that ends the task writes it in. Rows of waiters go by the clock, all others with their
//! entry or their notice: a delivery that expired still says that no wake has to follow.

use homing_model::reservation::{
    self, Access, ConfirmedBy, Confirmer, Event, Next, Reader, Recipient, Reservation, State,
};
use homing_model::{TaskId, Timestamp};
use rusqlite::{Connection, Params, params};

use crate::reservation::{Handed, Waiter};
use crate::sqlite::notices::wakes;
use crate::store::Error;

/// The notice of a task that has not ended.
const NOT_ENDED: i64 = 0;

/// The call of the wait that a submit announces; the first that comes takes its place.
const ANNOUNCED: u64 = 0;

/// A reservation of a notice.
#[derive(Debug)]
pub(in crate::sqlite) struct Row {
    task: String,
    notice: i64,
    owner: String,
    reservation: Reservation,
}

/// All reservations of one notice.
#[derive(Debug)]
pub(in crate::sqlite) struct OfNotice(Vec<Row>);

impl OfNotice {
    pub(in crate::sqlite) fn read(conn: &Connection, task: &str, notice: i64) -> Result<Self, Error> {
        read(conn, "task_id = ?1 AND notice = ?2", params![task, notice]).map(Self)
    }

    /// Until when they keep the owner's readers from it.
    pub(in crate::sqlite) fn held_until(
        &self,
        owner: &str,
        access: Access,
        now: Timestamp,
    ) -> Option<Timestamp> {
        let own = self.0.iter().filter(|row| row.owner == owner);
        reservation::held_until(own.map(|row| &row.reservation), access, now)
    }

    /// Whether its owner was handed it, even if that expired.
    pub(in crate::sqlite) fn was_delivered(&self) -> bool {
        self.0.iter().any(|row| row.reservation.is_delivery())
    }

    /// Whether its owner was handed it and may still confirm it.
    pub(in crate::sqlite) fn is_delivered(&self, now: Timestamp) -> bool {
        self.0.iter().any(|row| row.reservation.is_delivery() && row.reservation.is_live(now))
    }

    /// Whether a reader took it, or it was delivered, and that has not expired.
    pub(in crate::sqlite) fn is_taken(&self, now: Timestamp) -> bool {
        let takes = |state: &State| !matches!(state, State::Held(Reader::Poller | Reader::Waiter(_)));
        self.0.iter().any(|row| takes(&row.reservation.state) && row.reservation.is_live(now))
    }
}

/// Who holds it, as it is written: the kind of reader, and which one where there may be several.
fn names(state: &State) -> (&'static str, String) {
    match state {
        State::Held(Reader::Waiter(call)) => ("waiter", call.to_string()),
        State::Held(Reader::Poller) => ("poller", String::new()),
        State::Held(Reader::Taker) => ("taker", String::new()),
        State::Held(Reader::Wake(hook)) => ("wake", hook.to_string()),
        State::Delivered(to) => ("owner", to.inside.as_ref().map_or_else(String::new, TaskId::to_string)),
    }
}

fn state(reader: &str, holder: &str, confirmed_by: Option<&str>, bound: bool) -> Option<State> {
    Some(match reader {
        "waiter" => State::Held(Reader::Waiter(holder.parse().ok()?)),
        "poller" => State::Held(Reader::Poller),
        "taker" => State::Held(Reader::Taker),
        "wake" => State::Held(Reader::Wake(holder.parse().ok()?)),
        "owner" => {
            let confirmed_by = confirmed_by?.parse().ok()?;
            State::Delivered(Recipient { confirmed_by, bound, inside: holder.parse().ok() })
        }
        _ => return None,
    })
}

/// One that cannot be read holds nothing.
fn read(conn: &Connection, which: &str, values: impl Params) -> Result<Vec<Row>, Error> {
    let mut query = conn.prepare_cached(&format!(
        "SELECT task_id, notice, owner, reader, holder, confirmed_by, bound, until FROM reservations WHERE {which}"
    ))?;
    let mut found = query.query(values)?;
    let mut rows = Vec::new();
    while let Some(row) = found.next()? {
        let (reader, holder): (String, String) = (row.get(3)?, row.get(4)?);
        let confirmed_by: Option<String> = row.get(5)?;
        let Some(state) = state(&reader, &holder, confirmed_by.as_deref(), row.get(6)?) else { continue };
        let until = Timestamp::from_millis(row.get(7)?);
        rows.push(Row {
            task: row.get(0)?,
            notice: row.get(1)?,
            owner: row.get(2)?,
            reservation: Reservation { state, until },
        });
    }
    Ok(rows)
}

/// Writes one, in place of an earlier one of the same holder.
pub(in crate::sqlite) fn set(
    conn: &Connection,
    (task, notice): (&str, i64),
    owner: &str,
    state: &State,
    until: Timestamp,
) -> Result<(), Error> {
    let (reader, holder) = names(state);
    let (confirmed_by, bound) = match state {
        State::Held(_) => (None, false),
        State::Delivered(to) => (Some(to.confirmed_by.as_str()), to.bound),
    };
    conn.prepare_cached(
        "INSERT OR REPLACE INTO reservations (task_id, notice, owner, reader, holder, confirmed_by, bound, until) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    )?
    .execute(params![task, notice, owner, reader, holder, confirmed_by, bound, until.as_millis()])?;
    Ok(())
}

/// Applies what happened to these; true if that changed any.
fn apply(conn: &Connection, rows: &[Row], event: &Event, now: Timestamp) -> Result<bool, Error> {
    let mut changed = false;
    for Row { task, notice, owner, reservation } in rows {
        let (reader, holder) = names(&reservation.state);
        let change = match reservation.on(event, now) {
            Next::Unchanged => continue,
            Next::Expired if reader == "waiter" => "DELETE FROM reservations",
            Next::Expired => "UPDATE reservations SET until = 0",
            Next::Bound => "UPDATE reservations SET bound = 1",
            Next::Acknowledged => {
                conn.prepare_cached("DELETE FROM inbox WHERE owner = ?1 AND seq = ?2")?
                    .execute(params![owner, notice])?;
                continue;
            }
        };
        changed = true;
        conn.prepare_cached(&format!(
            "{change} WHERE task_id = ?1 AND notice = ?2 AND reader = ?3 AND holder = ?4"
        ))?
        .execute(params![task, notice, reader, holder])?;
    }
    Ok(changed)
}

/// The owner waits for the ends of those of these tasks that are its own; a second time with the same call, for longer.
pub(in crate::sqlite) fn reserve(conn: &Connection, waiter: &Waiter, now: Timestamp) -> Result<(), Error> {
    let Waiter { owner, tasks, call, until } = waiter;
    trim(conn, now)?;
    let mut ended =
        conn.prepare_cached("SELECT coalesce(ended_seq, ?3) FROM tasks WHERE id = ?1 AND owner = ?2")?;
    for task in tasks {
        let mut own = ended.query(params![task.as_str(), owner, NOT_ENDED])?;
        let Some(notice) = own.next()?.map(|row| row.get(0)).transpose()? else { continue };
        set(conn, (task.as_str(), notice), owner, &State::Held(Reader::Waiter(*call)), *until)?;
        close(conn, task, ANNOUNCED, now)?;
    }
    Ok(())
}

/// The caller of this submit will wait for the end.
pub(in crate::sqlite) fn announce(
    conn: &Connection,
    owner: &str,
    task: &TaskId,
    until: Timestamp,
) -> Result<(), Error> {
    let waiter = State::Held(Reader::Waiter(ANNOUNCED));
    set(conn, (task.as_str(), NOT_ENDED), owner, &waiter, until)
}

/// The end of a task has become this notice.
pub(in crate::sqlite) fn ended(conn: &Connection, task: &TaskId, notice: i64) -> Result<(), Error> {
    conn.prepare_cached("UPDATE reservations SET notice = ?2 WHERE task_id = ?1 AND notice = ?3")?
        .execute(params![task.as_str(), notice, NOT_ENDED])?;
    Ok(())
}

/// A waiter has its answer, which delivered the ends of these tasks, or is given up.
pub(in crate::sqlite) fn release(
    conn: &Connection,
    waiter: &Waiter,
    delivered: Option<&(Vec<TaskId>, Handed)>,
    now: Timestamp,
) -> Result<(), Error> {
    let mut end = conn.prepare_cached(
        "SELECT ended_seq FROM tasks WHERE id = ?1 AND owner = ?2 AND (EXISTS (SELECT 1 FROM inbox WHERE owner = ?2 AND seq = ended_seq) \
         OR EXISTS (SELECT 1 FROM deliveries INDEXED BY deliveries_notice WHERE notice_seq = ended_seq))",
    )?;
    for (task, handed) in
        delivered.iter().flat_map(|(tasks, handed)| tasks.iter().map(move |task| (task, handed)))
    {
        let mut found = end.query(params![task.as_str(), waiter.owner])?;
        if let Some(row) = found.next()? {
            deliver(conn, (task.as_str(), row.get(0)?), &waiter.owner, handed, now)?;
        }
    }
    for task in &waiter.tasks {
        if close(conn, task, waiter.call, now)? {
            wakes::go_on(conn, task, now)?;
        }
    }
    Ok(())
}

/// True if the call had reserved the task's end.
fn close(conn: &Connection, task: &TaskId, call: u64, now: Timestamp) -> Result<bool, Error> {
    let waiter = Reader::Waiter(call);
    let rows = read(
        conn,
        "task_id = ?1 AND reader = 'waiter' AND holder = ?2",
        params![task.as_str(), call.to_string()],
    )?;
    apply(conn, &rows, &Event::Released(waiter), now)
}

/// The owner was handed a notice.
pub(in crate::sqlite) fn deliver(
    conn: &Connection,
    notice: (&str, i64),
    owner: &str,
    handed: &Handed,
    now: Timestamp,
) -> Result<(), Error> {
    apply(conn, &OfNotice::read(conn, notice.0, notice.1)?.0, &Event::Delivered, now)?;
    set(conn, notice, owner, &State::Delivered(handed.to.clone()), handed.until)
}

/// A wake came to nothing: what it held is free again.
pub(in crate::sqlite) fn release_wake(conn: &Connection, hook: &TaskId, now: Timestamp) -> Result<(), Error> {
    let rows = read(
        conn,
        "reader = 'wake' AND holder = ?1 AND (task_id, notice) IN (SELECT task_id, notice_seq FROM deliveries INDEXED BY deliveries_hook \
         WHERE hook = ?1 AND hook IS NOT NULL AND state <> 'delivered')",
        [hook.as_str()],
    )?;
    apply(conn, &rows, &Event::Released(Reader::Wake(hook.clone())), now).map(drop)
}

/// What was delivered to an owner.
fn delivered_to(conn: &Connection, owner: &str) -> Result<Vec<Row>, Error> {
    read(conn, "reader = 'owner' AND owner = ?1", [owner])
}

/// What was delivered is confirmed, as far as this proves it.
pub(in crate::sqlite) fn confirm(
    conn: &Connection,
    confirmer: &Confirmer,
    by: ConfirmedBy,
    now: Timestamp,
) -> Result<(), Error> {
    let (rows, event) = match confirmer {
        Confirmer::Owner(owner) => (delivered_to(conn, owner)?, Event::Confirmed(by)),
        Confirmer::Inside(task) => (
            read(conn, "reader = 'owner' AND holder <> '' AND holder = ?1", [task.as_str()])?,
            Event::ConfirmedInside(task.clone()),
        ),
    };
    apply(conn, &rows, &event, now).map(drop)
}

/// Whose next call confirms something, and until when.
pub(in crate::sqlite) fn unconfirmed(
    conn: &Connection,
    now: Timestamp,
) -> Result<Vec<(Confirmer, Timestamp)>, Error> {
    let mut open = Vec::new();
    for row in read(conn, "reader = 'owner' AND until > ?1 ORDER BY owner", [now.as_millis()])? {
        if let State::Delivered(to) = row.reservation.state {
            open.extend(to.inside.map(|task| (Confirmer::Inside(task), row.reservation.until)));
            open.push((Confirmer::Owner(row.owner), row.reservation.until));
        }
    }
    Ok(open)
}

/// The process that a session was in is gone, or a hook named the one that it is in.
pub(in crate::sqlite) fn recipient(
    conn: &Connection,
    owner: &str,
    event: &Event,
    now: Timestamp,
) -> Result<(), Error> {
    apply(conn, &delivered_to(conn, owner)?, event, now).map(drop)
}

/// What the owner's client polled for is held for it once more.
pub(in crate::sqlite) fn hold_polled(conn: &Connection, owner: &str, until: Timestamp) -> Result<(), Error> {
    conn.prepare_cached("UPDATE reservations SET until = ?2 WHERE reader = 'poller' AND owner = ?1")?
        .execute(params![owner, until.as_millis()])?;
    Ok(())
}

/// Drops the waiters that are over.
pub(in crate::sqlite) fn trim(conn: &Connection, now: Timestamp) -> Result<(), Error> {
    conn.prepare_cached(
        "DELETE FROM reservations INDEXED BY reservations_waiters WHERE reader = 'waiter' AND until <= ?1",
    )?
    .execute([now.as_millis()])?;
    Ok(())
}
