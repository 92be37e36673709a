//! Codex: by its own queue (`codex queue`, since 0.166), which is durable and goes to the thread that is named; else by one more turn.
//!
//! The queue takes a message whether a terminal has the thread open or not, and starts the turn when the thread is idle: to be busy is its own
//! affair. An exit code of 0 says that it has the message. Where nothing of Codex runs, it keeps the message until somebody goes on with the
//! thread; who wants the agent to be run then gets one more turn (`codex exec resume`), as does a Codex without a queue. That is taken only
//! where no live process has the thread's file open.

use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use homing_model::{Session, turn};
use homing_shim::process;
use serde_json::Value;

use super::program::{self, Version};
use super::{Order, Surroundings, Verdict};

/// The folder in the user's own.
pub(super) const FOLDER: &str = ".codex";
/// The first version with a queue.
pub(super) const QUEUES: Version = Version(0, 166, 0);
/// The queue answers at once; its daemon may have to be started.
const QUEUE: Duration = Duration::from_secs(60);
/// A turn that takes longer is left to itself.
const TURN: Duration = Duration::from_secs(60 * 60);

pub(super) fn wake(session: &Session, order: &Order, surroundings: &Surroundings) -> Verdict {
    let path = surroundings.path_of(session);
    let Some(program) = program::of(session, path) else {
        return Verdict::Failed("`codex` is not where the session looked for programs".to_owned());
    };
    let version = program::version(&program, path);
    let text = turn::compose(&order.notices, 0).text;
    let mut command = Command::new(&program);
    command.env("PATH", path);
    surroundings.prepare(&mut command);
    if let Some(folder) = &session.folder {
        command.env("CODEX_HOME", folder);
    }
    let folder = surroundings.folder_of(session, FOLDER);
    let open = || folder.as_ref().is_some_and(|folder| is_open(folder, &session.id));
    let served = || folder.as_ref().is_some_and(|folder| is_served(folder));
    let queues = version.is_some_and(|version| version >= QUEUES);
    if queues && (!order.runs || served() || open()) {
        command.args(["queue", "--thread", &session.id, "--message", &text]);
        if order.runs {
            command.arg("--resume");
        }
        return match program::run(command, b"", QUEUE) {
            Ok(ran) if ran.succeeded() => Verdict::Delivered(format!("codex queue: {}", ran.last_line())),
            Ok(ran) => Verdict::Failed(format!("codex queue: {}", ran.last_line())),
            Err(error) => Verdict::Failed(format!("codex queue could not be run: {error}")),
        };
    }
    if !order.runs {
        let version =
            version.map_or_else(|| "of an unknown version".to_owned(), |version| version.to_string());
        return Verdict::Failed(format!(
            "codex {version} has no queue (it has since {QUEUES}): update it, or set `[wake] headless = true`"
        ));
    }
    if open() {
        return Verdict::NotNow("another process has the thread open".to_owned());
    }
    resume(command, session, &text)
}

fn resume(mut command: Command, session: &Session, text: &str) -> Verdict {
    command.args(["exec", "resume", "--json", "--skip-git-repo-check", &session.id, "-"]);
    let judged = program::start(command, text.as_bytes()).and_then(|mut running| {
        let over = running.ends_within(TURN)?;
        let seen = running.seen()?;
        let said = |what: &str| {
            seen.stdout
                .lines()
                .filter_map(|line| serde_json::from_str::<Value>(line).ok())
                .any(|line| line["type"] == what)
        };
        if said("turn.completed") {
            return Ok(Verdict::Delivered("one more turn by `codex exec resume`".to_owned()));
        }
        if !over && said("item.completed") {
            return Ok(Verdict::Delivered("one more turn by `codex exec resume`, which goes on".to_owned()));
        }
        if !over {
            running.end()?;
        }
        Ok(Verdict::Failed(format!("codex exec resume: {}", seen.last_line())))
    });
    judged.unwrap_or_else(|error| Verdict::Failed(format!("codex exec resume could not be run: {error}")))
}

/// Whether Codex' own server runs, which takes up what is queued.
fn is_served(folder: &Path) -> bool {
    UnixStream::connect(folder.join("app-server-control/app-server-control.sock")).is_ok()
}

/// Whether a live process has the file of a thread open.
fn is_open(folder: &Path, thread: &str) -> bool {
    let sessions = folder.join("sessions");
    let ending = format!("-{thread}.jsonl");
    let holds = |pid: u32| {
        let files = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        files.filter_map(|file| std::fs::read_link(file.path()).ok()).any(|target| {
            target.starts_with(&sessions) && target.to_str().is_some_and(|path| path.ends_with(&ending))
        })
    };
    process::all().into_iter().filter(|process| !process.zombie).any(|process| holds(process.pid))
}
