//! Notices on their way to a target: claimed under a lease, settled by whoever still holds it.

use homing_model::counts::DeliveryCounts;
use homing_model::notify::SigningKey;
use homing_model::operator::{self, TargetKind};
use homing_model::{
    Channel, Delivery, DeliveryId, DeliveryState, EventKind, Route, TaskId, Timestamp, Tried, wake,
};
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde_json::json;

use crate::outbox::{Claimed, DeliveryFilter, DeliveryPage, Next, Redeliver, Redelivered, Settled};
use crate::sqlite::notices::events;
use crate::sqlite::notices::reservations::OfNotice;
use crate::sqlite::notices::wakes;
use crate::sqlite::tasks::row;
use crate::store::Error;

/// When a pending delivery is next due, as the index has it.
macro_rules! due_at {
    () => {
        "max(next_at, coalesce(held_until, 0))"
    };
}

/// The columns of the channel of a row.
macro_rules! channel {
    ($of:literal) => {
        concat!("(", $of, "channel, ", $of, "channel_owner, ", $of, "channel_to, ", $of, "channel_folder)")
    };
}

/// The first in the order of the index.
macro_rules! first {
    () => {
        concat!("ORDER BY channel, channel_owner, channel_to, channel_folder, ", due_at!(), ", seq LIMIT 1")
    };
}

/// The deliveries of the channel that the first four parameters name.
macro_rules! of_channel {
    () => {
        "(channel, channel_owner, channel_to, channel_folder) = (?1, ?2, ?3, ?4)"
    };
}
pub(in crate::sqlite) use of_channel;

/// What is given to a command at once: what is due, and what found it busy before, so that all of it is told in one go.
macro_rules! ready {
    () => {
        "(max(next_at, coalesce(held_until, 0)) <= ?5 OR (busy > 0 AND coalesce(held_until, 0) <= ?5))"
    };
}
pub(in crate::sqlite) use ready;

/// A delivery of a channel with its notice, as a claim takes it, if what follows holds.
macro_rules! claimable {
    () => {
        concat!(
            "SELECT deliveries.seq, deliveries.id, fence, notice_id, task_id, owner, target, secret, attempts - earlier, created_at, body, busy, shown, route, network, again, said \
             FROM deliveries INDEXED BY deliveries_pending LEFT JOIN notices ON notices.seq = notice_seq \
             WHERE state = 'pending' AND ",
            of_channel!(),
            " AND "
        )
    };
}

/// In which order, and how many.
macro_rules! claimed_first {
    () => {
        " ORDER BY max(next_at, coalesce(held_until, 0)), deliveries.seq LIMIT ?6"
    };
}

/// Whether a command has something of the channel that follows: it is given no more before it ends.
macro_rules! handed_over {
    () => {
        "EXISTS (SELECT 1 FROM deliveries AS given INDEXED BY deliveries_pending WHERE given.state = 'pending' \
         AND max(given.next_at, coalesce(given.held_until, 0)) = 9223372036854775807 \
         AND (given.channel, given.channel_owner, given.channel_to, given.channel_folder) = "
    };
}

/// A pending delivery, by what follows.
macro_rules! pending {
    () => {
        "SELECT seq, id, task_id, owner, shown, attempts, history, notice_id FROM deliveries WHERE state = 'pending' AND "
    };
}

/// Held until the command that has it ends: no clock gives it back. `handed_over!` has it too.
pub(in crate::sqlite) const HANDED_OVER: i64 = i64::MAX;

/// From the first delivery of a channel to that of the next, along the index: a long queue behind
/// one of them costs nothing. A column with a `+` has no affinity, without which only the first
/// column would be searched for.
const DUE: &str = concat!(
    "WITH RECURSIVE heads (seq) AS (\
     SELECT (SELECT seq FROM deliveries INDEXED BY deliveries_pending WHERE state = 'pending' ",
    first!(),
    ") UNION ALL SELECT (SELECT next.seq FROM deliveries AS next INDEXED BY deliveries_pending \
       WHERE state = 'pending' AND ",
    channel!(""),
    " > ",
    channel!("+head."),
    first!(),
    ") FROM heads JOIN deliveries AS head ON head.seq = heads.seq) \
     SELECT channel, channel_owner, channel_to, channel_folder, ",
    due_at!(),
    ", (SELECT min(",
    due_at!(),
    ") FROM deliveries INDEXED BY deliveries_pending WHERE state = 'pending' AND ",
    channel!(""),
    " = ",
    channel!("head."),
    " AND ",
    due_at!(),
    " > ?1) FROM heads JOIN deliveries AS head ON head.seq = heads.seq WHERE NOT ",
    handed_over!(),
    channel!("head."),
    ")",
);

