//! What becomes of a delivery: settled under the fence of its claim, given up, sent again, listed.

use homing_model::counts::DeliveryCounts;
use homing_model::operator::{self, TargetKind};
use homing_model::{Delivery, DeliveryId, DeliveryState, EventKind, TaskId, Timestamp, Tried, wake};
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde_json::json;

use crate::outbox::{DeliveryFilter, DeliveryPage, Next, Redeliver, Redelivered, Settled};
use crate::sqlite::notices::claims::HANDED_OVER;
use crate::sqlite::notices::events;
use crate::sqlite::notices::reservations::OfNotice;
use crate::sqlite::notices::wakes;
use crate::sqlite::tasks::row;
use crate::store::Error;

/// A pending delivery, by what follows.
macro_rules! pending {
    () => {
        "SELECT seq, id, task_id, owner, shown, attempts, history, notice_id FROM deliveries WHERE state = 'pending' AND "
    };
}

/// What came of an attempt. False if the claim was no longer the caller's.
pub(in crate::sqlite) fn settle(
    conn: &Connection,
    delivery: &DeliveryId,
    fence: u64,
    settled: Settled,
    now: Timestamp,
) -> Result<bool, Error> {
    let mut query = conn.prepare_cached(concat!(pending!(), "id = ?1 AND fence = ?2"))?;
    let found = query.query_row(params![delivery.as_str(), row::signed(fence)], Pending::read).optional()?;
    let Some(pending) = found else { return Ok(false) };
    conclude(conn, pending, settled, now)?;
    Ok(true)
}

/// Ends a pending delivery by its place, without an attempt. A claim on it settles nothing any more.
pub(in crate::sqlite) fn end(conn: &Connection, seq: i64, next: Next, now: Timestamp) -> Result<(), Error> {
    conn.prepare_cached("UPDATE deliveries SET fence = fence + 1 WHERE seq = ?1")?.execute([seq])?;
    let mut query = conn.prepare_cached(concat!(pending!(), "seq = ?1"))?;
    let Some(pending) = query.query_row([seq], Pending::read).optional()? else { return Ok(()) };
    conclude(conn, pending, Settled { tried: None, next }, now)
}

/// A pending delivery, as far as settling it needs to know. Nothing of it is understood, so that a damaged one can be settled too.
struct Pending {
    seq: i64,
    id: String,
    task: String,
    owner: String,
    shown: String,
    attempts: u32,
    history: String,
    notice: String,
}

impl Pending {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            seq: row.get(0)?,
            id: row.get(1)?,
            task: row.get(2)?,
            owner: row.get(3)?,
            shown: row.get(4)?,
            attempts: row.get(5)?,
            history: row.get(6)?,
            notice: row.get(7)?,
        })
    }
}

fn conclude(conn: &Connection, pending: Pending, settled: Settled, now: Timestamp) -> Result<(), Error> {
    let Pending { seq, id, task, owner, shown, attempts, history, notice } = pending;
    let mut history: Vec<Tried> = serde_json::from_str(&history).unwrap_or_default();
    let counts = settled.tried.is_some();
    let attempts = attempts.saturating_add(u32::from(counts));
    history.extend(settled.tried);
    let (state, next_at, ended_at, reason) = match settled.next {
        Next::Delivered => (DeliveryState::Delivered, now, Some(now), None),
        Next::At(at) => (DeliveryState::Pending, at, None, None),
        Next::Superseded(reason) => (DeliveryState::Superseded, now, Some(now), Some(reason)),
        Next::Dead(reason) => (DeliveryState::Dead, now, Some(now), Some(reason)),
    };
    conn.prepare_cached(
        "UPDATE deliveries SET state = ?2, attempts = ?3, next_at = ?4, ended_at = ?5, reason = ?6, history = ?7, \
         held_until = NULL, busy = CASE WHEN ?8 THEN 0 ELSE busy + 1 END WHERE seq = ?1",
    )?
    .execute(params![
        seq,
        state.as_str(),
        attempts,
        next_at.as_millis(),
        ended_at.map(Timestamp::as_millis),
        reason,
        json!(history).to_string(),
        counts,
    ])?;
    let kind = match state {
        DeliveryState::Pending => return Ok(()),
        DeliveryState::Delivered => EventKind::DeliveryDelivered,
        DeliveryState::Superseded => EventKind::DeliverySuperseded,
        DeliveryState::Dead => EventKind::DeliveryDead,
    };
    let data = json!({
        "delivery_id": id, "notice_id": notice, "target": shown, "attempts": attempts, "reason": reason,
    });
    events::insert(conn, kind, now, Some((&task, &owner)), &data)?;
    Ok(())
}

