//! Telling: the notice itself, the owner's inbox entry and the deliveries, in the transaction of what they tell (P5).

use homing_model::NoticeInfo;
use homing_model::inbox::InboxState;
use homing_model::notice::{About, Body};
use homing_model::notify::SigningKey;
use homing_model::reservation::{Access, POLL_MS, Reader, Reserve, State};
use homing_model::{Channel, DeliveryId, Notice, NoticeId, Notify, OsText, Route, Target, TaskId, Timestamp};
use rusqlite::{Connection, params};

use crate::record::Record;
use crate::sqlite::notices::events;
use crate::sqlite::notices::inheritance;
use crate::sqlite::notices::reservations::{self, OfNotice};
use crate::sqlite::schema;
use crate::sqlite::tasks::row;
use crate::store::Error;

/// Appends a notice of a task to the log, and tells whomever `notify` names, if anybody. Answers with its place.
pub(in crate::sqlite) fn publish(
    conn: &Connection,
    task: &Record,
    mut body: Body,
    at: Timestamp,
    notify: Option<&Notify>,
    entropy: u64,
) -> Result<i64, Error> {
    task.masks.cover_notice(&mut body);
    let seq = events::append(conn, body.kind(), at, task, &serde_json::Value::Null)?;
    let mut draws = Draws(entropy);
    let id = draws.unused(conn, "SELECT EXISTS (SELECT 1 FROM notices WHERE id = ?1)", |bits| {
        NoticeId::from_entropy(bits).to_string()
    })?;
    let id: NoticeId =
        id.parse().map_err(|error: homing_model::id::Malformed| Error::Io(error.to_string()))?;
    let notice = Notice { id, seq: row::unsigned(seq), at, task: about(task), body };
    let heir = match notify {
        Some(_) => inheritance::of(conn, task)?,
        None => None,
    };
    // What is left to an heir was reserved by nobody who could still read it.
    let own_end = heir.is_none() && matches!(notice.body, Body::Completed(_));
    if own_end {
        reservations::ended(conn, &task.id, seq)?;
    }
    let inboxed = notify.is_some_and(|notify| notify.targets.contains(&Target::Inbox));
    conn.prepare_cached("INSERT INTO notices (seq, id, task, inboxed, body) VALUES (?1, ?2, ?3, ?4, ?5)")?
        .execute(params![
            seq,
            notice.id.as_str(),
            task.id.as_str(),
            inboxed,
            row::json(&task.id, &notice)?
        ])?;
    for target in notify.iter().flat_map(|notify| &notify.targets) {
        if *target == Target::Inbox {
            let owner = heir.as_ref().map_or(&task.owner, |heir| &heir.owner);
            conn.prepare_cached(
                "INSERT OR IGNORE INTO inbox (owner, seq, id, task_id) VALUES (?1, ?2, ?3, ?4)",
            )?
            .execute(params![owner, seq, notice.id.as_str(), task.id.as_str()])?;
            if task.spec.reserve == Some(Reserve::Poll) && own_end {
                let until = at.plus_millis(POLL_MS);
                reservations::set(conn, (task.id.as_str(), seq), owner, &State::Held(Reader::Poller), until)?;
            }
            continue;
        }
        // The session that a wake would reach has ended; the heir is woken instead, if it can be.
        let inherited = heir.as_ref().filter(|_| matches!(target, Target::Wake(_)));
        let Some(target) = inherited.map_or_else(|| Some(target.clone()), Record::wake) else { continue };
        let secret = notify.and_then(|notify| notify.secret.as_ref());
        enqueue(conn, task, &notice, inherited.unwrap_or(task), &target, secret, &mut draws)?;
    }
    Ok(seq)
}

/// Writes the delivery of a task's notice to a target of the recipient: the task, or its heir.
fn enqueue(
    conn: &Connection,
    task: &Record,
    notice: &Notice,
    recipient: &Record,
    target: &Target,
    secret: Option<&SigningKey>,
    draws: &mut Draws,
) -> Result<(), Error> {
    let id = draws.unused(conn, "SELECT EXISTS (SELECT 1 FROM deliveries WHERE id = ?1)", |bits| {
        DeliveryId::from_entropy(bits).to_string()
    })?;
    // Found when the task was submitted. The target names it, so that `wake` alone does not join
    // the wakes of two sessions.
    let spec = &recipient.spec;
    let route = Route::of(target, spec.session.as_ref(), spec.pane.as_ref()).unwrap_or_default();
    let target = &route.as_ref().map_or_else(|| target.clone(), Route::target);
    let cwd = spec.cwd.as_ref().map(OsText::lossy);
    let Some(channel) = Channel::new(target, &recipient.owner, cwd.as_deref()) else { return Ok(()) };
    let [kind, owner, to, folder] = channel.columns();
    // Due at any time: the clock that stamped the end may have been set back since.
    conn.prepare_cached(
        "INSERT INTO deliveries (id, notice_seq, notice_id, task_id, owner, target, secret, next_at, created_at, shown, route, network, \
         channel, channel_owner, channel_to, channel_folder) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 0, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)",
    )?
    .execute(params![
        id,
        row::signed(notice.seq),
        notice.id.as_str(),
        task.id.as_str(),
        recipient.owner,
        target.to_string(),
        secret.filter(|_| matches!(target, Target::Webhook(_))).map(SigningKey::reveal),
        notice.at.as_millis(),
        task.masks.text(&target.shown()),
        route.map(|route| row::json(&task.id, &route)).transpose()?,
        task.network,
        kind,
        owner,
        to,
        folder,
    ])?;
    Ok(())
}

