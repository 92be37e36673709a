//! From what the ledger keeps to what users see.

use homing_model::task::{NotifyInfo, OutputInfo};
use homing_model::{AgentInfo, InputWait, Kind, OsText, Progress, Status, Stdin, Task, Timestamp};
use homing_shim::output;
use homing_store::{Record, Tracking};
use tokio::time::Instant;

use crate::engine::Inner;
use crate::supervisor::launch;
use crate::watch;

/// Whether the output may be longer than the ledger says: the task runs, or something outlived it that may have written since.
fn may_have_grown(record: &Record) -> bool {
    let outlived = record.outcome.as_ref().is_some_and(|outcome| !outcome.survivors.is_empty());
    (record.status.is_active() && record.started_at.is_some()) || (outlived && !record.forgotten)
}

/// Program and arguments. A hook's line may hold what is not shown; its `command` does not.
fn argv(record: &Record) -> Vec<String> {
    let mut argv: Vec<_> = launch::argv(&record.spec).iter().map(|text| text.lossy().into_owned()).collect();
    if let (Kind::Hook, Some(line)) = (record.kind, argv.last_mut()) {
        line.clone_from(&record.command);
    }
    argv
}

/// Who is told, with nothing in an address that is not shown.
fn notify(record: &Record) -> NotifyInfo {
    let mut notify = record.spec.notify.as_ref().map(NotifyInfo::from).unwrap_or_default();
    for target in &mut notify.targets {
        record.masks.cover(target);
    }
    notify
}

/// Since when a live task that has an alarm for it printed nothing, once that is as long as the alarm says.
fn quiet_since(inner: &Inner, record: &Record, written_at: Option<i64>) -> Option<Timestamp> {
    // A silence that was asked for is none.
    let speaks = record.status.is_active() && record.status != Status::Paused;
    let after = record.spec.quiet_after_ms.filter(|_| speaks)?;
    let resumed = inner.live.stillness(&record.id).and_then(|news| news.borrow().since);
    let since = watch::last_output(record.started_at?, written_at.max(resumed));
    (inner.now().millis_since(since) >= after).then_some(since)
}

/// The agent behind a task, and what it is at while it runs.
fn agent(inner: &Inner, record: &Record) -> Option<(AgentInfo, Option<Progress>)> {
    let agent = record.agent.as_ref()?;
    let live = if record.status.is_terminal() { None } else { inner.live.heard(&record.id) };
    let progress = live.as_ref().and_then(|(heard, at)| {
        let turns = heard.turns.map(|turns| format!("turn {turns}"));
        let parts: Vec<String> = turns.into_iter().chain(heard.doing.clone()).collect();
        (!parts.is_empty()).then(|| Progress { percent: None, text: Some(parts.join(", ")), at: *at })
    });
    let heard = live.map_or_else(|| agent.heard.clone(), |(heard, _)| heard);
    let info = AgentInfo {
        name: agent.name.clone(),
        session_id: heard.session_id.or_else(|| agent.heard.session_id.clone()),
        prompt: record.spec.prompt.clone(),
        turns: heard.turns,
        cost_usd: heard.cost_usd,
        tokens: heard.tokens,
        doing: heard.doing,
        continues: agent.continues.clone(),
    };
    Some((info, progress))
}

/// A task as every surface shows it. Where its output may have grown since, the length is read from disk.
pub(crate) fn task(inner: &Inner, record: Record) -> Task {
    let path = inner.home.output(&record.attempt());
    let mut bytes = record.output_bytes;
    let mut dropped = record.output_dropped;
    let mut written_at = None;
    let external = record.kind == Kind::External;
    let left = if external { inner.roll.left(&record.id, Instant::now()) } else { None };
    if !external
        && may_have_grown(&record)
        && let Ok(folder) = inner.home.open_attempt(&record.attempt())
        && let Ok(extent) = output::extent(folder)
        && extent.end >= bytes
    {
        bytes = extent.end;
        written_at = extent.written_at;
        dropped = extent.end - extent.kept.min(extent.end);
    }
    let quiet_since = quiet_since(inner, &record, written_at);
    let looked = record
        .pid
        .filter(|_| record.spec.pty && record.status.is_active() && record.status != Status::Paused);
    let input_wait = looked.map(watch::input_wait).unwrap_or_default();
    let masked = |pattern: &String| record.masks.text(pattern).into_owned();
    let paces = record.watch.iter().flat_map(|state| &state.paces);
    let watch_off = record.spec.watch.iter().zip(paces).filter(|(_, pace)| pace.off);
    let watch_off = watch_off.map(|(pattern, _)| masked(pattern)).collect();
    let path = if record.forgotten || external { None } else { Some(path.to_string_lossy().into_owned()) };
    let lossy = |text: &OsText| text.lossy().into_owned();
    let (agent, at) = agent(inner, &record).unzip();
    Task {
        kind: record.kind,
        name: record.spec.name.clone(),
        description: record.spec.description.clone(),
        labels: record.spec.labels.clone(),
        argv: if record.forgotten { Vec::new() } else { argv(&record) },
        cwd: record.spec.cwd.as_ref().map(lossy),
        group: "default".into(),
        priority: 0,
        queued_reason: None,
        quiet_since,
        waiting_for_input: input_wait == InputWait::Yes,
        input_wait,
        watch: record.spec.watch.iter().map(masked).collect(),
        watch_off,
        quiet_after_ms: record.spec.quiet_after_ms,
        heartbeat_ms: record.spec.heartbeat_ms,
        agent,
        notify: notify(&record),
        answer_state: record.answer.as_ref().map(|answer| answer.state),
        answer: record.answer.map(|answer| answer.text),
        lease_ms: record.tracking.and_then(Tracking::lease_ms),
        lease_until: left.map(|left| inner.now().after(left)),
        heard_at: record.heard_at,
        progress: record.progress.or_else(|| at.flatten()),
        key: record.spec.key.clone(),
        pty: record.spec.pty,
        accepts_input: !record.status.is_terminal() && (record.spec.pty || record.spec.stdin == Stdin::Pipe),
        timeout_ms: record.spec.timeout_ms,
        output: OutputInfo { bytes, dropped, path },
        id: record.id,
        owner: record.owner,
        command: record.command,
        env_names: record.env_names,
        status: record.status,
        attempt: record.attempt,
        pid: record.pid,
        created_at: record.created_at,
        started_at: record.started_at,
        ended_at: record.ended_at,
        duration_ms: record.duration_ms,
        outcome: record.outcome,
        parent: record.parent,
        depth: record.depth,
        forgotten: record.forgotten,
    }
}
