//! Accepting a task, or finding out that it was accepted before.

use homing_model::queue::{self, QueueView, QueuedTask, Start, StartPolicy};
use homing_model::reservation::{GRACE_MS, Reserve};
use homing_model::{
    EventKind, Kind, OnDuplicate, Session, Status, TaskId, Timestamp, Transition, transition,
};
use rusqlite::{Connection, OptionalExtension, params};
use serde_json::json;

use crate::record::{NewTask, Record, Tracking};
use crate::sqlite::notices::events;
use crate::sqlite::notices::reservations;
use crate::sqlite::sessions::bindings;
use crate::sqlite::sessions::resumable;
use crate::sqlite::tasks::life::expect_one;
use crate::sqlite::tasks::row::{self, select_task};
use crate::store::{Answered, ClaimQueued, Error, Idempotency, Submit, Submitted};

/// Accepts one task, and claims it if its turn has come.
pub(in crate::sqlite) fn submit(
    conn: &Connection,
    submit: Submit,
    now: Timestamp,
) -> Result<Submitted, Error> {
    let Submit { task, on_duplicate, children, idempotency, policy } = submit;
    let owner = task.owner.clone();
    if let Some(request) = &idempotency
        && let Some(earlier) = repeated(conn, &owner, request, now)?
    {
        return Ok(earlier);
    }
    let submitted = if let Some(first) = live_with_key(conn, &task)? {
        match on_duplicate {
            OnDuplicate::Join => Submitted::Joined(first),
            OnDuplicate::Refuse => return Ok(Submitted::Duplicate(first.id)),
        }
    } else if task.kind == Kind::External && task.tracking.is_none() {
        return Ok(Submitted::NothingToTrack);
    } else if task.parent.is_some() && live_children(conn, &task)? >= children {
        return Ok(Submitted::TooManyChildren);
    } else if let Some(refusal) = resumable::cannot_continue(conn, &task)? {
        return Ok(refusal);
    } else if was_issued(conn, &task.id)? {
        return Ok(Submitted::IdTaken);
    } else {
        Submitted::Created(insert(conn, task, policy, now)?)
    };
    match (&idempotency, &submitted) {
        (Some(request), Submitted::Created(record)) => remember(conn, &owner, request, &record.id, false)?,
        (Some(request), Submitted::Joined(record)) => remember(conn, &owner, request, &record.id, true)?,
        _ => {}
    }
    Ok(submitted)
}

/// What the same request got before, while its key stands.
fn repeated(
    conn: &Connection,
    owner: &str,
    request: &Idempotency,
    now: Timestamp,
) -> Result<Option<Submitted>, Error> {
    let mut query = conn.prepare_cached(
        "SELECT body_hash, task_id, joined FROM idempotency WHERE owner = ?1 AND key = ?2 AND expires_at > ?3",
    )?;
    let found = query
        .query_row(params![owner, request.key, now.as_millis()], |row| {
            Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?, row.get::<_, bool>(2)?))
        })
        .optional()?;
    let Some((body_hash, task, joined)) = found else { return Ok(None) };
    if body_hash != request.body_hash {
        return Ok(Some(Submitted::IdempotencyMismatch));
    }
    let id = row::id(&task)?;
    // A key that outlived even its task's tombstone stands for nothing any more.
    Ok(row::by_id(conn, &id)?.map(|record| Submitted::Repeated(Answered { record, joined })))
}

/// The same, if it was the same request.
pub(in crate::sqlite) fn answered(
    conn: &Connection,
    owner: &str,
    request: &Idempotency,
    now: Timestamp,
) -> Result<Option<Answered>, Error> {
    Ok(match repeated(conn, owner, request, now)? {
        Some(Submitted::Repeated(answered)) => Some(answered),
        _ => None,
    })
}