/// What was told of a task, the newest `limit` of it, oldest first, and whether its owner has it.
pub(in crate::sqlite) fn of_task(
    conn: &Connection,
    task: &TaskId,
    limit: u32,
    now: Timestamp,
) -> Result<Vec<NoticeInfo>, Error> {
    let mut query = conn.prepare_cached(
        "SELECT notices.seq, notices.id, inboxed, inbox.owner, \
         CASE WHEN json_valid(body) THEN json_extract(body, '$.type') END, \
         CASE WHEN json_valid(body) THEN json_extract(body, '$.at') END \
         FROM notices INDEXED BY notices_task LEFT JOIN inbox INDEXED BY inbox_seq ON inbox.seq = notices.seq \
         WHERE notices.task = ?1 ORDER BY notices.seq DESC LIMIT ?2",
    )?;
    let mut rows = query.query(params![task.as_str(), limit])?;
    let mut notices = Vec::new();
    while let Some(row) = rows.next()? {
        let Ok(id) = row.get::<_, String>(1)?.parse() else { continue };
        let (seq, inboxed, owner): (i64, i64, Option<String>) = (row.get(0)?, row.get(2)?, row.get(3)?);
        let reservations = OfNotice::read(conn, task.as_str(), seq)?;
        let held_until = owner.as_ref().and_then(|owner| reservations.held_until(owner, Access::Take, now));
        let inbox = match (owner, held_until, inboxed) {
            (Some(_), Some(_), _) => InboxState::Held,
            (Some(_), None, _) => InboxState::Waiting,
            (None, _, 0) => InboxState::None,
            (None, _, _) => InboxState::Acknowledged,
        };
        notices.push(NoticeInfo {
            id,
            seq: row::unsigned(seq),
            kind: row.get(4).unwrap_or_default(),
            at: row.get::<_, Option<String>>(5).unwrap_or_default().and_then(|at| at.parse().ok()),
            inbox,
            held_until,
        });
    }
    notices.reverse();
    Ok(notices)
}

/// What a notice says of its task.
fn about(task: &Record) -> About {
    About {
        id: task.id.clone(),
        name: task.spec.name.clone(),
        owner: task.owner.clone(),
        command: task.command.clone(),
        cwd: task.spec.cwd.as_ref().map(OsText::lossy).map(Into::into),
        labels: task.spec.labels.clone(),
    }
}

/// Ids from a few random bits: as many as are asked for, each of them new.
struct Draws(u64);

impl Draws {
    /// The sequence `splitmix64`.
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    fn unused(
        &mut self,
        conn: &Connection,
        used: &str,
        spell: impl Fn(u64) -> String,
    ) -> Result<String, Error> {
        let mut query = conn.prepare_cached(used)?;
        loop {
            let id = spell(self.bits());
            if !query.query_row([&id], |row| row.get(0))? {
                return Ok(id);
            }
        }
    }
}

/// Drops the texts that the log, the inbox and the deliveries are done with; looks at no more than `limit`, and answers at how many. Each
/// is looked at once: what somebody still needs by then goes with its last entry or delivery.
pub(in crate::sqlite) fn trim(conn: &Connection, trimmed_to: i64, limit: u32) -> Result<usize, Error> {
    let from = schema::meta(conn, "notices_trimmed_to")?;
    if from >= trimmed_to {
        return Ok(0);
    }
    let (looked_at, last): (u32, Option<i64>) = conn
        .prepare_cached(
            "SELECT count(*), max(seq) FROM (SELECT seq FROM notices WHERE seq > ?1 AND seq <= ?2 ORDER BY seq LIMIT ?3)",
        )?
        .query_row(params![from, trimmed_to, limit], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let to = last.filter(|_| looked_at >= limit).unwrap_or(trimmed_to);
    conn.prepare_cached(
        "DELETE FROM notices WHERE seq > ?1 AND seq <= ?2 \
         AND NOT EXISTS (SELECT 1 FROM inbox INDEXED BY inbox_seq WHERE inbox.seq = notices.seq) \
         AND NOT EXISTS (SELECT 1 FROM deliveries INDEXED BY deliveries_notice WHERE notice_seq = notices.seq)",
    )?
    .execute(params![from, to])?;
    conn.prepare_cached("UPDATE meta SET value = ?1 WHERE name = 'notices_trimmed_to'")?.execute([to])?;
    Ok(looked_at as usize)
}
