//! Notices on their way to a target: claimed under a lease, settled by whoever still holds it.

use homing_model::api::DeliveryCounts;
use homing_model::notify::SigningKey;
use homing_model::schedule::{self, Tries, Verdict};
use homing_model::{Delivery, DeliveryId, DeliveryState, EventKind, Target, TaskId, Timestamp, Tried};
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde_json::json;

use super::{events, row, submit};
use crate::outbox::{Claimed, DeliveryFilter, Next, Redeliver, Settled};
use crate::record::{NewTask, Record};
use crate::store::Error;

/// When a pending delivery is next due, as the index has it.
macro_rules! due_at {
    () => {
        "max(next_at, coalesce(held_until, 0))"
    };
}

/// Held until the command that has it ends: no clock gives it back.
const HANDED_OVER: i64 = i64::MAX;

/// Channels with a delivery that is due, and the next moment at which there will be one.
pub(super) fn due(conn: &Connection, now: Timestamp) -> Result<(Vec<String>, Option<Timestamp>), Error> {
    // From channel to channel along the index: a long queue behind one of them costs nothing.
    let mut query = conn.prepare_cached(concat!(
        "WITH RECURSIVE heads (channel) AS (\
           SELECT min(channel) FROM deliveries INDEXED BY deliveries_pending WHERE state = 'pending' \
           UNION ALL \
           SELECT (SELECT min(channel) FROM deliveries INDEXED BY deliveries_pending \
                   WHERE state = 'pending' AND channel > heads.channel) FROM heads WHERE heads.channel IS NOT NULL) \
         SELECT channel, (SELECT min(",
        due_at!(),
        ") FROM deliveries AS d INDEXED BY deliveries_pending WHERE d.state = 'pending' AND d.channel = heads.channel) \
         FROM heads WHERE channel IS NOT NULL",
    ))?;
    let mut rows = query.query([])?;
    let (mut channels, mut next) = (Vec::new(), None);
    while let Some(row) = rows.next()? {
        let at: i64 = row.get(1)?;
        if at <= now.as_millis() {
            channels.push(row.get(0)?);
        } else {
            next = Some(next.map_or(at, |next: i64| next.min(at))).filter(|next| *next != HANDED_OVER);
        }
    }
    Ok((channels, next.map(Timestamp::from_millis)))
}

/// Claims due deliveries of one channel.
pub(super) fn claim(
    conn: &Connection,
    channel: &str,
    limit: u32,
    until: Timestamp,
    now: Timestamp,
) -> Result<Vec<Claimed>, Error> {
    let mut query = conn.prepare_cached(concat!(
        "SELECT deliveries.seq, deliveries.id, fence, notice_id, task_id, owner, target, secret, attempts, created_at, body, busy \
         FROM deliveries INDEXED BY deliveries_pending LEFT JOIN notices ON notices.seq = notice_seq \
         WHERE state = 'pending' AND channel = ?1 AND ",
        due_at!(),
        " <= ?2 ORDER BY ",
        due_at!(),
        ", deliveries.seq LIMIT ?3",
    ))?;
    let mut rows = query.query(params![channel, now.as_millis(), limit])?;
    let (mut claimed, mut broken) = (Vec::new(), Vec::new());
    while let Some(row) = rows.next()? {
        let seq: i64 = row.get(0)?;
        match read_claim(row) {
            Ok(claim) => claimed.push((seq, claim)),
            Err(why) => broken.push((seq, why)),
        }
    }
    drop(rows);
    for (seq, why) in broken {
        // A row that makes no sense is given up, and the queue behind it goes on.
        tracing::error!(delivery = seq, why, "a delivery could not be read");
        conn.prepare_cached(
            "UPDATE deliveries SET state = 'dead', ended_at = ?2, reason = ?3 WHERE seq = ?1",
        )?
        .execute(params![seq, now.as_millis(), format!("its row is damaged: {why}")])?;
    }
    let mut hold =
        conn.prepare_cached("UPDATE deliveries SET held_until = ?2, fence = fence + 1 WHERE seq = ?1")?;
    for (seq, claim) in &mut claimed {
        hold.execute(params![*seq, until.as_millis()])?;
        claim.fence += 1;
    }
    Ok(claimed.into_iter().map(|(_, claim)| claim).collect())
}

