//! Claims of deliveries: found by channel, held under a lease, released when their holder is gone.

use homing_model::notify::SigningKey;
use homing_model::{Channel, Route, TaskId, Timestamp};
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::outbox::{Claimed, Next};
use crate::sqlite::notices::deliveries::end;
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

/// What is given to a command at once: what is due, and what found it busy before.
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
            Err(why) => broken.push((seq, format!("its row is damaged: {why}"))),
        }
    }
    drop(rows);
    for (seq, why) in broken {
        // A row that makes no sense is given up, and the queue behind it goes on.
        tracing::error!(delivery = seq, why, "a delivery could not be read");
        end(conn, seq, Next::Dead(why), now)?;
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

fn read_claim(row: &Row<'_>) -> Result<Claimed, Box<dyn std::error::Error>> {
    let text = |column| row.get::<_, String>(column);
    let optional = |column| row.get::<_, Option<String>>(column);
    Ok(Claimed {
        id: text(1)?.parse()?,
        fence: row::unsigned(row.get(2)?),
        notice_id: text(3)?.parse()?,
        task_id: text(4)?.parse()?,
        owner: text(5)?,
        target: text(6)?.parse()?,
        secret: optional(7)?.map(SigningKey::new),
        attempts: row.get(8)?,
        created_at: Timestamp::from_millis(row.get(9)?),
        notice: notice(optional(10)?)?,
        busy: row.get(11)?,
        shown: text(12)?,
        route: optional(13)?.map(|route| serde_json::from_str(&route)).transpose()?,
        network: row.get(14)?,
        again: row.get(15)?,
        said: row.get(16)?,
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

/// Releases every claim but those of hook tasks that can still end.
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

/// Whether a command's end can still settle what it was given. One whose row is damaged or gone never ends.
fn can_end(conn: &Connection, hook: &str) -> Result<bool, Error> {
    let Ok(id) = hook.parse::<TaskId>() else { return Ok(false) };
    match row::by_id(conn, &id) {
        Ok(record) => Ok(record.is_some_and(|record| !record.status.is_terminal())),
        Err(Error::BadRow { .. }) => Ok(false),
        Err(error) => Err(error),
    }
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
