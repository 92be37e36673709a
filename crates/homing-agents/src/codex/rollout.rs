//! The files that Codex keeps of a thread (`rollout-TIME-THREAD.jsonl`): whether somebody has one open, and what they say of us.

use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use homing_model::NoticeId;
use homing_model::turn::MARK;
use homing_sys::{plain, process};
use serde_json::Value;

use super::threads;
use crate::wake::told::{self, Line, Told};

/// A file by what it is, and the name that whoever has it open has it by.
struct Rollout {
    name: OsString,
    device: u64,
    inode: u64,
}

/// The files of a thread. The folder, one below it and the file may be links.
fn rollouts(folder: &Path, thread: &str) -> Vec<Rollout> {
    let found = threads::of_thread(&folder.join("sessions"), thread);
    let identified = found.iter().filter_map(|path| {
        let real = path.canonicalize().ok()?;
        let file = real.metadata().ok()?;
        Some(Rollout { name: real.file_name()?.to_owned(), device: file.dev(), inode: file.ino() })
    });
    identified.collect()
}

/// Whether a live process has the file of a thread open.
pub(super) fn is_open(folder: &Path, thread: &str) -> bool {
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

/// Which of these notices the thread was told, in words of ours, and what became of them. What cannot be read tells of none.
pub(super) fn told(folder: &Path, thread: &str, ids: &[NoticeId]) -> Vec<(NoticeId, Told)> {
    if ids.is_empty() {
        return Vec::new();
    }
    let recent = |path: &Path| {
        let file = plain::open(path).ok()?;
        let end = file.metadata().ok()?.len();
        told::recent(&file, end).ok()
    };
    let files = threads::of_thread(&folder.join("sessions"), thread);
    let read = files.iter().filter_map(|path| recent(path));
    read.flat_map(|lines| told::what_became_of(ids, &lines, judge)).collect()
}

/// Whether a thread is in the middle of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    /// Its last turn is over, or there was none.
    Over,
    /// It is.
    UnderWay,
}

/// How it is with the turns of a thread, by the end of its file. `None` if it has none, or none that can be read.
pub(super) fn turn(folder: &Path, thread: &str) -> Option<Turn> {
    let files = threads::of_thread(&folder.join("sessions"), thread);
    let newest = files.iter().max_by_key(|path| path.metadata().and_then(|file| file.modified()).ok())?;
    let file = plain::open(newest).ok()?;
    let lines = told::recent(&file, file.metadata().ok()?.len()).ok()?;
    let kinds = lines.lines().rev().filter(|line| line.contains("event_msg")).find_map(|line| {
        let found = serde_json::from_str::<Value>(line).ok()?;
        match (found["type"].as_str()?, found["payload"]["type"].as_str()?) {
            ("event_msg", "task_started") => Some(Turn::UnderWay),
            ("event_msg", "task_complete" | "turn_aborted") => Some(Turn::Over),
            _ => None,
        }
    });
    Some(kinds.unwrap_or(Turn::Over))
}

/// What a line says of us, if it does.
fn judge(line: &str) -> Option<Line> {
    let found = serde_json::from_str::<Value>(line).ok()?;
    let payload = &found["payload"];
    let kind = payload["type"].as_str()?;
    match (found["type"].as_str()?, kind) {
        ("response_item", "message") if payload["role"] == "assistant" => Some(Line::Answer),
        ("response_item", "message") => {
            (payload["role"] == "user" && line.contains(MARK)).then_some(Line::Ours)
        }
        // Calls of tools, and what it thinks.
        ("response_item", _) => Some(Line::Answer),
        ("event_msg", "task_complete" | "turn_aborted") => Some(Line::Trouble),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::symlink;

    use serde_json::json;

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
        // A process that another test is just starting has what this one has open for a moment longer.
        let is_closed = |thread: &str| {
            homing_testkit::wait_for(thread, || (!is_open(&path("codex"), thread)).then_some(()));
        };
        for (thread, file) in ["plain", "year", "file"].into_iter().zip(opened) {
            is_closed(thread);
            let file = File::open(file).unwrap();
            assert!(is_open(&path("codex"), thread), "{thread}");
            assert!(is_open(&path("kept"), thread), "{thread}");
            drop(file);
            is_closed(thread);
        }
        // A copy that somebody looks at is not the thread.
        write(&rollout(folder.path(), "plain"));
        let _copy = File::open(rollout(folder.path(), "plain")).unwrap();
        assert!(!is_open(&path("codex"), "plain"));
        assert!(!is_open(&path("codex"), "other"));
    }

    #[test]
    fn what_a_thread_was_told_and_whether_it_answered_is_in_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let day = folder.path().join("sessions/2026/01/02");
        std::fs::create_dir_all(&day).unwrap();
        let id: NoticeId = "n-2222222222".parse().unwrap();
        let item = |payload: Value| json!({ "type": "response_item", "payload": payload }).to_string();
        let message = |role: &str, text: &str| {
            item(json!({ "type": "message", "role": role, "content": [{ "text": text }] }))
        };
        let ours = message("user", &format!("{MARK} (notice {id})"));
        let printed =
            item(json!({ "type": "function_call_output", "output": format!("{MARK} (notice {id})") }));
        let answer = message("assistant", "ok");
        let call = item(json!({ "type": "function_call", "name": "shell" }));
        let user = message("user", "go on");
        let [begun, over, aborted] = ["task_started", "task_complete", "turn_aborted"]
            .map(|kind| json!({ "type": "event_msg", "payload": { "type": kind } }).to_string());
        for (lines, expected) in [
            (vec![&begun, &user, &answer, &over], None),
            (vec![&printed, &answer], None),
            (vec![&begun, &ours], Some(Told::Unanswered)),
            (vec![&begun, &ours, &user], Some(Told::Unanswered)),
            (vec![&begun, &ours, &over], Some(Told::Failed)),
            (vec![&begun, &ours, &aborted], Some(Told::Failed)),
            (vec![&begun, &ours, &call, &aborted], Some(Told::Answered)),
            (vec![&begun, &ours, &answer, &over], Some(Told::Answered)),
            (vec![&begun, &ours, &over, &begun, &ours, &answer], Some(Told::Answered)),
        ] {
            let text = lines.iter().map(|line| line.as_str()).collect::<Vec<_>>().join("\n");
            std::fs::write(day.join("rollout-2026-01-02T03-04-05-t1.jsonl"), text).unwrap();
            let expected: Vec<_> = expected.map(|told| (id.clone(), told)).into_iter().collect();
            assert_eq!(told(folder.path(), "t1", std::slice::from_ref(&id)), expected, "{lines:?}");
            assert_eq!(told(folder.path(), "t2", std::slice::from_ref(&id)), []);
        }
    }
}