fn live_with_key(conn: &Connection, task: &NewTask) -> Result<Option<Record>, Error> {
    let Some(key) = &task.spec.key else { return Ok(None) };
    let mut query = conn.prepare_cached(
        "SELECT seq FROM tasks INDEXED BY tasks_live_key \
         WHERE owner = ?1 AND key = ?2 AND ended_at IS NULL AND key IS NOT NULL",
    )?;
    let seq = query.query_row(params![task.owner, key], |row| row.get(0)).optional()?;
    seq.map_or(Ok(None), |seq| row::by_seq(conn, seq))
}

/// How many children of its parent are live.
fn live_children(conn: &Connection, task: &NewTask) -> Result<u32, Error> {
    let Some(parent) = &task.parent else { return Ok(0) };
    let mut query = conn.prepare_cached(
        "SELECT count(*) FROM tasks INDEXED BY tasks_children WHERE parent = ?1 AND ended_at IS NULL",
    )?;
    Ok(query.query_row([parent.as_str()], |row| row.get(0))?)
}

/// Whether the id was ever used, by a task, a tombstone, or one whose tombstone is gone (P12).
pub(in crate::sqlite) fn was_issued(conn: &Connection, id: &TaskId) -> Result<bool, Error> {
    let mut query = conn.prepare_cached(
        "SELECT EXISTS (SELECT 1 FROM tasks WHERE id = ?1) OR EXISTS (SELECT 1 FROM issued WHERE id = ?1)",
    )?;
    Ok(query.query_row([id.as_str()], |row| row.get(0))?)
}

pub(in crate::sqlite) fn insert(
    conn: &Connection,
    task: NewTask,
    policy: StartPolicy,
    now: Timestamp,
) -> Result<Record, Error> {
    let next = |status, step| {
        transition::next(status, step)
            .map_err(|error| Error::BadRow { task: task.id.to_string(), why: error.to_string() })
    };
    let mut status = Status::Queued;
    let waiting = [QueuedTask { id: task.id.clone(), kind: task.kind }];
    if !queue::decide(&QueueView { policy, waiting: &waiting }).is_empty() {
        status = next(status, Transition::Claimed)?;
    }
    // What somebody else runs is not ours to start: it runs.
    let started_at = (task.kind == Kind::External).then_some(now);
    if started_at.is_some() {
        status = next(status, Transition::Started)?;
    }
    let process = match task.tracking {
        Some(Tracking::Process { pid, start }) => Some((pid, start)),
        Some(Tracking::Lease { .. }) | None => None,
    };
    let labels =
        (!task.spec.labels.is_empty()).then(|| row::json(&task.id, &task.spec.labels)).transpose()?;
    let masks = (!task.masks.is_empty()).then(|| row::json(&task.id, &task.masks)).transpose()?;
    let agent = task.agent.as_ref().map(|agent| row::json(&task.id, agent)).transpose()?;
    let mut insert = conn.prepare_cached(
        "INSERT INTO tasks (id, owner, name, key, status, attempt, fence, node, boot_id, parent, depth, command, created_at, \
         labels, env_names, volatile_secrets, spec, kind, started_at, heard_at, lease_ms, pid, process_start, masks, agent, agent_session, network) \
         VALUES (?1, ?2, ?3, ?4, ?5, 1, 1, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24)",
    )?;
    // What wakes a session is ours, wherever the session is.
    if task.kind != Kind::Hook && Session::named(&task.owner).is_some() {
        bindings::revoke_claims(conn, &task.owner, task.parent.as_ref())?;
    }
    let seq = insert.insert(params![
        task.id.as_str(),
        task.owner,
        task.spec.name,
        task.spec.key,
        status.as_str(),
        task.node,
        task.boot_id,
        task.parent.as_ref().map(TaskId::as_str),
        task.depth,
        task.command,
        now.as_millis(),
        labels,
        row::json(&task.id, &task.env_names)?,
        row::json(&task.id, &task.volatile_secrets)?,
        row::json(&task.id, &task.spec)?,
        task.kind.as_str(),
        started_at.map(Timestamp::as_millis),
        task.tracking.and_then(Tracking::lease_ms).map(row::signed),
        process.map(|(pid, _)| pid),
        process.map(|(_, start)| row::signed(start)),
        masks,
        agent,
        task.agent.as_ref().and_then(|agent| agent.heard.session_id.as_ref()),
        task.network,
    ])?;
    if task.spec.reserve == Some(Reserve::Wait) {
        reservations::announce(conn, &task.owner, &task.id, now.plus_millis(GRACE_MS))?;
    }
    let record = Record {
        seq: row::unsigned(seq),
        id: task.id,
        kind: task.kind,
        spec: task.spec,
        owner: task.owner,
        command: task.command,
        env_names: task.env_names,
        volatile_secrets: task.volatile_secrets,
        masks: task.masks,
        parent: task.parent,
        depth: task.depth,
        network: task.network,
        nested_session: None,
        status,
        attempt: 1,
        node: task.node,
        boot_id: task.boot_id,
        pid: process.map(|(pid, _)| pid),
        created_at: now,
        started_at,
        ended_at: None,
        duration_ms: None,
        outcome: None,
        stop: None,
        output_bytes: 0,
        output_dropped: 0,
        progress: None,
        tracking: task.tracking,
        heard_at: started_at,
        answer: None,
        agent: task.agent,
        watch: None,
        forgotten: false,
    };
    let data = json!({ "command": record.command, "name": record.spec.name });
    events::append(conn, EventKind::TaskQueued, now, &record, &data)?;
    if started_at.is_some() {
        let data = json!({ "pid": record.pid, "attempt": record.attempt });
        events::append(conn, EventKind::TaskStarted, now, &record, &data)?;
    }
    Ok(record)
}

