//! Codex: by its own queue (`codex queue`, since 0.166), which is durable and goes to the thread that is named; else by one more turn.
//!
//! The queue takes a message whether a terminal has the thread open or not, and starts the turn when the thread is idle: to be busy is its own
//! affair. An exit code of 0 says that it has the message. Where nothing of Codex runs, it keeps the message until somebody goes on with the
//! thread; who wants the agent to be run then gets one more turn (`codex exec resume`), as does a Codex without a queue. That is taken only
//! where no live process has the thread's file open: the file itself, by whatever path it was opened. A server that hangs takes nothing up.
//!
//! The queue takes the same message twice. So what an attempt before this one may have said is looked for in the thread's file first; of one more turn
//! that counts only where the model answered.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use homing_model::{Session, turn};
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::rollout::{self, Turn};
use super::{FOLDER, QUEUES};
use crate::wake::told::{self, Told};
use crate::wake::{Readiness, Surroundings, Verdict, WakeRequest, program, socket};

/// The queue answers at once; its daemon may have to be started.
const QUEUE: Duration = Duration::from_secs(60);
/// Why a thread waits that no process has open.
const CLOSED: &str = "no process of Codex has the thread open; it is delivered when the thread is resumed (`homing install codex`), and \
                      `[wake] headless = true` runs it";
/// An idle thread has begun a turn with a queued message by then.
const TAKEN_UP: Duration = Duration::from_secs(15);
/// Between two looks at the thread's file.
const LOOK: Duration = Duration::from_millis(100);
/// A turn that takes longer is left to itself.
const TURN: Duration = Duration::from_secs(60 * 60);

/// Whether the thread can take something now. Its queue takes a message at any time, and each costs a turn: what ends while the thread is in the
/// middle of a turn, or open nowhere, waits here and goes together.
pub(super) fn readiness(session: &Session, runs: bool, surroundings: &Surroundings) -> Readiness {
    let Some(folder) = surroundings.folder_of(session, FOLDER) else { return Readiness::Ready };
    match rollout::turn(&folder, &session.id) {
        // Without a file of the thread nothing is known of it.
        None => Readiness::Ready,
        Some(_) if !rollout::is_open(&folder, &session.id) => match runs && !is_served(&folder) {
            true => Readiness::Ready,
            false => Readiness::Closed(CLOSED.to_owned()),
        },
        Some(Turn::Over) => Readiness::Ready,
        Some(Turn::UnderWay) => Readiness::Busy("the thread is in the middle of a turn".to_owned()),
    }
}

pub(super) async fn wake(
    session: &Session,
    request: WakeRequest<'_>,
    surroundings: &Surroundings,
) -> Verdict {
    match readiness(session, request.runs, surroundings) {
        Readiness::Ready => {}
        Readiness::Busy(why) | Readiness::Closed(why) => return Verdict::NotNow(why),
    }
    let path = surroundings.path_of(session);
    let Some(program) = program::of(session, path) else {
        return Verdict::Failed("`codex` is not where the session looked for programs".to_owned());
    };
    let version = program::version(&program, path);
    let mut command = Command::new(&program);
    command.env("PATH", path);
    surroundings.prepare(&mut command);
    if let Some(folder) = &session.folder {
        command.env("CODEX_HOME", folder);
    }
    let folder = surroundings.folder_of(session, FOLDER);
    let open = || folder.as_ref().is_some_and(|folder| rollout::is_open(folder, &session.id));
    let served = || folder.as_ref().is_some_and(|folder| is_served(folder));
    let queues = version.is_some_and(|version| version >= QUEUES);
    let told =
        folder.as_ref().map(|folder| rollout::told(folder, &session.id, request.tried)).unwrap_or_default();
    let text = |counts: fn(Told) -> bool| {
        let news = told::untold(request.notices, &told, counts);
        (!news.is_empty()).then(|| turn::compose(&news, 0).text)
    };
    if queues && (!request.runs || served() || open()) {
        let Some(text) = text(|told| told != Told::Failed) else { return told_before() };
        command.args(["queue", "--thread", &session.id, "--message", &text]);
        if request.runs {
            command.arg("--resume");
        }
        return match program::run(command, b"", QUEUE) {
            Ok(ran) if ran.succeeded() => {
                if let Some(folder) = &folder {
                    taken_up(folder, &session.id, request).await;
                }
                Verdict::Delivered(format!("codex queue: {}", ran.last_line()))
            }
            Ok(ran) => Verdict::Failed(format!("codex queue: {}", ran.last_line())),
            Err(error) => Verdict::Failed(format!("codex queue could not be run: {error}")),
        };
    }
    if !request.runs {
        let version =
            version.map_or_else(|| "of an unknown version".to_owned(), |version| version.to_string());
        return Verdict::Failed(format!(
            "codex {version} has no queue (it has since {QUEUES}): update it, or set `[wake] headless = true`"
        ));
    }
    if open() {
        return Verdict::NotNow("another process has the thread open".to_owned());
    }
    match text(|told| told == Told::Answered) {
        Some(text) => resume(command, session, &text),
        None => told_before(),
    }
}

/// Waits until the thread has taken a message up, which it does when it is idle: until then it looks idle, and another message would be a turn of its
/// own. The queue keeps what is not taken up.
async fn taken_up(folder: &Path, thread: &str, request: WakeRequest<'_>) {
    let ids: Vec<_> = request.notices.iter().map(|notice| notice.id.clone()).collect();
    let end = Instant::now() + TAKEN_UP;
    while rollout::is_open(folder, thread) && rollout::told(folder, thread, &ids).is_empty() {
        if Instant::now() >= end {
            return;
        }
        sleep(LOOK).await;
    }
}

fn told_before() -> Verdict {
    Verdict::Delivered("it is in the thread since an attempt before this one".to_owned())
}

fn resume(mut command: Command, session: &Session, text: &str) -> Verdict {
    command.args(["exec", "resume", "--json", "--skip-git-repo-check", &session.id, "-"]);
    let judged = program::start(command, text.as_bytes()).and_then(|mut running| {
        let over = running.ends_within(TURN)?;
        let seen = running.seen()?;
        let lines = || seen.stdout.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        if lines().any(|line| line["type"] == "turn.completed") {
            return Ok(Verdict::Delivered("one more turn by `codex exec resume`".to_owned()));
        }
        // What it warns of before it asks its model is an item as well.
        let answers = |line: &Value| line["type"] == "item.completed" && line["item"]["type"] != "error";
        if !over && lines().any(|line| answers(&line)) {
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
    socket::connect(&folder.join("app-server-control/app-server-control.sock")).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_hangs_serves_nobody() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("app-server-control")).unwrap();
        let socket = folder.path().join("app-server-control/app-server-control.sock");
        assert!(!is_served(folder.path()));
        let (_listener, waiting) = socket::clogged(&socket);
        assert!(!waiting.is_empty());
        assert!(!is_served(folder.path()), "and nobody waits for it");
    }
}