fn read_claim(row: &Row<'_>) -> Result<Claimed, String> {
    fn text(error: impl std::fmt::Display) -> String {
        error.to_string()
    }
    let parsed = |column| row.get::<_, String>(column).map_err(text);
    Ok(Claimed {
        id: parsed(1)?.parse().map_err(text)?,
        fence: row::unsigned(row.get(2).map_err(text)?),
        notice_id: parsed(3)?.parse().map_err(text)?,
        task_id: parsed(4)?.parse().map_err(text)?,
        owner: parsed(5)?,
        target: parsed(6)?.parse().map_err(text)?,
        secret: row.get::<_, Option<String>>(7).map_err(text)?.map(SigningKey::new),
        attempts: row.get(8).map_err(text)?,
        created_at: Timestamp::from_millis(row.get(9).map_err(text)?),
        busy: row.get(11).map_err(text)?,
        notice: row.get::<_, Option<String>>(10).map_err(text)?.ok_or("its notice is gone")?,
    })
}

/// Nobody holds anything any more.
pub(super) fn release(conn: &Connection) -> Result<(), Error> {
    conn.prepare_cached(
        "UPDATE deliveries SET held_until = NULL, fence = fence + 1 \
         WHERE state = 'pending' AND held_until IS NOT NULL AND held_until < ?1",
    )?
    .execute([HANDED_OVER])?;
    Ok(())
}

/// Gives claimed deliveries to a command: from here on its end decides, whoever is there to see it. `None`, and nothing is changed, if one
/// of the claims is no longer the caller's or the id was used before.
pub(super) fn hand_over(
    conn: &Connection,
    claims: &[(DeliveryId, u64)],
    hook: NewTask,
    now: Timestamp,
) -> Result<Option<Record>, Error> {
    if submit::was_issued(conn, &hook.id)? {
        return Ok(None);
    }
    let mut give = conn.prepare_cached(
        "UPDATE deliveries SET hook = ?3, held_until = ?4 WHERE id = ?1 AND fence = ?2 AND state = 'pending'",
    )?;
    let mut ours = conn.prepare_cached(
        "SELECT EXISTS (SELECT 1 FROM deliveries WHERE id = ?1 AND fence = ?2 AND state = 'pending')",
    )?;
    for (id, fence) in claims {
        if !ours.query_row(params![id.as_str(), row::signed(*fence)], |row| row.get::<_, bool>(0))? {
            return Ok(None);
        }
    }
    for (id, fence) in claims {
        give.execute(params![id.as_str(), row::signed(*fence), hook.id.as_str(), HANDED_OVER])?;
    }
    submit::insert(conn, hook, now).map(Some)
}

