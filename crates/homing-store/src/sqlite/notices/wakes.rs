//! Wakes: who may be woken now, what no longer wakes anybody, and what waits in the inbox instead.
//!
//! The budget is counted from rows: each hand-over leaves one in the transaction that makes it, and one that finds its session busy takes it
//! back in the transaction that ends it. So a daemon that dies neither forgets what was spent nor spends anything twice.

use homing_model::notice::Body;
use homing_model::notify::When;
use homing_model::operator::TargetKind;
use homing_model::reservation::{Access, Reader, State};
use homing_model::wake::{self, Budget, Room};
use homing_model::{Channel, DeliveryId, Notify, Target, TaskId, Timestamp};
use rusqlite::{Connection, OptionalExtension, params};

use crate::outbox::{Next, Terms};
use crate::sqlite::notices::claims;
use crate::sqlite::notices::deliveries;
use crate::sqlite::notices::publish;
use crate::sqlite::notices::reservations::{self, OfNotice};
use crate::sqlite::tasks::row;
use crate::store::Error;

/// Looked at in one go; what is beyond it is due again at once.
const STEP: u32 = 1_000;

/// A delivery that is due and would wake somebody.
struct Due {
    seq: i64,
    owner: String,
    task: String,
    notice: i64,
    created_at: Timestamp,
    /// Its owner has it: handed over otherwise, or acknowledged.
    known: bool,
    /// Somebody asked for it again, and so wants it whatever its age.
    again: bool,
    /// It is in no inbox.
    nowhere: bool,
    /// Until when somebody has it from the inbox, who may be about to tell it.
    taken_until: Option<Timestamp>,
}

/// Why a delivery waits: somebody has taken the entry out of the inbox, and acknowledges it or not.
const TAKEN: &str = "somebody has taken it from the inbox; it wakes if they do not acknowledge it";

/// Why a delivery waits: another wake of the same session has not ended.
const UNDER_WAY: &str = "another wake of the session is under way; what waits goes together after it";
/// It is looked at again after this long, in milliseconds.
const LOOK_MS: i64 = 1_000;

/// Before what is due of a channel that wakes is claimed: where it can only wake, ends what must not any more; holds the rest in the inbox
/// while the budget is spent. True if a claim may follow.
pub(in crate::sqlite) fn admit(
    conn: &Connection,
    channel: &Channel,
    terms: Terms,
    entropy: u64,
    now: Timestamp,
) -> Result<bool, Error> {
    let budget = terms.budget;
    let due = due(conn, channel, now)?;
    let looked_at = due.len();
    let mut waiting = Vec::new();
    let only_wakes = channel.kind().only_wakes();
    let waits = matches!(channel, Channel::Wake { .. }) && is_under_way(conn, channel)?;
    for due in due {
        if due.again || !only_wakes {
            waiting.push(due);
        } else if due.known {
            deliveries::end(conn, due.seq, Next::Superseded(wake::TOLD.to_owned()), now)?;
        } else if wake::expired(due.created_at, now) {
            stand_in(conn, &due)?;
            deliveries::end(conn, due.seq, Next::Dead(wake::EXPIRED.to_owned()), now)?;
        } else if let Some(until) = due.taken_until {
            hold(conn, due.seq, until, TAKEN)?;
        } else if waits {
            hold(conn, due.seq, now.plus_millis(LOOK_MS), UNDER_WAY)?;
        } else {
            waiting.push(due);
        }
    }
    if looked_at >= STEP as usize && waiting.len() < looked_at {
        // A claim would reach beyond what was looked at.
        return Ok(false);
    }
    let Some(first) = waiting.first() else { return Ok(true) };
    match budget.room(nth(conn, &first.owner, budget, now)?, now) {
        Room::Now => Ok(true),
        Room::Never => {
            for due in &waiting {
                stand_in(conn, due)?;
                deliveries::end(conn, due.seq, Next::Dead(wake::TURNED_OFF.to_owned()), now)?;
            }
            Ok(false)
        }
        Room::At(at) => {
            for due in &waiting {
                stand_in(conn, due)?;
                hold(conn, due.seq, at, &budget.spent())?;
            }
            if terms.at_most != When::Never {
                tell(conn, first, waiting.len() as u64, budget, at, entropy, now)?;
            }
            Ok(false)
        }
    }
}