/// Gives up what is pending, and not under way, to targets of these kinds.
pub(in crate::sqlite) fn give_up(
    conn: &Connection,
    kinds: &[TargetKind],
    limit: u32,
    now: Timestamp,
) -> Result<u64, Error> {
    let mut query = conn.prepare_cached(
        "SELECT seq, channel FROM deliveries INDEXED BY deliveries_state \
         WHERE state = 'pending' AND (held_until IS NULL OR held_until <= ?1) ORDER BY seq",
    )?;
    let mut rows = query.query([now.as_millis()])?;
    let mut closed = Vec::new();
    while closed.len() < limit as usize
        && let Some(row) = rows.next()?
    {
        if let Some(kind) = TargetKind::parse(&row.get::<_, String>(1)?).filter(|kind| kinds.contains(kind)) {
            closed.push((row.get::<_, i64>(0)?, kind));
        }
    }
    drop(rows);
    for (seq, kind) in &closed {
        end(conn, *seq, Next::Dead(operator::Policy::given_up(*kind)), now)?;
    }
    Ok(closed.len() as u64)
}

/// Deliveries, newest first, and where the next page begins.
pub(in crate::sqlite) fn list(conn: &Connection, filter: &DeliveryFilter) -> Result<DeliveryPage, Error> {
    // Only what is asked for is in the question, so that it finds its index.
    let asked: String = [
        (filter.state.is_some(), "state = ?1 AND "),
        (filter.task.is_some(), "task_id = ?2 AND "),
        (filter.owner.is_some(), "owner = ?3 AND "),
        (filter.hook.is_some(), "hook = ?4 AND hook IS NOT NULL AND "),
    ]
    .into_iter()
    .filter_map(|(is_asked, condition)| is_asked.then_some(condition))
    .collect();
    let mut query = conn.prepare_cached(&format!(
        "SELECT d.seq, d.id, notice_id, task_id, owner, shown, state, attempts, created_at, next_at, ended_at, reason, history, hook, \
         CASE WHEN json_valid(body) THEN json_extract(body, '$.type') END \
         FROM deliveries AS d LEFT JOIN notices ON notices.seq = notice_seq \
         WHERE {asked}d.seq < coalesce(?5, 9223372036854775807) ORDER BY d.seq DESC LIMIT ?6"
    ))?;
    let mut rows = query.query(params![
        filter.state.map(DeliveryState::as_str),
        filter.task.as_ref().map(TaskId::as_str),
        filter.owner,
        filter.hook.as_ref().map(TaskId::as_str),
        filter.before.map(row::signed),
        filter.limit.saturating_add(1),
    ])?;
    let mut page = DeliveryPage::default();
    let (mut looked_at, mut last, mut bytes) = (0, None, 0);
    while let Some(row) = rows.next()? {
        if looked_at == filter.limit || bytes >= events::PAGE_BYTES {
            // One more than was asked for: there is another page, whatever of this one could be read.
            page.next = last;
            break;
        }
        looked_at += 1;
        bytes += row::bytes(row)?;
        let seq = row::unsigned(row.get(0)?);
        last = Some(seq);
        match read(row) {
            Ok(delivery) => page.items.push(delivery),
            Err(why) => tracing::error!(delivery = seq, %why, "a delivery could not be read"),
        }
    }
    Ok(page)
}

fn read(row: &Row<'_>) -> Result<Delivery, Box<dyn std::error::Error>> {
    let text = |column| row.get::<_, String>(column);
    let state: DeliveryState = text(6)?.parse()?;
    let created_at = Timestamp::from_millis(row.get(8)?);
    // The first attempt is due from the beginning, whatever that is by the clock.
    let next_at = Timestamp::from_millis(row.get(9)?).max(created_at);
    Ok(Delivery {
        id: text(1)?.parse()?,
        notice_id: text(2)?.parse()?,
        notice_type: row.get(14).unwrap_or_default(),
        task_id: text(3)?.parse()?,
        owner: text(4)?,
        target: text(5)?,
        state,
        attempts: row.get(7)?,
        created_at,
        next_at: (state == DeliveryState::Pending).then_some(next_at),
        ended_at: row.get::<_, Option<i64>>(10)?.map(Timestamp::from_millis),
        reason: row.get(11)?,
        history: serde_json::from_str(&text(12)?).unwrap_or_default(),
        hook: row.get::<_, Option<String>>(13)?.map(|id| id.parse()).transpose()?,
    })
}