/// A hook ended: so did the attempts that it was given.
pub(super) fn settle_hook(
    conn: &Connection,
    hook: &Record,
    verdict: &Verdict,
    result: &str,
    entropy: u64,
    now: Timestamp,
) -> Result<(), Error> {
    let mut query = conn.prepare_cached(
        "SELECT id, fence, attempts, busy FROM deliveries INDEXED BY deliveries_hook \
         WHERE hook = ?1 AND hook IS NOT NULL AND state = 'pending' AND held_until = ?2",
    )?;
    let rows = query
        .query_map(params![hook.id.as_str(), HANDED_OVER], |row| {
            Ok((
                row.get::<_, String>(0)?,
                row.get::<_, i64>(1)?,
                row.get::<_, u32>(2)?,
                row.get::<_, u32>(3)?,
            ))
        })?
        .collect::<rusqlite::Result<Vec<_>>>()?;
    let busy = *verdict == Verdict::Busy;
    #[expect(clippy::cast_precision_loss, reason = "a chance needs no 64 bits")]
    let chance = (entropy >> 11) as f64 / (1_u64 << 53) as f64;
    for (id, fence, attempts, times_busy) in rows {
        let Ok(id) = id.parse::<DeliveryId>() else { continue };
        let tries = Tries {
            attempts: attempts.saturating_add(u32::from(!busy)),
            busy: if busy { times_busy.saturating_add(1) } else { 0 },
        };
        let next = match schedule::after(tries, verdict, now, chance) {
            schedule::Next::Delivered => Next::Delivered,
            schedule::Next::At(at) => Next::At(at),
            schedule::Next::Dead(reason) => Next::Dead(reason.to_string()),
        };
        let tried = Tried {
            at: hook.created_at,
            took_ms: hook.duration_ms.unwrap_or(0),
            status: None,
            result: result.to_owned(),
        };
        settle(conn, &id, row::unsigned(fence), Settled { tried: (!busy).then_some(tried), next }, now)?;
    }
    Ok(())
}

/// What came of an attempt. False if the claim was no longer the caller's.
pub(super) fn settle(
    conn: &Connection,
    delivery: &DeliveryId,
    fence: u64,
    settled: Settled,
    now: Timestamp,
) -> Result<bool, Error> {
    let mut query = conn.prepare_cached(
        "SELECT seq, task_id, owner, target, attempts, history, notice_id FROM deliveries \
         WHERE id = ?1 AND fence = ?2 AND state = 'pending'",
    )?;
    let found = query
        .query_row(params![delivery.as_str(), row::signed(fence)], |row| {
            Ok((
                row.get::<_, i64>(0)?,
                row.get::<_, String>(1)?,
                row.get::<_, String>(2)?,
                row.get::<_, String>(3)?,
                row.get::<_, u32>(4)?,
                row.get::<_, String>(5)?,
                row.get::<_, String>(6)?,
            ))
        })
        .optional()?;
    let Some((seq, task, owner, target, attempts, history, notice)) = found else { return Ok(false) };
    let mut history: Vec<Tried> = serde_json::from_str(&history).unwrap_or_default();
    let counts = settled.tried.is_some();
    let attempts = attempts.saturating_add(u32::from(counts));
    history.extend(settled.tried);
    let (state, next_at, ended_at, reason) = match settled.next {
        Next::Delivered => (DeliveryState::Delivered, now, Some(now), None),
        Next::At(at) => (DeliveryState::Pending, at, None, None),
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
        DeliveryState::Pending => return Ok(true),
        DeliveryState::Delivered => EventKind::DeliveryDelivered,
        DeliveryState::Dead => EventKind::DeliveryDead,
    };
    let shown = target.parse::<Target>().map(|target| target.shown()).unwrap_or_default();
    let data = json!({
        "delivery_id": delivery, "notice_id": notice, "target": shown, "attempts": attempts, "reason": reason,
    });
    events::insert(conn, kind, now, Some((&task, &owner)), &data)?;
    Ok(true)
}

/// Deliveries, newest first, each with its place.
pub(super) fn list(conn: &Connection, filter: &DeliveryFilter) -> Result<Vec<(u64, Delivery)>, Error> {
    let mut query = conn.prepare_cached(
        "SELECT seq, id, notice_id, task_id, owner, target, state, attempts, created_at, next_at, ended_at, reason, history, hook \
         FROM deliveries WHERE (?1 IS NULL OR state = ?1) AND (?2 IS NULL OR task_id = ?2) AND (?3 IS NULL OR owner = ?3) \
         AND (?4 IS NULL OR seq < ?4) ORDER BY seq DESC LIMIT ?5",
    )?;
    let mut rows = query.query(params![
        filter.state.map(DeliveryState::as_str),
        filter.task.as_ref().map(TaskId::as_str),
        filter.owner,
        filter.before.map(row::signed),
        filter.limit,
    ])?;
    let mut deliveries = Vec::new();
    while let Some(row) = rows.next()? {
        let seq = row::unsigned(row.get(0)?);
        match read(row) {
            Ok(delivery) => deliveries.push((seq, delivery)),
            Err(why) => tracing::error!(delivery = seq, why, "a delivery could not be read"),
        }
    }
    Ok(deliveries)
}