/// Claims the waiting tasks whose turn has come. A damaged row is left out and hides no other.
pub(in crate::sqlite) fn claim_queued(conn: &Connection, claim: &ClaimQueued) -> Result<Vec<Record>, Error> {
    let mut query = conn.prepare_cached(select_task!(
        "INDEXED BY tasks_live WHERE ended_at IS NULL AND status = 'queued' ORDER BY seq LIMIT ?1"
    ))?;
    let rows =
        query.query_map([claim.limit], |row| Ok(row::decode(row)))?.collect::<rusqlite::Result<Vec<_>>>()?;
    let mut records: Vec<_> = rows.into_iter().filter_map(Result::ok).collect();
    let waiting: Vec<_> =
        records.iter().map(|record| QueuedTask { id: record.id.clone(), kind: record.kind }).collect();
    let starts = queue::decide(&QueueView { policy: claim.policy, waiting: &waiting });
    records.retain(|record| starts.contains(&Start(record.id.clone())));
    let mut update = conn.prepare_cached(
        "UPDATE tasks SET status = ?2, node = ?3, boot_id = ?4 WHERE seq = ?1 AND status = 'queued'",
    )?;
    for record in &mut records {
        record.status = transition::next(record.status, Transition::Claimed)
            .map_err(|error| Error::BadRow { task: record.id.to_string(), why: error.to_string() })?;
        record.node.clone_from(&claim.node);
        record.boot_id.clone_from(&claim.boot_id);
        let place = params![row::signed(record.seq), record.status.as_str(), record.node, record.boot_id];
        expect_one(update.execute(place)?, record)?;
    }
    Ok(records)
}

fn remember(
    conn: &Connection,
    owner: &str,
    request: &Idempotency,
    task: &TaskId,
    joined: bool,
) -> Result<(), Error> {
    let Idempotency { key, body_hash, expires_at } = request;
    conn.prepare_cached(
        "INSERT OR REPLACE INTO idempotency (owner, key, body_hash, task_id, expires_at, joined) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?
    .execute(params![owner, key, body_hash, task.as_str(), expires_at.as_millis(), joined])?;
    Ok(())
}