/// Whether the owner has a notice. One whose delivery expired, because nothing confirmed it, is back in the inbox and not known.
fn is_known(conn: &Connection, task: &str, notice: i64, inboxed: i64, now: Timestamp) -> Result<bool, Error> {
    let reservations = OfNotice::read(conn, task, notice)?;
    Ok(match wakes::is_in_inbox(conn, notice)? {
        true => reservations.is_delivered(now),
        false => inboxed > 0 || reservations.was_delivered(),
    })
}

/// Makes deliveries pending and due, and their schedule begin anew. A superseded one, and a wake
/// whose owner has the notice by now, only if it is named by its id. The attempts and their history
/// stay. What a command has is due once that has ended.
pub(in crate::sqlite) fn redeliver(
    conn: &Connection,
    which: &Redeliver,
    closed: &[TargetKind],
    now: Timestamp,
) -> Result<Redelivered, Error> {
    let (column, value) = match which {
        Redeliver::Delivery(id) => ("id", id.as_str()),
        Redeliver::Task(id) => ("task_id", id.as_str()),
        Redeliver::State(state) => ("state", state.as_str()),
    };
    let mut query = conn.prepare_cached(&format!(
        "SELECT deliveries.seq, deliveries.id, channel, state, state IN ('dead', 'pending') AND held_until IS NOT ?2, \
         deliveries.task_id, notice_seq, coalesce(inboxed, 0) \
         FROM deliveries LEFT JOIN notices ON notices.seq = notice_seq WHERE deliveries.{column} = ?1 ORDER BY deliveries.seq"
    ))?;
    let mut found = query.query(params![value, HANDED_OVER])?;
    let mut rows: Vec<(i64, String, String, String, bool)> = Vec::new();
    while let Some(row) = found.next()? {
        let (idle, notice): (bool, i64) = (row.get(4)?, row.get(6)?);
        let known = idle && is_known(conn, &row.get::<_, String>(5)?, notice, row.get(7)?, now)?;
        rows.push((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, known));
    }
    drop(found);
    // The fence moves on: an attempt that is still under way settles nothing.
    let mut begin = conn.prepare_cached(
        "UPDATE deliveries SET state = 'pending', earlier = attempts, busy = 0, said = 0, next_at = ?2, ended_at = NULL, reason = NULL, \
         held_until = CASE WHEN state = 'pending' AND held_until = ?3 THEN held_until END, \
         again = CASE WHEN state = 'pending' AND held_until = ?3 THEN 2 ELSE 1 END, fence = fence + 1 WHERE seq = ?1",
    )?;
    let mut redelivered = Redelivered::default();
    for (seq, id, kind, state, known) in rows {
        let Ok(id) = id.parse::<DeliveryId>() else { continue };
        let kind = TargetKind::parse(&kind);
        if !matches!(which, Redeliver::Delivery(_)) {
            let known = known && kind.is_some_and(TargetKind::only_wakes);
            if known {
                begin.execute(params![seq, now.as_millis(), HANDED_OVER])?;
                end(conn, seq, Next::Superseded(wake::TOLD.to_owned()), now)?;
            }
            if known || state == DeliveryState::Superseded.as_str() {
                redelivered.superseded.push(id);
                continue;
            }
        }
        match kind.filter(|kind| closed.contains(kind)) {
            Some(kind) => redelivered.closed.push((id, kind)),
            None => {
                begin.execute(params![seq, now.as_millis(), HANDED_OVER])?;
                redelivered.due.push(id);
            }
        }
    }
    Ok(redelivered)
}

/// How many are pending, were given up, or were not needed.
pub(in crate::sqlite) fn counts(conn: &Connection) -> Result<DeliveryCounts, Error> {
    let mut query =
        conn.prepare_cached("SELECT count(*) FROM deliveries INDEXED BY deliveries_state WHERE state = ?1")?;
    let mut count =
        |state: DeliveryState| query.query_row([state.as_str()], |row| row.get(0)).map(row::unsigned);
    Ok(DeliveryCounts {
        pending: count(DeliveryState::Pending)?,
        dead: count(DeliveryState::Dead)?,
        superseded: count(DeliveryState::Superseded)?,
    })
}

/// Drops deliveries that ended before `cutoff`, at most `limit`; answers how many.
pub(in crate::sqlite) fn trim(conn: &Connection, cutoff: Timestamp, limit: u32) -> Result<usize, Error> {
    let mut delete = conn.prepare_cached(
        "DELETE FROM deliveries WHERE seq IN (SELECT seq FROM deliveries INDEXED BY deliveries_ended \
         WHERE ended_at IS NOT NULL AND ended_at <= ?1 ORDER BY ended_at LIMIT ?2)",
    )?;
    Ok(delete.execute(params![cutoff.as_millis(), limit])?)
}