fn read(row: &Row<'_>) -> Result<Delivery, String> {
    fn text(error: impl std::fmt::Display) -> String {
        error.to_string()
    }
    let parsed = |column| row.get::<_, String>(column).map_err(text);
    let state: DeliveryState = parsed(6)?.parse().map_err(text)?;
    let created_at = Timestamp::from_millis(row.get(8).map_err(text)?);
    // The first attempt is due from the beginning, whatever that is by the clock.
    let next_at = Timestamp::from_millis(row.get(9).map_err(text)?).max(created_at);
    Ok(Delivery {
        id: parsed(1)?.parse().map_err(text)?,
        notice_id: parsed(2)?.parse().map_err(text)?,
        task_id: parsed(3)?.parse().map_err(text)?,
        owner: parsed(4)?,
        target: parsed(5)?.parse::<Target>().map_err(text)?.shown(),
        state,
        attempts: row.get(7).map_err(text)?,
        created_at,
        next_at: (state == DeliveryState::Pending).then_some(next_at),
        ended_at: row.get::<_, Option<i64>>(10).map_err(text)?.map(Timestamp::from_millis),
        reason: row.get(11).map_err(text)?,
        history: serde_json::from_str(&parsed(12)?).map_err(text)?,
        hook: row
            .get::<_, Option<String>>(13)
            .map_err(text)?
            .map(|id| id.parse())
            .transpose()
            .map_err(text)?,
    })
}

/// Makes deliveries pending and due, with no attempt made. The history stays.
pub(super) fn redeliver(
    conn: &Connection,
    which: &Redeliver,
    now: Timestamp,
) -> Result<Vec<DeliveryId>, Error> {
    let (column, value) = match which {
        Redeliver::Delivery(id) => ("id", id.as_str()),
        Redeliver::Task(id) => ("task_id", id.as_str()),
        Redeliver::State(state) => ("state", state.as_str()),
    };
    // The fence moves on: an attempt that is still under way settles nothing.
    let statement = format!(
        "UPDATE deliveries SET state = 'pending', attempts = 0, busy = 0, next_at = ?2, ended_at = NULL, reason = NULL, \
         held_until = NULL, fence = fence + 1 WHERE {column} = ?1 RETURNING id"
    );
    let mut update = conn.prepare_cached(&statement)?;
    let ids = update
        .query_map(params![value, now.as_millis()], |row| row.get::<_, String>(0))?
        .collect::<rusqlite::Result<Vec<_>>>()?;
    Ok(ids.iter().filter_map(|id| id.parse().ok()).collect())
}

/// How many are pending, and how many were given up.
pub(super) fn counts(conn: &Connection) -> Result<DeliveryCounts, Error> {
    let mut query =
        conn.prepare_cached("SELECT count(*) FROM deliveries INDEXED BY deliveries_state WHERE state = ?1")?;
    let mut count =
        |state: DeliveryState| query.query_row([state.as_str()], |row| row.get(0)).map(row::unsigned);
    Ok(DeliveryCounts { pending: count(DeliveryState::Pending)?, dead: count(DeliveryState::Dead)? })
}

/// Drops deliveries that ended before `cutoff`, at most `limit`.
pub(super) fn trim(conn: &Connection, cutoff: Timestamp, limit: u32) -> Result<(), Error> {
    conn.prepare_cached(
        "DELETE FROM deliveries WHERE seq IN (SELECT seq FROM deliveries INDEXED BY deliveries_ended \
         WHERE ended_at IS NOT NULL AND ended_at <= ?1 ORDER BY ended_at LIMIT ?2)",
    )?
    .execute(params![cutoff.as_millis(), limit])?;
    Ok(())
}
