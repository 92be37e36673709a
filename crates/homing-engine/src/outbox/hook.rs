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
use homing_model::{Kind, Masks, Notice, OsText, Route, Spec, Stdin, Target, TaskId, agent, turn, wake};
use homing_store::NewTask;
use homing_store::outbox::{Claimed, Wake};
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
    pub async fn hand_over(&self, to: Handler<'_>, claims: &[Claimed]) -> Result<(), Error> {
        let inner = &self.inner;
        let Some(first) = claims.first() else { return Ok(()) };
        let values = environment(inner.default_env.clone(), first);
        let given: Vec<_> = claims.iter().map(|claim| (claim.id.clone(), claim.fence)).collect();
        let notices: Vec<&str> = claims.iter().map(|claim| claim.notice.as_str()).collect();
        let settings = inner.config().wake;
        let now = inner.now();
        let (way, limit) = match to {
            Handler::Line(_) => (in_words(claims), TIME_LIMIT_MS),
            Handler::Waker(_) => (way(claims, settings), TURN_LIMIT_MS),
        };
        let body = format!("{{\"notices\":[{}]{way}}}\n", notices.join(","));
        let until = matches!(first.target, Target::Wake(_))
            .then(|| now.plus_millis(i64::try_from(limit).unwrap_or(i64::MAX)));
        let wake = wake::is_wake(&first.target, &first.owner).then(|| Wake {
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

/// The notices as a text that is fit for a model, beside them: a command that passes their fields on would pass on what anybody wrote.
fn in_words(claims: &[Claimed]) -> String {
    let notices: Vec<Notice> =
        claims.iter().filter_map(|claim| serde_json::from_str(&claim.notice).ok()).collect();
    // All of them: what is left out here is in no inbox.
    let texts: Vec<String> = notices.chunks(turn::MOST).map(|some| turn::compose(some, 0).text).collect();
    format!(",\"text\":{}", serde_json::json!(texts.join("\n")))
}

/// What a wake is told beside the notices: the way of the newest of them, since a session may have moved on, and which of them an attempt
/// before this one may have told.
fn way(claims: &[Claimed], settings: wake::Settings) -> String {
    let route = claims.iter().rev().find_map(|claim| claim.route.as_ref());
    let was_headless = matches!(route, Some(Route::Session(session)) if session.headless);
    let route =
        route.and_then(|route| serde_json::to_string(route).ok()).unwrap_or_else(|| "null".to_owned());
    // Also one that was put off: it may have been said all the same, and be taken up since.
    let tried = claims.iter().filter(|claim| claim.said && !claim.again);
    let tried: Vec<_> = tried.map(|claim| claim.notice_id.as_str()).collect();
    let tried = serde_json::json!(tried);
    format!(",\"route\":{route},\"runs\":{},\"tried\":{tried}", settings.runs(was_headless))
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
    use homing_model::{DeliveryId, NoticeId, Timestamp};

    use super::*;

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
            notice: "{}".into(),
        };
        let claims =
            [claim(1, false, false), claim(2, true, false), claim(3, true, true), claim(4, true, false)];
        let way = way(&claims, wake::Settings::default());
        let [second, fourth] = [2, 4].map(NoticeId::from_entropy);
        let expected = format!(r#","route":null,"runs":false,"tried":["{second}","{fourth}"]"#);
        assert_eq!(way, expected);
    }
}
