//! Command hooks and wakes: claimed deliveries are given to a command, which runs under a shim like any task.
//!
//! One transaction gives the deliveries to the command and accepts it; from there on its end, recorded by the shim, decides what became of
//! them, and the same transaction that ends it settles them. So whatever dies in between, they are neither lost nor given twice (P5, P10):
//! before the commit nothing ran, and after it whoever opens the home next finds the command unstarted, running or ended.
//!
//! A wake is the same with a program of ours, which is told the way besides. While it runs, the inbox entries of what it tells are held:
//! neither a hook of the agent nor anybody else tells them a second time. Its end acknowledges or frees them.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;

use homing_model::notice::Body;
use homing_model::spec::LONGEST_COMMAND;
use homing_model::{
    Channel, Kind, Masks, Notice, OsText, Route, Spec, Stdin, TaskId, WakeOrder, agent, turn, wake,
};
use homing_store::NewTask;
use homing_store::outbox::{Claimed, Wake};
use homing_store::store;
use rustix::fs::{Mode, OFlags};

use crate::admission::submit;
use crate::engine::Engine;
use crate::entropy;
use crate::error::Error;
use crate::supervisor::launch::Values;
use crate::supervisor::{self, Begin};

/// What the command reads, in its folder.
const NOTICES: &str = "notices.json";
/// A hook that takes longer is ended, and the attempt has failed.
const TIME_LIMIT_MS: u64 = 60_000;
/// The same of a wake, which may be a whole turn of an agent, or have said something that a session at work keeps: as long as that may tell it, the
/// entry is nobody else's to tell. What makes it leaves before.
const TURN_LIMIT_MS: u64 = wake::LONGEST_MS.unsigned_abs() + 10 * 60_000;
/// So much of what it prints is kept for diagnosis.
const MOST_OUTPUT: u64 = 1 << 20;

/// What claimed deliveries are given to.
#[derive(Debug, Clone, Copy)]
pub enum Handler<'a> {
    /// A command line.
    Line(&'a str),
    /// A program of ours that wakes, with these arguments.
    Waker(&'a [OsText]),
}

impl Engine {
    /// Gives claimed deliveries to a command: `{"notices":[…],"text":"…"}` on its input, the first of them in its environment. What wakes is told
    /// the `route` instead of the text, and whether the agent may be run (`runs`).
    ///
    /// # Errors
    /// If its folder cannot be made or the ledger cannot be written; the claims then end by themselves.
    pub async fn hand_over(
        &self,
        channel: &Channel,
        to: Handler<'_>,
        claims: &[Claimed],
    ) -> Result<(), Error> {
        let inner = &self.inner;
        let Some(first) = claims.first() else { return Ok(()) };
        let values = environment(inner.default_env.clone(), first);
        let given: Vec<_> = claims.iter().map(|claim| (claim.id.clone(), claim.fence)).collect();
        let settings = inner.config().wake;
        let now = inner.now();
        let (mut body, limit) = match to {
            Handler::Line(_) => (command_input(claims), TIME_LIMIT_MS),
            Handler::Waker(_) => {
                let order = serde_json::to_string(&order(claims, settings)?);
                (order.map_err(|error| bad_notice(first, &error))?, TURN_LIMIT_MS)
            }
        };
        body.push('\n');
        let until = matches!(channel, Channel::Wake { .. })
            .then(|| now.plus_millis(i64::try_from(limit).unwrap_or(i64::MAX)));
        let wake = channel.spends_budget().then(|| Wake {
            owner: first.owner.clone(),
            budget: settings.budget(),
            until,
        });
        let id = TaskId::from_entropy(entropy::draw());
        let folder =
            submit::make_folder(inner, &id, &values, None).map_err(|error| submit::folder_error(&error))?;
        let written = write(&folder, body.as_bytes());
        let input = inner.home.task(&id).join(NOTICES);
        let (shell, argv) = match to {
            Handler::Line(line) => (Some(line.into()), Vec::new()),
            Handler::Waker(argv) => (None, argv.to_vec()),
        };
        let spec = Spec {
            shell,
            argv,
            cwd: Some(folder_of(first).unwrap_or_else(|| inner.fallback_cwd.clone())),
            stdin: Stdin::File(input.into_os_string().into()),
            timeout_ms: Some(limit),
            max_output_bytes: Some(MOST_OUTPUT),
            ..Spec::default()
        };
        let hook = NewTask {
            id: id.clone(),
            kind: Kind::Hook,
            tracking: None,
            agent: None,
            // The line itself is only for the shell.
            command: first.shown.strip_prefix("exec:").unwrap_or(&first.shown).to_owned(),
            spec,
            owner: String::new(),
            env_names: values.keys().cloned().collect(),
            volatile_secrets: Vec::new(),
            masks: Masks::default(),
            parent: None,
            depth: 0,
            network: false,
            node: inner.node.clone(),
            boot_id: inner.boot_id.clone(),
        };
        inner.live.expect(&id);
        let accepted = match written {
            Ok(()) => inner.store.hand_over(given, hook, wake, now).await.map_err(Error::from),
            Err(error) => Err(submit::folder_error(&error)),
        };
        let record = match accepted {
            Ok(Some(record)) => record,
            // The claims were no longer ours, the budget was spent meanwhile, or the id was used before: they come again.
            refused => {
                let _ = inner.home.remove_task(&id);
                inner.live.expect_no_more(&id);
                return refused.map(drop);
            }
        };
        let attendance = inner.live.enter(record.clone());
        inner.live.expect_no_more(&id);
        if let Some(attendance) = attendance {
            tokio::spawn(supervisor::attend(
                Arc::clone(inner),
                record,
                attendance,
                Begin::Launch(folder, values),
                None,
            ));
        }
        Ok(())
    }
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
        serde_json::from_str::<Notice>(&claim.notice).map_err(|error| bad_notice(claim, &error))
    };
    let notices = claims.iter().map(read).collect::<Result<_, _>>()?;
    let route = claims.iter().rev().find_map(|claim| claim.route.clone());
    let was_headless = matches!(&route, Some(Route::Session(session)) if session.headless);
    // Also one that was put off: the session may have taken it up since.
    let tried = claims.iter().filter(|claim| claim.said && !claim.again);
    let tried = tried.map(|claim| claim.notice_id.clone()).collect();
    Ok(WakeOrder::new(notices, route, settings.runs(was_headless), tried))
}

fn bad_notice(claim: &Claimed, error: &serde_json::Error) -> Error {
    let why = format!("its notice is damaged: {error}");
    store::Error::BadRow { task: claim.task_id.to_string(), why }.into()
}

/// Where the task ran that the first notice is about, if that is still a folder: a relative path in the line means what it meant there.
fn folder_of(claim: &Claimed) -> Option<OsText> {
    let notice = serde_json::from_str::<Notice>(&claim.notice).ok()?;
    let cwd = notice.task.cwd.filter(|cwd| std::path::Path::new(cwd).is_dir())?;
    Some(OsText::from(cwd.as_str()))
}

fn write(folder: impl AsFd, bytes: &[u8]) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let file = rustix::fs::openat(folder, NOTICES, flags, Mode::RUSR | Mode::WUSR)?;
    io::Write::write_all(&mut std::fs::File::from(file), bytes)
}

/// What a hook finds in its environment: the first notice in a few words. Whoever calls homing from inside it speaks for its owner.
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
    use homing_model::{DeliveryId, NoticeId, Target, Timestamp};

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
