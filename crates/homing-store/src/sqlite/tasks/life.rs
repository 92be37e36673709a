//! What happens to an accepted task: it starts, its end is asked for, it ends.
//!
//! Each is a compare-and-set: the attempt must be the current one, and the transition table must know the step. A message that comes
//! twice, late, or for an earlier attempt changes nothing (P1).

use homing_model::notice::{Body, Completed};
use homing_model::notify::When;
use homing_model::schedule;
use homing_model::watch;
use homing_model::{
    Answer, Attempt, Ending, EventKind, Kind, Notify, Outcome, Progress, Status, TaskId, Timestamp,
    Transition, Verdict, transition,
};
use rusqlite::{Connection, params};
use serde_json::json;

use crate::outbox::Report;
use crate::record::{Record, Started, Stop};
use crate::sqlite::notices::events;
use crate::sqlite::notices::hooks;
use crate::sqlite::notices::inheritance;
use crate::sqlite::notices::publish;
use crate::sqlite::schema;
use crate::sqlite::tasks::row;
use crate::store::{Applied, Error};

/// The attempt's command was executed.
pub(in crate::sqlite) fn started(
    conn: &Connection,
    attempt: &Attempt,
    started: &Started,
) -> Result<Applied, Error> {
    let Some(mut record) = row::by_id(conn, &attempt.task)? else { return Ok(Applied::Unknown) };
    let step = transition::next(record.status, Transition::Started);
    // A stopping task takes the report of its start, but only once.
    let (Ok(status), None) = (step, record.started_at) else { return Ok(Applied::Rejected(record)) };
    if record.attempt != attempt.number {
        return Ok(Applied::Rejected(record));
    }
    let before = std::mem::replace(&mut record.status, status);
    record.pid = Some(started.pid);
    record.started_at = Some(started.at);
    let changed = conn
        .prepare_cached(
            "UPDATE tasks SET status = ?4, pid = ?5, started_at = ?6 WHERE seq = ?1 AND attempt = ?2 AND status = ?3",
        )?
        .execute(params![
            row::signed(record.seq),
            record.attempt,
            before.as_str(),
            status.as_str(),
            started.pid,
            started.at.as_millis()
        ])?;
    expect_one(changed, &record)?;
    let data = json!({ "pid": started.pid, "attempt": record.attempt });
    events::append(conn, EventKind::TaskStarted, started.at, &record, &data)?;
    Ok(Applied::Done(record))
}

/// What a stop means for work that somebody else does.
const NOT_OURS: &str = "nothing was signalled: homing did not start it";

/// Somebody asked for the end.
pub(in crate::sqlite) fn stop_requested(
    conn: &Connection,
    task: &TaskId,
    stop: Stop,
    entropy: u64,
    at_most: Option<When>,
    now: Timestamp,
) -> Result<Applied, Error> {
    let Some(mut record) = row::by_id(conn, task)? else { return Ok(Applied::Unknown) };
    // Nothing of an external task is ours to signal or to wait for.
    let external = record.kind == Kind::External;
    let step = if external { Transition::Ended(Verdict::Stopped) } else { Transition::StopRequested };
    let Ok(status) = transition::next(record.status, step) else {
        return Ok(Applied::Rejected(record));
    };
    let before = record.status;
    if status.is_terminal() {
        // Nothing ran, so there is nothing to wait for.
        let reason = if external { NOT_OURS } else { "stopped before it started" };
        let mut ending = Ending::never_started(Verdict::Stopped, reason, now);
        record.stop = Some(stop.by.as_str().into());
        ending.outcome.stopped_by = Some(stop.by);
        let report = Report { entropy, at_most, ..Report::default() };
        return end(conn, record, status, ending, report).map(Applied::Done);
    }
    record.status = status;
    let changed = conn
        .prepare_cached(
            "UPDATE tasks SET status = ?4, stop_requested_by = ?5, stop_signal = ?6, stop_grace_ms = ?7 \
             WHERE seq = ?1 AND attempt = ?2 AND status = ?3",
        )?
        .execute(params![
            row::signed(record.seq),
            record.attempt,
            before.as_str(),
            status.as_str(),
            stop.by,
            stop.signal,
            stop.grace_ms.map(row::signed)
        ])?;
    expect_one(changed, &record)?;
    events::append(conn, EventKind::TaskStopping, now, &record, &json!({ "by": stop.by }))?;
    record.stop = Some(stop);
    Ok(Applied::Done(record))
}