/// Whether a wake of this channel was begun and has not ended.
fn is_under_way(conn: &Connection, channel: &Channel) -> Result<bool, Error> {
    let [kind, owner, to, folder] = channel.columns();
    let mut query = conn.prepare_cached(concat!(
        "SELECT EXISTS (SELECT 1 FROM deliveries INDEXED BY deliveries_pending WHERE state = 'pending' AND ",
        claims::of_channel!(),
        " AND held_until = ?5)",
    ))?;
    Ok(query.query_row(params![kind, owner, to, folder, claims::HANDED_OVER], |row| row.get(0))?)
}

/// Not before this time, and why.
fn hold(conn: &Connection, seq: i64, until: Timestamp, why: &str) -> Result<(), Error> {
    conn.prepare_cached("UPDATE deliveries SET next_at = ?2, reason = ?3, busy = 0 WHERE seq = ?1")?
        .execute(params![seq, until.as_millis(), why])?;
    Ok(())
}

fn due(conn: &Connection, channel: &Channel, now: Timestamp) -> Result<Vec<Due>, Error> {
    let [kind, owner, to, folder] = channel.columns();
    let mut query = conn.prepare_cached(concat!(
        "SELECT deliveries.seq, deliveries.owner, deliveries.task_id, notice_seq, created_at, again, coalesce(inboxed, 0) \
         FROM deliveries INDEXED BY deliveries_pending LEFT JOIN notices ON notices.seq = notice_seq \
         WHERE state = 'pending' AND ",
        claims::of_channel!(),
        " AND ",
        claims::ready!(),
        " ORDER BY max(next_at, coalesce(held_until, 0)), deliveries.seq LIMIT ?6",
    ))?;
    let mut rows = query.query(params![kind, owner, to, folder, now.as_millis(), STEP])?;
    let mut due = Vec::new();
    while let Some(row) = rows.next()? {
        let (owner, task, notice): (String, String, i64) = (row.get(1)?, row.get(2)?, row.get(3)?);
        let inboxed: i64 = row.get(6)?;
        let reservations = OfNotice::read(conn, &task, notice)?;
        due.push(Due {
            seq: row.get(0)?,
            created_at: Timestamp::from_millis(row.get(4)?),
            again: row.get(5)?,
            known: is_known(conn, &reservations, notice, inboxed)?,
            nowhere: inboxed == 0,
            taken_until: reservations.held_until(&owner, Access::Take, now),
            owner,
            task,
            notice,
        });
    }
    Ok(due)
}

/// Whether the owner has a notice: it was delivered some other way, or its entry was acknowledged.
fn is_known(conn: &Connection, reservations: &OfNotice, notice: i64, inboxed: i64) -> Result<bool, Error> {
    Ok(reservations.was_delivered() || (inboxed > 0 && !is_in_inbox(conn, notice)?))
}

pub(in crate::sqlite) fn is_in_inbox(conn: &Connection, notice: i64) -> Result<bool, Error> {
    let mut query =
        conn.prepare_cached("SELECT EXISTS (SELECT 1 FROM inbox INDEXED BY inbox_seq WHERE inbox.seq = ?1)")?;
    Ok(query.query_row([notice], |row| row.get(0))?)
}

/// When the hand-over was made that has to be an hour old before another fits.
fn nth(conn: &Connection, owner: &str, budget: Budget, now: Timestamp) -> Result<Option<Timestamp>, Error> {
    let Some(skipped) = budget.per_hour.checked_sub(1) else { return Ok(None) };
    let mut query = conn.prepare_cached(
        "SELECT at FROM wakes WHERE owner = ?1 AND at > ?2 AND at < ?3 ORDER BY at DESC LIMIT 1 OFFSET ?4",
    )?;
    let (from, to) = (now.plus_millis(-wake::WINDOW_MS), now.plus_millis(wake::WINDOW_MS));
    let at = query
        .query_row(params![owner, from.as_millis(), to.as_millis(), skipped], |row| row.get(0))
        .optional()?;
    Ok(at.map(Timestamp::from_millis))
}

