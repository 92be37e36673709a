//! Codex: by its own queue (`codex queue`, since 0.166), which is durable and goes to the thread that is named; else by one more turn.
//!
//! The queue takes a message whether a terminal has the thread open or not, and starts the turn when the thread is idle: to be busy is its own
//! affair. An exit code of 0 says that it has the message. Where nothing of Codex runs, it keeps the message until somebody goes on with the
//! thread; who wants the agent to be run then gets one more turn (`codex exec resume`), as does a Codex without a queue. That is taken only
//! where no live process has the thread's file open: the file itself, by whatever path it was opened. A server that hangs takes nothing up.

use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use homing_model::{Session, turn};
use homing_shim::process;
use serde_json::Value;

use super::program::{self, Version};
use super::{Order, Surroundings, Verdict, socket, trace};

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
    socket::connect(&folder.join("app-server-control/app-server-control.sock")).is_ok()
}

/// A file by what it is, and the name that whoever has it open has it by.
struct Rollout {
    name: OsString,
    device: u64,
    inode: u64,
}

/// The files of a thread. The folder, one below it and the file may be links.
fn rollouts(folder: &Path, thread: &str) -> Vec<Rollout> {
    let found = trace::of_thread(&folder.join("sessions"), thread);
    let identified = found.iter().filter_map(|path| {
        let real = path.canonicalize().ok()?;
        let file = real.metadata().ok()?;
        Some(Rollout { name: real.file_name()?.to_owned(), device: file.dev(), inode: file.ino() })
    });
    identified.collect()
}

/// Whether a live process has the file of a thread open.
fn is_open(folder: &Path, thread: &str) -> bool {
    let rollouts = rollouts(folder, thread);
    if rollouts.is_empty() {
        return false;
    }
    let holds = |pid: u32| {
        let files = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        files.map(|file| file.path()).any(|file| {
            // By its name first: to look at what is behind a descriptor can take as long as its file system does.
            let Ok(target) = std::fs::read_link(&file) else { return false };
            let mut named =
                rollouts.iter().filter(|rollout| target.file_name() == Some(&rollout.name)).peekable();
            let open = named.peek().and_then(|_| std::fs::metadata(&file).ok());
            open.is_some_and(|open| {
                named.any(|rollout| (rollout.device, rollout.inode) == (open.dev(), open.ino()))
            })
        })
    };
    process::all().into_iter().filter(|process| !process.zombie).any(|process| holds(process.pid))
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_thread_is_open_by_whatever_path_its_file_was_opened() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let day = path("kept/sessions/2026/01/02");
        std::fs::create_dir_all(&day).unwrap();
        let write = |path: &Path| std::fs::write(path, "").unwrap();
        let rollout =
            |folder: &Path, thread: &str| folder.join(format!("rollout-2026-01-02T03-04-05-{thread}.jsonl"));
        write(&rollout(&day, "plain"));
        // The folder itself, a year of it, and a file may be kept elsewhere.
        symlink(path("kept"), path("codex")).unwrap();
        std::fs::create_dir_all(path("disk/12/31")).unwrap();
        write(&rollout(&path("disk/12/31"), "year"));
        symlink(path("disk"), path("kept/sessions/2025")).unwrap();
        write(&path("elsewhere"));
        symlink(path("elsewhere"), rollout(&day, "file")).unwrap();
        let opened = [rollout(&day, "plain"), rollout(&path("disk/12/31"), "year"), path("elsewhere")];
        for (thread, file) in ["plain", "year", "file"].into_iter().zip(opened) {
            assert!(!is_open(&path("codex"), thread), "{thread}");
            let file = File::open(file).unwrap();
            assert!(is_open(&path("codex"), thread), "{thread}");
            assert!(is_open(&path("kept"), thread), "{thread}");
            drop(file);
            assert!(!is_open(&path("codex"), thread), "{thread}");
        }
        // A copy that somebody looks at is not the thread.
        write(&rollout(folder.path(), "plain"));
        let _copy = File::open(rollout(folder.path(), "plain")).unwrap();
        assert!(!is_open(&path("codex"), "plain"));
        assert!(!is_open(&path("codex"), "other"));
    }

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
