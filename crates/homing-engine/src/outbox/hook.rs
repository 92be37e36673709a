//! Hook tasks: claimed deliveries are given to a command or to the waker, which runs under a shim
//! like any task.
//!
//! One transaction gives the deliveries to the task and accepts it. From then on its end, recorded
//! by the shim, decides about them, and the transaction that ends it settles them. So no crash loses
//! them or gives them twice (P5, P10): before the commit nothing ran, and after it the next engine
//! finds the task unstarted, running or ended.
//!
//! While a wake runs, the inbox entries of its notices are held, so that no hook of the agent and no
//! waiter delivers them too. Its end acknowledges or frees them.

use std::sync::Arc;

use homing_agents::registry;
use homing_model::notice::Body;
use homing_model::spec::LONGEST_COMMAND;
use homing_model::{Channel, Kind, Notice, OsText, Route, Spec, WakeOrder, agent, turn, wake};
use homing_store::NewTask;
use homing_store::outbox::{Claimed, Wake};
use homing_store::store;

use crate::admission::accept::{self, AcceptedTask, Execution, LaunchData};
use crate::admission::commit::commit;
use crate::engine::Inner;
use crate::error::Error;
use crate::supervisor::launch::Values;

/// What the command reads, in its folder.
const NOTICES: &str = "notices.json";
/// A command that takes longer is ended, and the attempt has failed.
const TIME_LIMIT_MS: u64 = 60_000;
/// The same for a wake, which may run a turn of an agent, or wait until a session at work has read
/// what it said: its entry stays held as long as that may happen. The waker itself ends before.
const TURN_LIMIT_MS: u64 = wake::LONGEST_MS.unsigned_abs() + 10 * 60_000;
/// What is kept of its output, for diagnosis.
const MAX_OUTPUT_BYTES: u64 = 1 << 20;

/// Gives claimed deliveries to a hook task: a command line, or the waker with its order. The first
/// notice is in its environment.
///
/// # Errors
/// If its folder cannot be made or the ledger cannot be written; the claims end with their leases.
pub(super) async fn hand_over(
    inner: &Arc<Inner>,
    channel: &Channel,
    waker: &[OsText],
    claims: &[Claimed],
) -> Result<(), Error> {
    let Some(first) = claims.first() else { return Ok(()) };
    let (settings, now) = (inner.config().wake, inner.now());
    let input = input(channel, claims, settings)?;
    let values = environment(inner.default_env.clone(), first);
    let row = row(inner, channel, waker, first, &values);
    let limit = row.spec.timeout_ms.and_then(|limit| i64::try_from(limit).ok()).unwrap_or(i64::MAX);
    let wake = channel.spends_budget(registry::is_session).then(|| Wake {
        owner: first.owner.clone(),
        budget: settings.budget(),
        until: matches!(channel, Channel::Wake { .. }).then(|| now.plus_millis(limit)),
    });
    let given = claims.iter().map(|claim| (claim.id.clone(), claim.fence)).collect();
    let execution = Execution::Command(LaunchData { values, input: Some((NOTICES, input)) });
    let mut hook = AcceptedTask { row, execution };
    // None where a claim is no longer ours, the budget is spent, or the id was used before: they are due again.
    commit(inner, &mut hook, |row| inner.store.hand_over(given, row, wake, now), Option::as_ref).await?;
    Ok(())
}

fn row(inner: &Inner, channel: &Channel, waker: &[OsText], first: &Claimed, values: &Values) -> NewTask {
    let (shell, argv, limit) = match channel {
        Channel::Command { line, .. } => (Some(line.as_str().into()), Vec::new(), TIME_LIMIT_MS),
        _ => (None, waker.to_vec(), TURN_LIMIT_MS),
    };
    let spec = Spec {
        shell,
        argv,
        cwd: Some(folder_of(first).unwrap_or_else(|| inner.fallback_cwd.clone())),
        timeout_ms: Some(limit),
        max_output_bytes: Some(MAX_OUTPUT_BYTES),
        ..Spec::default()
    };
    // The line itself is only for the shell.
    let command = first.shown.strip_prefix("exec:").unwrap_or(&first.shown).to_owned();
    let env_names = values.keys().cloned().collect();
    NewTask { kind: Kind::Hook, env_names, ..accept::row(inner, spec, command) }
}

fn input(channel: &Channel, claims: &[Claimed], settings: wake::Settings) -> Result<String, Error> {
    let mut input = match channel {
        Channel::Command { .. } => command_input(claims),
        _ => serde_json::json!(order(claims, settings)?).to_string(),
    };
    input.push('\n');
    Ok(input)
}