/// An entry in the inbox for a notice that has none.
fn stand_in(conn: &Connection, due: &Due) -> Result<(), Error> {
    if !due.nowhere {
        return Ok(());
    }
    conn.prepare_cached(
        "INSERT OR IGNORE INTO inbox (owner, seq, id, task_id) SELECT ?1, seq, id, task FROM notices WHERE seq = ?2",
    )?
    .execute(params![due.owner, due.notice])?;
    conn.prepare_cached("UPDATE notices SET inboxed = 2 WHERE seq = ?1")?.execute([due.notice])?;
    Ok(())
}

/// Tells the owner that the budget is spent: once in a while, in the inbox and the log, and waking nobody.
fn tell(
    conn: &Connection,
    first: &Due,
    held_back: u64,
    budget: Budget,
    until: Timestamp,
    entropy: u64,
    now: Timestamp,
) -> Result<(), Error> {
    let told_at: Option<i64> = conn
        .prepare_cached("SELECT told_at FROM wake_pauses WHERE owner = ?1")?
        .query_row([&first.owner], |row| row.get(0))
        .optional()?;
    if !wake::tells(told_at.map(Timestamp::from_millis), now) {
        return Ok(());
    }
    let about = match first.task.parse::<TaskId>() {
        Ok(id) => row::by_id(conn, &id),
        Err(error) => Err(Error::BadRow { task: first.task.clone(), why: error.to_string() }),
    };
    let about = match about {
        Ok(Some(record)) => record,
        Ok(None) => return Ok(()),
        // What is held is held; that it cannot be said is no reason to stop.
        Err(error) => {
            tracing::error!(%error, "an owner could not be told that the budget of wakes is spent");
            return Ok(());
        }
    };
    let body = Body::WakePaused { per_hour: budget.per_hour, until, held_back };
    let inbox = Notify { on: When::Always, targets: vec![Target::Inbox], secret: None };
    publish::publish(conn, &about, body, now, Some(&inbox), entropy)?;
    conn.prepare_cached("INSERT OR REPLACE INTO wake_pauses (owner, told_at) VALUES (?1, ?2)")?
        .execute(params![first.owner, now.as_millis()])?;
    Ok(())
}

/// Whether there is room for one more hand-over.
pub(in crate::sqlite) fn has_room(
    conn: &Connection,
    owner: &str,
    budget: Budget,
    now: Timestamp,
) -> Result<bool, Error> {
    Ok(budget.room(nth(conn, owner, budget, now)?, now) == Room::Now)
}

/// A hand-over is made.
pub(in crate::sqlite) fn spend(
    conn: &Connection,
    owner: &str,
    hook: &TaskId,
    now: Timestamp,
) -> Result<(), Error> {
    conn.prepare_cached("INSERT OR IGNORE INTO wakes (owner, at, hook) VALUES (?1, ?2, ?3)")?
        .execute(params![owner, now.as_millis(), hook.as_str()])?;
    Ok(())
}

/// The session was busy: nothing is spent.
pub(in crate::sqlite) fn give_back(conn: &Connection, hook: &TaskId) -> Result<(), Error> {
    conn.prepare_cached("DELETE FROM wakes WHERE hook = ?1")?.execute([hook.as_str()])?;
    Ok(())
}

/// Ends what was claimed and must not wake any more, because its owner came to have it since. True if there was any.
pub(in crate::sqlite) fn end_known(
    conn: &Connection,
    claims: &[(DeliveryId, u64)],
    now: Timestamp,
) -> Result<bool, Error> {
    let mut query = conn.prepare_cached(
        "SELECT deliveries.seq, channel, deliveries.task_id, notice_seq, inboxed FROM deliveries JOIN notices ON notices.seq = notice_seq \
         WHERE deliveries.id = ?1 AND again = 0",
    )?;
    let mut any = false;
    for (id, _) in claims {
        let mut rows = query.query([id.as_str()])?;
        let Some(row) = rows.next()? else { continue };
        let (kind, task, notice): (String, String, i64) = (row.get(1)?, row.get(2)?, row.get(3)?);
        let only_wakes = TargetKind::parse(&kind).is_some_and(TargetKind::only_wakes);
        let reservations = OfNotice::read(conn, &task, notice)?;
        if only_wakes && is_known(conn, &reservations, notice, row.get(4)?)? {
            deliveries::end(conn, row.get(0)?, Next::Superseded(wake::TOLD.to_owned()), now)?;
            any = true;
        }
    }
    Ok(any)
}