/// Channels with a delivery that is due, and the next moment at which there will be another, also of those. A channel whose command runs has
/// none: its end is what makes the rest due.
pub(in crate::sqlite) fn due(
    conn: &Connection,
    now: Timestamp,
) -> Result<(Vec<Channel>, Option<Timestamp>), Error> {
    let mut query = conn.prepare_cached(DUE)?;
    let mut rows = query.query([now.as_millis()])?;
    let (mut channels, mut next) = (Vec::new(), None);
    while let Some(row) = rows.next()? {
        if row.get::<_, i64>(4)? <= now.as_millis() {
            match Channel::from_columns([row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?]) {
                Ok(channel) => channels.push(channel),
                Err(error) => tracing::error!(%error, "deliveries of an unknown channel wait"),
            }
        }
        let later: Option<i64> = row.get(5)?;
        next = later.into_iter().chain(next).min();
    }
    Ok((channels, next.map(Timestamp::from_millis)))
}

/// The way of what is due of a channel: that of the newest, since a session may have moved on.
pub(in crate::sqlite) fn route(
    conn: &Connection,
    channel: &Channel,
    now: Timestamp,
) -> Result<Option<Route>, Error> {
    let [kind, owner, to, folder] = channel.columns();
    let mut query = conn.prepare_cached(concat!(
        "SELECT route FROM deliveries INDEXED BY deliveries_pending WHERE state = 'pending' AND ",
        of_channel!(),
        " AND ",
        ready!(),
        " AND route IS NOT NULL ORDER BY seq DESC LIMIT 1",
    ))?;
    let of_newest = params![kind, owner, to, folder, now.as_millis()];
    let found = query.query_row(of_newest, |row| row.get::<_, String>(0)).optional()?;
    Ok(found.and_then(|text| serde_json::from_str(&text).ok()))
}

/// Says why what is due of a channel is not claimed yet. Nothing is written where that was said before.
pub(in crate::sqlite) fn put_off(
    conn: &Connection,
    channel: &Channel,
    why: &str,
    now: Timestamp,
) -> Result<(), Error> {
    let [kind, owner, to, folder] = channel.columns();
    conn.prepare_cached(concat!(
        "UPDATE deliveries INDEXED BY deliveries_pending SET reason = ?6 WHERE state = 'pending' AND ",
        of_channel!(),
        " AND ",
        ready!(),
        " AND reason IS NOT ?6",
    ))?
    .execute(params![kind, owner, to, folder, now.as_millis(), why])?;
    Ok(())
}

/// Claims due deliveries of one channel.
pub(in crate::sqlite) fn claim(
    conn: &Connection,
    channel: &Channel,
    limit: u32,
    until: Timestamp,
    now: Timestamp,
) -> Result<Vec<Claimed>, Error> {
    let [kind, owner, to, folder] = channel.columns();
    let mut query = conn.prepare_cached(if matches!(channel, Channel::Endpoint { .. }) {
        concat!(claimable!(), due_at!(), " <= ?5", claimed_first!())
    } else {
        concat!(claimable!(), ready!(), " AND NOT ", handed_over!(), "(?1, ?2, ?3, ?4))", claimed_first!())
    })?;
    let mut rows = query.query(params![kind, owner, to, folder, now.as_millis(), limit])?;
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
        end(conn, seq, Next::Dead(format!("its row is damaged: {why}")), now)?;
    }
    let mut hold = conn.prepare_cached(
        "UPDATE deliveries SET held_until = ?2, fence = fence + 1, reason = NULL WHERE seq = ?1",
    )?;
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
        shown: parsed(12)?,
        route: row
            .get::<_, Option<String>>(13)
            .map_err(text)?
            .map(|route| serde_json::from_str(&route))
            .transpose()
            .map_err(text)?,
        secret: row.get::<_, Option<String>>(7).map_err(text)?.map(SigningKey::new),
        network: row.get(14).map_err(text)?,
        attempts: row.get(8).map_err(text)?,
        created_at: Timestamp::from_millis(row.get(9).map_err(text)?),
        busy: row.get(11).map_err(text)?,
        again: row.get(15).map_err(text)?,
        said: row.get(16).map_err(text)?,
        notice: notice(row.get::<_, Option<String>>(10).map_err(text)?)?,
    })
}