/// The input of a command: the notices as they are kept, and as a text that is fit for a model. A
/// command that passes their fields on would pass on what any task wrote.
fn command_input(claims: &[Claimed]) -> String {
    let notices: Vec<&str> = claims.iter().map(|claim| claim.notice.as_str()).collect();
    let known: Vec<Notice> = notices.iter().filter_map(|notice| serde_json::from_str(notice).ok()).collect();
    // All of them: what is left out here is in no inbox.
    let texts: Vec<String> = known.chunks(turn::MOST).map(|some| turn::compose(some, 0).text).collect();
    format!("{{\"notices\":[{}],\"text\":{}}}", notices.join(","), serde_json::json!(texts.join("\n")))
}

/// The order of a wake: by the address of the newest notice, since a session may have moved on.
fn order(claims: &[Claimed], settings: wake::Settings) -> Result<WakeOrder, Error> {
    let read = |claim: &Claimed| {
        serde_json::from_str::<Notice>(&claim.notice).map_err(|error| {
            let why = format!("its notice is damaged: {error}");
            Error::from(store::Error::BadRow { task: claim.task_id.to_string(), why })
        })
    };
    let notices = claims.iter().map(read).collect::<Result<_, _>>()?;
    let route = claims.iter().rev().find_map(|claim| claim.route.clone());
    let was_headless = matches!(&route, Some(Route::Session(session)) if session.headless);
    // Also one that was put off: the session may have taken it up since.
    let tried = claims.iter().filter(|claim| claim.said && !claim.again);
    let tried = tried.map(|claim| claim.notice_id.clone()).collect();
    Ok(WakeOrder::new(notices, route, settings.runs(was_headless), tried))
}

/// The folder of the task that the notice is about, if it is still there: relative paths in the line
/// mean what they meant there.
fn folder_of(claim: &Claimed) -> Option<OsText> {
    let notice = serde_json::from_str::<Notice>(&claim.notice).ok()?;
    let cwd = notice.task.cwd.filter(|cwd| std::path::Path::new(cwd).is_dir())?;
    Some(OsText::from(cwd.as_str()))
}

/// The environment of a hook task: the first notice in a few words. Calls of homing from inside it
/// act for its owner.
fn environment(mut values: Values, claim: &Claimed) -> Values {
    let mut set = |name: &str, value: String| values.insert(name.to_owned(), OsText::from(value.as_str()));
    set("HOMING_TASK_ID", claim.task_id.to_string());
    set("HOMING_NOTICE_ID", claim.notice_id.to_string());
    set("HOMING_OWNER", claim.owner.clone());
    if let Ok(notice) = serde_json::from_str::<Notice>(&claim.notice) {
        set("HOMING_NOTICE_TYPE", notice.body.kind().to_string());
        // One that an earlier release kept may be longer than the kernel takes.
        let mut command = notice.task.command.replace('\0', "");
        agent::cut(&mut command, LONGEST_COMMAND);
        set("HOMING_COMMAND", command);
        set("HOMING_NAME", notice.task.name.unwrap_or_default());
        if let Body::Completed(completed) = notice.body {
            set("HOMING_STATUS", completed.status.to_string());
            let code = completed.outcome.and_then(|outcome| outcome.exit_code);
            set("HOMING_EXIT_CODE", code.map(|code| code.to_string()).unwrap_or_default());
            set("HOMING_OUTPUT", completed.output_path.unwrap_or_default());
        }
    }
    values
}

#[cfg(test)]
mod tests {
    use homing_model::{DeliveryId, NoticeId, Target, TaskId, Timestamp};

    use super::*;

    const NOTICE: &str = r#"{"id":"n-2222222222","seq":1,"at":"2026-01-01T00:00:00.000Z","type":"task.quiet",
        "quiet_ms":5,"waiting_for_input":false,"task":{"id":"t-2222222222","owner":"a","command":"b","labels":{}}}"#;

    #[test]
    fn a_wake_is_told_what_may_have_been_told_before_and_was_not_asked_for_again() {
        let claim = |n: u64, said: bool, again: bool| Claimed {
            id: DeliveryId::from_entropy(n),
            fence: 1,
            notice_id: NoticeId::from_entropy(n),
            task_id: TaskId::from_entropy(n),
            owner: "claude:s1".into(),
            target: Target::Wake(None),
            shown: "wake".into(),
            route: None,
            secret: None,
            network: false,
            attempts: 0,
            busy: 0,
            again,
            said,
            created_at: Timestamp::from_millis(0),
            notice: NOTICE.into(),
        };
        let claims =
            [claim(1, false, false), claim(2, true, false), claim(3, true, true), claim(4, true, false)];
        let order = order(&claims, wake::Settings::default()).unwrap();
        assert_eq!(order.tried, [2, 4].map(NoticeId::from_entropy));
    }
}