/// Reserves the entries of what a wake is given, for as long as that may take. False if another reader holds one of them.
pub(in crate::sqlite) fn take(
    conn: &Connection,
    claims: &[(DeliveryId, u64)],
    hook: &TaskId,
    until: Timestamp,
    now: Timestamp,
) -> Result<bool, Error> {
    let mut query = conn.prepare_cached(
        "SELECT deliveries.task_id, notice_seq, deliveries.owner, again, inbox.owner \
         FROM deliveries LEFT JOIN inbox INDEXED BY inbox_seq ON inbox.seq = notice_seq WHERE deliveries.id = ?1",
    )?;
    let mut free = Vec::with_capacity(claims.len());
    for (id, _) in claims {
        let mut rows = query.query([id.as_str()])?;
        let Some(row) = rows.next()? else { continue };
        let (task, notice, owner): (String, i64, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let (again, reader): (bool, Option<String>) = (row.get(3)?, row.get(4)?);
        let reservations = OfNotice::read(conn, &task, notice)?;
        let held = |owner: &str| reservations.held_until(owner, Access::Take, now).is_some();
        if held(reader.as_deref().unwrap_or(&owner)) {
            // What another reader holds, and is asked for again all the same, stays theirs.
            if !again {
                return Ok(false);
            }
        } else if let Some(reader) = reader {
            free.push((task, notice, reader));
        }
    }
    let wake = State::Held(Reader::Wake(hook.clone()));
    for (task, notice, owner) in free {
        reservations::set(conn, (&task, notice), &owner, &wake, until)?;
    }
    Ok(true)
}

/// The session was woken with what a hook was given. A wake acknowledges it; a command only what was in the inbox for want of it.
pub(in crate::sqlite) fn woken(conn: &Connection, hook: &TaskId, acknowledges: bool) -> Result<(), Error> {
    conn.prepare_cached(
        "DELETE FROM inbox WHERE seq IN (SELECT notices.seq FROM deliveries INDEXED BY deliveries_hook \
         JOIN notices ON notices.seq = notice_seq \
         WHERE hook = ?1 AND hook IS NOT NULL AND state = 'delivered' AND (?2 OR inboxed = 2))",
    )?
    .execute(params![hook.as_str(), acknowledges])?;
    Ok(())
}

/// Nobody asks for the end of a task any more: a wake that waited for that is due.
pub(in crate::sqlite) fn go_on(conn: &Connection, task: &TaskId, now: Timestamp) -> Result<(), Error> {
    conn.prepare_cached(
        "UPDATE deliveries INDEXED BY deliveries_notice SET next_at = ?2 WHERE state = 'pending' AND held_until IS NULL AND reason = ?3 \
         AND next_at > ?2 AND notice_seq = (SELECT ended_seq FROM tasks WHERE id = ?1)",
    )?
    .execute(params![task.as_str(), now.as_millis(), TAKEN])?;
    Ok(())
}

/// Makes deliveries due that wait because another budget is spent, so that this one decides.
pub(in crate::sqlite) fn apply_budget(
    conn: &Connection,
    budget: Budget,
    now: Timestamp,
) -> Result<u64, Error> {
    let changed = conn
        .prepare_cached(
            "UPDATE deliveries INDEXED BY deliveries_state SET next_at = ?1, reason = NULL \
             WHERE state = 'pending' AND coalesce(held_until, 0) <= ?1 AND next_at > ?1 \
             AND substr(reason, 1, length(?2)) = ?2 AND reason <> ?3",
        )?
        .execute(params![now.as_millis(), wake::SPENT, budget.spent()])?;
    Ok(changed as u64)
}

/// Drops what no longer counts.
pub(in crate::sqlite) fn trim(conn: &Connection, now: Timestamp) -> Result<(), Error> {
    let cutoff = now.plus_millis(-wake::WINDOW_MS).as_millis();
    conn.prepare_cached("DELETE FROM wakes WHERE at <= ?1")?.execute([cutoff])?;
    conn.prepare_cached("DELETE FROM wake_pauses WHERE told_at <= ?1")?.execute([cutoff])?;
    Ok(())
}