/// The attempt ended; the first to say so is believed. On a full disk (`less`) the report is shortened.
pub(in crate::sqlite) fn finish(
    conn: &Connection,
    attempt: &Attempt,
    ending: Ending,
    report: Report,
    less: bool,
) -> Result<Applied, Error> {
    let Some(record) = row::by_id(conn, &attempt.task)? else { return Ok(Applied::Unknown) };
    if record.attempt != attempt.number {
        return Ok(Applied::Rejected(record));
    }
    match transition::next(record.status, Transition::Ended(ending.verdict)) {
        Ok(status) => {
            let report = if less { report.shortened(&record.masks) } else { report };
            end(conn, record, status, ending, report).map(Applied::Done)
        }
        Err(_) => Ok(Applied::Rejected(record)),
    }
}

/// Who is told of what happens to a live task: nobody where the task or the operator says never.
fn told_alive(record: &Record, at_most: Option<When>) -> Option<&Notify> {
    let most = at_most.unwrap_or(When::Always);
    record.spec.notify.as_ref().filter(|notify| notify.on.at_most(most) != When::Never)
}

/// The output of a live attempt was watched up to here, and this is to be told of it, if anything.
pub(in crate::sqlite) fn watched(
    conn: &Connection,
    attempt: &Attempt,
    mut state: watch::State,
    body: Option<Body>,
    entropy: u64,
    at_most: Option<When>,
    now: Timestamp,
) -> Result<Applied, Error> {
    let Some(mut record) = row::by_id(conn, &attempt.task)? else { return Ok(Applied::Unknown) };
    let turn = record.watch.as_ref().map_or(0, |kept| kept.turn);
    if record.status.is_terminal() || record.attempt != attempt.number || state.turn != turn + 1 {
        return Ok(Applied::Rejected(record));
    }
    for held in state.paces.iter_mut().filter_map(|pace| pace.held.as_mut()) {
        record.masks.cover(&mut held.line);
    }
    let changed = conn
        .prepare_cached("UPDATE tasks SET watch = ?3 WHERE seq = ?1 AND attempt = ?2 AND ended_at IS NULL")?
        .execute(params![row::signed(record.seq), record.attempt, row::json(&record.id, &state)?])?;
    expect_one(changed, &record)?;
    record.watch = Some(state);
    if let Some(body) = body {
        publish::publish(conn, &record, body, now, told_alive(&record, at_most), entropy)?;
    }
    Ok(Applied::Done(record))
}

/// A live task says how far it is.
pub(in crate::sqlite) fn progress(
    conn: &Connection,
    task: &TaskId,
    mut progress: Progress,
) -> Result<Applied, Error> {
    let Some(mut record) = row::by_id(conn, task)? else { return Ok(Applied::Unknown) };
    if record.status.is_terminal() {
        return Ok(Applied::Rejected(record));
    }
    if record.kind == Kind::External {
        record.heard_at = Some(progress.at);
    }
    if let Some(text) = &mut progress.text {
        record.masks.cover(text);
    }
    let changed = conn
        .prepare_cached("UPDATE tasks SET progress = ?2, heard_at = ?3 WHERE seq = ?1 AND ended_at IS NULL")?
        .execute(params![
            row::signed(record.seq),
            row::json(task, &progress)?,
            record.heard_at.map(Timestamp::as_millis)
        ])?;
    expect_one(changed, &record)?;
    let data = json!({ "percent": progress.percent, "text": progress.text });
    events::append(conn, EventKind::TaskProgress, progress.at, &record, &data)?;
    record.progress = Some(progress);
    Ok(Applied::Done(record))
}

/// Somebody who runs a live external task was heard.
pub(in crate::sqlite) fn heard(conn: &Connection, task: &TaskId, now: Timestamp) -> Result<Applied, Error> {
    let Some(mut record) = row::by_id(conn, task)? else { return Ok(Applied::Unknown) };
    if record.status.is_terminal() || record.kind != Kind::External {
        return Ok(Applied::Rejected(record));
    }
    let changed = conn
        .prepare_cached("UPDATE tasks SET heard_at = ?2 WHERE seq = ?1 AND ended_at IS NULL")?
        .execute(params![row::signed(record.seq), now.as_millis()])?;
    expect_one(changed, &record)?;
    record.heard_at = Some(now);
    Ok(Applied::Done(record))
}

