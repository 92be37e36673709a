//! Which process of Qwen Code has a session open (`sessions/PID.json` of its folder), and where its transcripts are.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use homing_model::turn::MARK;
use homing_sys::{boot, plain, process};
use serde::Deserialize;
use serde_json::Value;

use crate::wake::told::Line;
use crate::wake::transcript::{Format, Transcript};

/// A file that says more is no record.
const LARGEST: u64 = 64 * 1024;

/// A record of schema version 1, as far as it matters.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Record {
    schema_version: u32,
    pub(super) pid: u32,
    /// Boot id and start of the process in the kernel's ticks, with a colon between.
    proc_start: Option<String>,
    /// The inode of its pid namespace.
    pid_ns: Option<u64>,
    pub(super) session_id: String,
    pub(super) ipc_path: Option<PathBuf>,
    pub(super) ipc_token: Option<String>,
}

impl Record {
    /// Whether the process that wrote it lives.
    fn is_live(&self) -> bool {
        let same_namespace =
            std::fs::metadata("/proc/self/ns/pid").is_ok_and(|ns| Some(ns.ino()) == self.pid_ns);
        let Some(found) = process::stat(self.pid).filter(|found| !found.zombie) else { return false };
        let started = boot::id().map(|boot| format!("{boot}:{}", found.start));
        same_namespace
            && started.is_ok_and(|started| self.proc_start.as_ref().is_none_or(|start| *start == started))
    }
}

/// The live process that has a session open, if there is one. It can change its session at any time.
pub(super) fn open_in(folder: &Path, id: &str) -> Option<Record> {
    let files = std::fs::read_dir(folder.join("sessions")).ok()?.flatten();
    let records = files
        .filter_map(|file| serde_json::from_slice::<Record>(&plain::small(&file.path(), LARGEST).ok()?).ok());
    let mut ours = records.filter(|record| record.schema_version == 1 && record.session_id == id);
    ours.find(Record::is_live)
}

/// Where the transcript of a session may be.
pub(super) fn transcripts(folder: &Path, id: &str) -> impl Iterator<Item = PathBuf> {
    let projects = std::fs::read_dir(folder.join("projects")).into_iter().flatten().flatten();
    let name = format!("{id}.jsonl");
    projects.map(move |project| project.path().join("chats").join(&name))
}

/// The transcript of a session.
pub(super) fn transcript(folder: &Path, id: &str) -> Option<Transcript> {
    Transcript::open(transcripts(folder, id), id, Format { judge, is_note })
}

fn judge(session: &str, line: &str) -> Option<Line> {
    let found = serde_json::from_str::<Value>(line).ok()?;
    match found["type"].as_str() {
        _ if found["sessionId"].as_str().is_some_and(|named| named != session) => None,
        Some("assistant") => Some(Line::Answer),
        Some("user") => line.contains(MARK).then_some(Line::Ours),
        _ => None,
    }
}

/// What it records of itself.
fn is_note(line: &Value) -> bool {
    line["type"] == "system"
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_session_is_open_in_a_process_that_lives() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("sessions")).unwrap();
        let me = process::stat(std::process::id()).unwrap();
        let namespace = std::fs::metadata("/proc/self/ns/pid").unwrap().ino();
        let found = |start: String, namespace: u64, version: u32| {
            let record = json!({
                "schemaVersion": version, "pid": me.pid, "procStart": start, "pidNs": namespace, "sessionId": "s1",
                "ipcPath": "/tmp/x.sock", "ipcToken": "t", "kind": "tui",
            });
            std::fs::write(folder.path().join("sessions/1.json"), record.to_string()).unwrap();
            open_in(folder.path(), "s1").map(|record| record.pid)
        };
        let start = format!("{}:{}", boot::id().unwrap(), me.start);
        assert_eq!(found(start.clone(), namespace, 1), Some(me.pid));
        assert_eq!(
            found(format!("{}:1", boot::id().unwrap()), namespace, 1),
            None,
            "its number is another's by now"
        );
        assert_eq!(found(start.clone(), namespace + 1, 1), None, "its numbers are others");
        assert_eq!(found(start, namespace, 2), None, "a later schema");
        assert!(open_in(folder.path(), "s2").is_none());
    }

    #[test]
    fn a_prompt_of_ours_is_told_and_answered_by_the_model_of_its_session() {
        let line = |kind: &str, session: &str, text: &str| {
            json!({ "type": kind, "sessionId": session, "message": { "parts": [{ "text": text }] } })
                .to_string()
        };
        assert_eq!(judge("s1", &line("user", "s1", MARK)), Some(Line::Ours));
        assert_eq!(judge("s1", &line("user", "s1", "hello")), None);
        assert_eq!(judge("s1", &line("assistant", "s1", "ok")), Some(Line::Answer));
        assert_eq!(judge("s1", &line("assistant", "s2", "ok")), None);
        assert_eq!(judge("s1", &line("system", "s1", MARK)), None);
    }
}