/// The text of a notice. One that is no JSON must not be handed over among others, which it would make unreadable.
fn notice(text: Option<String>) -> Result<String, String> {
    let text = text.ok_or("its notice is gone")?;
    match serde_json::from_str::<serde::de::IgnoredAny>(&text) {
        Ok(_) => Ok(text),
        Err(error) => Err(format!("its notice cannot be read: {error}")),
    }
}

/// Nobody holds anything any more.
pub(in crate::sqlite) fn release(conn: &Connection) -> Result<(), Error> {
    conn.prepare_cached(
        "UPDATE deliveries SET held_until = NULL, fence = fence + 1 \
         WHERE state = 'pending' AND held_until IS NOT NULL AND held_until < ?1",
    )?
    .execute([HANDED_OVER])?;
    release_unending(conn).map(drop)
}

/// Gives back what commands have that can never end; answers how many of those there are.
pub(in crate::sqlite) fn release_unending(conn: &Connection) -> Result<u64, Error> {
    let hooks = unending(conn)?;
    let mut give_back = conn.prepare_cached(
        "UPDATE deliveries SET held_until = NULL, fence = fence + 1 \
         WHERE hook = ?1 AND hook IS NOT NULL AND state = 'pending' AND held_until = ?2",
    )?;
    for hook in &hooks {
        tracing::error!(hook, "a command can never end; what it was given is due again");
        give_back.execute(params![hook, HANDED_OVER])?;
    }
    Ok(hooks.len() as u64)
}

/// Commands that have something and can never end. Only what is pending is looked at.
pub(in crate::sqlite) fn unending(conn: &Connection) -> Result<Vec<String>, Error> {
    let mut query = conn.prepare_cached(
        "SELECT DISTINCT hook FROM deliveries INDEXED BY deliveries_pending \
         WHERE state = 'pending' AND max(next_at, coalesce(held_until, 0)) = 9223372036854775807 AND hook IS NOT NULL",
    )?;
    let hooks = query.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<Vec<String>>>()?;
    let mut stuck = Vec::new();
    for hook in hooks {
        if !can_end(conn, &hook)? {
            stuck.push(hook);
        }
    }
    Ok(stuck)
}

/// Whether a command's end can still settle what it was given. One whose row is damaged or gone never ends, and nobody is to wait for it.
fn can_end(conn: &Connection, hook: &str) -> Result<bool, Error> {
    let Ok(id) = hook.parse::<TaskId>() else { return Ok(false) };
    match row::by_id(conn, &id) {
        Ok(record) => Ok(record.is_some_and(|record| !record.status.is_terminal())),
        Err(Error::BadRow { .. }) => Ok(false),
        Err(error) => Err(error),
    }
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

/// Ends a pending delivery by its place, with no attempt made; whoever still has a claim on it settles nothing.
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
            Err(why) => tracing::error!(delivery = seq, why, "a delivery could not be read"),
        }
    }
    Ok(page)
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
        notice_type: row.get(14).unwrap_or_default(),
        task_id: parsed(3)?.parse().map_err(text)?,
        owner: parsed(4)?,
        target: parsed(5)?,
        state,
        attempts: row.get(7).map_err(text)?,
        created_at,
        next_at: (state == DeliveryState::Pending).then_some(next_at),
        ended_at: row.get::<_, Option<i64>>(10).map_err(text)?.map(Timestamp::from_millis),
        reason: row.get(11).map_err(text)?,
        history: serde_json::from_str(&parsed(12)?).unwrap_or_default(),
        hook: row
            .get::<_, Option<String>>(13)
            .map_err(text)?
            .map(|id| id.parse())
            .transpose()
            .map_err(text)?,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finding_the_next_channel_skips_the_deliveries_of_this_one() {
        let mut conn = Connection::open_in_memory().unwrap();
        crate::sqlite::schema::migrate(&mut conn).unwrap();
        let mut query = conn.prepare(&format!("EXPLAIN QUERY PLAN {DUE}")).unwrap();
        let plan = query.query_map([0], |row| row.get::<_, String>(3)).unwrap();
        let plan: String = plan.map(Result::unwrap).collect();
        let (key, all) = ("channel,channel_owner,channel_to,channel_folder", plan.replace(' ', ""));
        assert!(all.contains(&format!("(({key})>(?,?,?,?))")), "{plan}");
    }
}