/// The one place where a task becomes terminal: its state, its outcome, the notice to all who are to be told, and the totals together.
fn end(
    conn: &Connection,
    mut record: Record,
    status: Status,
    ending: Ending,
    report: Report,
) -> Result<Record, Error> {
    let before = std::mem::replace(&mut record.status, status);
    if let (None, Some(at), Some(pid)) = (record.started_at, ending.started_at, ending.pid) {
        // Nobody was there to hear of the start; the log tells of it all the same, before it tells of the end.
        events::append(
            conn,
            EventKind::TaskStarted,
            at,
            &record,
            &json!({ "pid": pid, "attempt": record.attempt }),
        )?;
    }
    record.started_at = ending.started_at.or(record.started_at);
    record.ended_at = Some(ending.ended_at);
    record.duration_ms = ending.duration_ms;
    record.pid = ending.pid.or(record.pid);
    record.output_bytes = ending.output_bytes;
    record.output_dropped = ending.output_dropped;
    let mut outcome = ending.outcome;
    record.masks.cover_outcome(&mut outcome);
    record.outcome = Some(outcome.clone());
    if matches!(record.kind, Kind::External | Kind::Agent) {
        let mut answer = Answer::at_end(status, &outcome, report.answer);
        record.masks.cover(&mut answer.text);
        record.answer = Some(answer);
    }
    if let Some(agent) = &mut record.agent {
        let resumed = agent.heard.session_id.take();
        agent.heard = report.agent.unwrap_or_default();
        agent.heard.doing = None;
        agent.heard.session_id = agent.heard.session_id.take().or(resumed);
    }
    let outcome_text = row::json(&record.id, &outcome)?;
    if record.kind == Kind::Hook {
        let (verdict, result) = judge_hook(status, &outcome);
        let said = report.output_tail.lines().map(str::trim).rfind(|line| !line.is_empty());
        hooks::end(conn, &record, &verdict, &result, said, report.entropy, ending.ended_at)?;
    }
    let mut notify = record.spec.notify.clone();
    if let (Some(notify), Some(most)) = (&mut notify, report.at_most) {
        notify.on = notify.on.at_most(most);
    }
    let told = notify.as_ref();
    let told = told.filter(|notify| notify.tells(status, outcome.stopped_by.as_deref(), &record.owner));
    let body = Body::Completed(Box::new(Completed {
        status,
        outcome: Some(outcome),
        started_at: record.started_at,
        ended_at: record.ended_at,
        duration_ms: record.duration_ms,
        output_tail: report.output_tail,
        output_bytes: record.output_bytes,
        output_truncated: report.output_truncated,
        output_path: report.output_path,
        answer: record.answer.as_ref().map(|answer| answer.text.clone()),
        held_back: report.held_back,
    }));
    let ended_seq = match record.kind {
        Kind::Hook => events::last(conn)?,
        Kind::Command | Kind::Agent | Kind::External => {
            publish::publish(conn, &record, body, ending.ended_at, told, report.entropy)?
        }
    };
    let changed = conn
        .prepare_cached(
            "UPDATE tasks SET status = ?4, started_at = ?5, ended_at = ?6, ended_seq = ?7, duration_ms = ?8, pid = ?9, \
             outcome = ?10, stop_requested_by = ?11, output_bytes = ?12, output_dropped = ?13, \
             answer = ?14, answer_state = ?15, agent = ?16, agent_session = ?17 \
             WHERE seq = ?1 AND attempt = ?2 AND status = ?3 AND ended_at IS NULL",
        )?
        .execute(params![
            row::signed(record.seq),
            record.attempt,
            before.as_str(),
            status.as_str(),
            record.started_at.map(Timestamp::as_millis),
            ending.ended_at.as_millis(),
            ended_seq,
            record.duration_ms.map(row::signed),
            record.pid,
            outcome_text,
            record.stop.as_ref().map(|stop| &stop.by),
            row::signed(record.output_bytes),
            row::signed(record.output_dropped),
            record.answer.as_ref().map(|answer| &answer.text),
            record.answer.as_ref().map(|answer| answer.state.as_str()),
            record.agent.as_ref().map(|agent| row::json(&record.id, agent)).transpose()?,
            record.agent.as_ref().and_then(|agent| agent.heard.session_id.as_ref()),
        ])?;
    expect_one(changed, &record)?;
    inheritance::inherit(conn, &record, ending.ended_at)?;
    match record.kind {
        Kind::Hook => schema::count_hooks(conn, 1)?,
        Kind::Command | Kind::Agent | Kind::External => schema::count_finished(conn, 1, kept(&record))?,
    }
    Ok(record)
}

/// The exit code by which a hook says that it is busy (`EX_TEMPFAIL`).
const BUSY: i32 = 75;
/// The exit code by which a wake says that another attempt would fail in the same way (`EX_CONFIG`). Of a command it is a failure like any other.
const GIVEN_UP: i32 = 78;

