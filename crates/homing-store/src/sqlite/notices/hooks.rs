//! Deliveries in the hands of a command: given in the transaction that accepts it, settled in the one that ends it.

use homing_model::operator::TargetKind;
use homing_model::queue::StartPolicy;
use homing_model::schedule::{Tries, Verdict};
use homing_model::{DeliveryId, Timestamp, Tried};
use rusqlite::{Connection, params};

use crate::outbox::{Next, Settled, Wake};
use crate::record::{NewTask, Record};
use crate::sqlite::notices::claims::HANDED_OVER;
use crate::sqlite::notices::deliveries::settle;
use crate::sqlite::notices::reservations;
use crate::sqlite::notices::wakes;
use crate::sqlite::tasks::row;
use crate::sqlite::tasks::submit;
use crate::store::Error;

/// Gives claimed deliveries to a command: from here on its end decides. `None`, and nothing is changed, if one
/// of the claims is no longer the caller's or the id was used before; or if a wake has no room or its owner has some of it by now, and then
/// what is left of them is due again.
pub(in crate::sqlite) fn hand_over(
    conn: &Connection,
    claims: &[(DeliveryId, u64)],
    hook: NewTask,
    wake: Option<&Wake>,
    now: Timestamp,
) -> Result<Option<Record>, Error> {
    if submit::was_issued(conn, &hook.id)? {
        return Ok(None);
    }
    let mut give = conn.prepare_cached(
        "UPDATE deliveries SET hook = ?3, held_until = ?4, said = 1 WHERE id = ?1 AND fence = ?2 AND state = 'pending'",
    )?;
    let mut ours = conn.prepare_cached(
        "SELECT EXISTS (SELECT 1 FROM deliveries WHERE id = ?1 AND fence = ?2 AND state = 'pending')",
    )?;
    for (id, fence) in claims {
        if !ours.query_row(params![id.as_str(), row::signed(*fence)], |row| row.get::<_, bool>(0))? {
            return Ok(None);
        }
    }
    if let Some(wake) = wake {
        let news = !wakes::end_known(conn, claims, now)?;
        let room = news && wakes::has_room(conn, &wake.owner, wake.budget, now)?;
        let free = match wake.until {
            Some(until) if room => wakes::take(conn, claims, &hook.id, until, now)?,
            Some(_) | None => true,
        };
        if !(room && free) {
            let mut release = conn.prepare_cached(
                "UPDATE deliveries SET held_until = NULL, fence = fence + 1 WHERE id = ?1 AND fence = ?2",
            )?;
            for (id, fence) in claims {
                release.execute(params![id.as_str(), row::signed(*fence)])?;
            }
            return Ok(None);
        }
        wakes::spend(conn, &wake.owner, &hook.id, now)?;
    }
    for (id, fence) in claims {
        give.execute(params![id.as_str(), row::signed(*fence), hook.id.as_str(), HANDED_OVER])?;
    }
    // A hook never waits.
    submit::insert(conn, hook, StartPolicy::default(), now).map(Some)
}

/// A hook ended: so did the attempts that it was given.
pub(in crate::sqlite) fn end(
    conn: &Connection,
    hook: &Record,
    verdict: &Verdict,
    result: &str,
    said: Option<&str>,
    entropy: u64,
    now: Timestamp,
) -> Result<(), Error> {
    let mut query = conn.prepare_cached(
        "SELECT id, fence, attempts - earlier, busy, again = 2, channel FROM deliveries INDEXED BY deliveries_hook \
         WHERE hook = ?1 AND hook IS NOT NULL AND state = 'pending' AND held_until = ?2",
    )?;
    let rows = query
        .query_map(params![hook.id.as_str(), HANDED_OVER], |row| {
            Ok((
                row.get::<_, String>(0)?,
                row.get::<_, i64>(1)?,
                row.get::<_, u32>(2)?,
                row.get::<_, u32>(3)?,
                row.get::<_, bool>(4)?,
                row.get::<_, String>(5)?,
            ))
        })?
        .collect::<rusqlite::Result<Vec<_>>>()?;
    let (mut acknowledges, mut shown) = (false, false);
    let mut waits =
        conn.prepare_cached("UPDATE deliveries SET reason = ?2 WHERE id = ?1 AND state = 'pending'")?;
    for (id, fence, attempts, busy, asked_again, kind) in rows {
        let Ok(id) = id.parse::<DeliveryId>() else { continue };
        let kind = TargetKind::parse(&kind);
        acknowledges |= kind == Some(TargetKind::Wake);
        shown |= kind == Some(TargetKind::Desktop);
        // What wakes is a program of ours, which says in its last line what it did or why it did not.
        let wakes = kind.is_some_and(TargetKind::only_wakes);
        let said = said.filter(|_| wakes);
        let command_failed = Verdict::Failed { why: result.to_owned(), retry_after: None };
        let verdict = if *verdict == Verdict::Gone && !wakes { &command_failed } else { verdict };
        let tried = Tried {
            at: hook.created_at,
            took_ms: hook.duration_ms.unwrap_or(0),
            status: None,
            result: said.unwrap_or(result).to_owned(),
        };
        let mut settled = Settled::after(Tries { attempts, busy }, verdict, tried, entropy, now);
        if *verdict == Verdict::Gone {
            settled.next = Next::Dead(said.unwrap_or(result).to_owned());
        }
        if asked_again {
            // It was sent again meanwhile: this run does not count, and it is due.
            settled.next = Next::At(hook.created_at);
        }
        settle(conn, &id, row::unsigned(fence), settled, now)?;
        if *verdict == Verdict::Busy && said.is_some() {
            waits.execute(params![id.as_str(), said])?;
        }
    }
    conn.prepare_cached(
        "UPDATE deliveries SET again = 1, earlier = attempts, busy = 0 \
         WHERE hook = ?1 AND hook IS NOT NULL AND state = 'pending' AND again = 2",
    )?
    .execute([hook.id.as_str()])?;
    match verdict {
        // On a screen one line stands for all of them and may not have been read: no entry goes with it.
        Verdict::Delivered if shown => return Ok(()),
        Verdict::Delivered => return wakes::woken(conn, &hook.id, acknowledges),
        Verdict::Busy => wakes::give_back(conn, &hook.id)?,
        Verdict::Failed { .. } | Verdict::Gone => {}
    }
    reservations::release_wake(conn, &hook.id, now)
}