/// What a hook's end means for what it was given, and in words. One that was ended says nothing by its code.
fn judge_hook(status: Status, outcome: &Outcome) -> (schedule::Verdict, String) {
    let by_itself = matches!(status, Status::Succeeded | Status::Failed);
    let why = match (outcome.exit_code, outcome.signal, &outcome.reason) {
        (Some(0), _, _) if by_itself => return (schedule::Verdict::Delivered, "exit 0".to_owned()),
        (Some(BUSY), _, _) if by_itself => return (schedule::Verdict::Busy, "busy".to_owned()),
        (Some(GIVEN_UP), _, _) if by_itself => return (schedule::Verdict::Gone, format!("exit {GIVEN_UP}")),
        (Some(code), _, _) if by_itself => format!("exit {code}"),
        (Some(code), _, _) => format!("{status}, exit {code}"),
        (None, Some(signal), _) if status == Status::TimedOut => {
            format!("{status}, ended by signal {signal}")
        }
        (None, Some(signal), _) => format!("ended by signal {signal}"),
        (None, None, Some(reason)) => reason.clone(),
        (None, None, None) => "it did not end by itself".to_owned(),
    };
    (schedule::Verdict::Failed { why: why.clone(), retry_after: None }, why)
}

/// Bytes of output that are still on the disk.
pub(in crate::sqlite) fn kept(record: &Record) -> i64 {
    row::signed(record.output_bytes.saturating_sub(record.output_dropped))
}

/// The row was read in this transaction, by the only writer: it cannot have moved, unless it contradicts itself.
pub(in crate::sqlite) fn expect_one(changed: usize, record: &Record) -> Result<(), Error> {
    if changed == 1 {
        return Ok(());
    }
    let why = "its state and its times contradict each other".to_owned();
    Err(Error::BadRow { task: record.id.to_string(), why })
}

#[cfg(test)]
mod tests {
    use homing_model::queue::StartPolicy;
    use homing_model::{OnDuplicate, Spec};

    use super::*;
    use crate::record::NewTask;
    use crate::sqlite::tasks::submit::submit;
    use crate::store::{EventFilter, Submit};

    #[test]
    fn a_hook_that_was_ended_delivered_nothing_whatever_its_code_says() {
        let judged =
            |status, code| judge_hook(status, &Outcome { exit_code: Some(code), ..Outcome::default() });
        assert_eq!(judged(Status::Succeeded, 0).0, schedule::Verdict::Delivered);
        assert_eq!(judged(Status::Failed, BUSY).0, schedule::Verdict::Busy);
        for status in [Status::TimedOut, Status::Stopped] {
            for code in [0, BUSY, 3] {
                let (verdict, why) = judged(status, code);
                assert!(matches!(verdict, schedule::Verdict::Failed { .. }), "{status} {code}: {verdict:?}");
                assert_eq!(why, format!("{status}, exit {code}"));
            }
        }
        let by_signal = |status| judge_hook(status, &Outcome { signal: Some(15), ..Outcome::default() }).1;
        assert_eq!(by_signal(Status::Failed), "ended by signal 15");
        assert_eq!(by_signal(Status::TimedOut), "timed_out, ended by signal 15");
    }

    #[test]
    fn p1_a_stop_ends_a_queued_task_at_once() {
        let mut conn = Connection::open_in_memory().unwrap();
        schema::migrate(&mut conn).unwrap();
        let now = Timestamp::from_millis(5);
        let id = TaskId::from_entropy(1);
        let task = NewTask {
            kind: Kind::Command,
            tracking: None,
            agent: None,
            id: id.clone(),
            spec: Spec::default(),
            owner: "ann".into(),
            command: "true".into(),
            env_names: Vec::new(),
            volatile_secrets: Vec::new(),
            masks: homing_model::Masks::default(),
            parent: None,
            depth: 0,
            network: false,
            node: "here".into(),
            boot_id: "this".into(),
        };
        submit(
            &conn,
            Submit {
                task,
                on_duplicate: OnDuplicate::Join,
                children: u32::MAX,
                idempotency: None,
                policy: StartPolicy::HoldAll,
            },
            now,
        )
        .unwrap();
        let Applied::Done(record) = stop_requested(&conn, &id, "bob".into(), 1, None, now).unwrap() else {
            panic!("a queued task takes a stop")
        };
        assert_eq!((record.status, record.ended_at), (Status::Stopped, Some(now)));
        assert_eq!(record.outcome.as_ref().and_then(|outcome| outcome.stopped_by.as_deref()), Some("bob"));
        assert_eq!(row::by_id(&conn, &id).unwrap().as_ref(), Some(&record));
        let log = events::after(&conn, 0, &EventFilter::default(), 10).unwrap();
        assert_eq!(log.events.last().map(|event| event.kind), Some(EventKind::TaskCompleted));
        assert_eq!(schema::meta(&conn, "finished"), Ok(1));
    }
}
