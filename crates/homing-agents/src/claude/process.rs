//! Which process of Claude Code has a session open, and whether it is idle: `sessions/PID.json` of its folder (since 2.1.224).
//!
//! A process can change its session at any time, so the file is read anew for every wake, and the process behind the socket must be the one
//! that wrote it.

use std::path::{Path, PathBuf};

use homing_model::Session;
use homing_sys::{plain, process};
use serde::Deserialize;
use serde_json::Value;

use super::FOLDER;
use crate::wake::{Readiness, Surroundings};

/// Settings that are larger were not written by a person.
const LARGEST_SETTINGS: u64 = 1 << 20;
/// A file that says more is none of these.
const LONGEST: u64 = 64 * 1024;

/// Why a session that is open is not spoken to.
pub(super) const NO_SOCKET: &str = "this Claude Code takes no messages (it does since 2.1.224); its hooks bring what waits: `homing install claude`";

/// `sessions/PID.json`, as far as it matters.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Entry {
    pub(super) pid: u32,
    pub(super) session_id: String,
    /// When the process was started, in the kernel's ticks.
    pub(super) proc_start: Option<String>,
    /// Which pids its own is one of.
    pub(super) pid_domain: Option<String>,
    pub(super) status: Option<String>,
    pub(super) messaging_socket_path: Option<PathBuf>,
}

impl Entry {
    /// Whether no turn is under way. With the status `shell` the session is idle while a command of its own runs in the background.
    pub(super) fn is_idle(&self) -> bool {
        matches!(self.status.as_deref(), Some("idle" | "shell"))
    }

    pub(super) fn is_of_same_process(&self, other: &Self) -> bool {
        (self.pid, &self.proc_start) == (other.pid, &other.proc_start)
    }
}

/// The live process that has a session open, if there is one.
pub(super) fn open_in(folder: &Path, id: &str) -> Option<Entry> {
    let files = std::fs::read_dir(folder.join("sessions")).ok()?.flatten();
    let entries = files.filter(|file| file.path().extension().is_some_and(|extension| extension == "json"));
    let read =
        |path: &Path| -> Option<Entry> { serde_json::from_slice(&plain::small(path, LONGEST).ok()?).ok() };
    entries.filter_map(|file| read(&file.path())).find(|entry| entry.session_id == id && is_live(entry))
}

/// The user's setting by which messages of others are not taken: what is held back all the same is told later, and once for each time it was said.
fn held_back(folder: &Path) -> Option<&'static str> {
    let settings = plain::small(&folder.join("settings.json"), LARGEST_SETTINGS).ok()?;
    let settings: Value = serde_json::from_slice(&settings).ok()?;
    ["hold", "refuse"].into_iter().find(|setting| settings["crossSessionInbound"] == *setting)
}

/// Whether the process that wrote an entry lives. One that was killed leaves its file behind, and its number to somebody else.
fn is_live(entry: &Entry) -> bool {
    let ours = std::fs::read_link("/proc/self/ns/pid").map(|link| link.to_string_lossy().into_owned());
    if let (Some(domain), Ok(ours)) = (&entry.pid_domain, ours)
        && domain.contains("pid:[")
        && !domain.ends_with(&ours)
    {
        return false;
    }
    let start = entry.proc_start.as_ref().and_then(|start| start.parse::<u64>().ok());
    process::stat(entry.pid)
        .is_some_and(|found| !found.zombie && start.is_none_or(|start| start == found.start))
}

pub(super) fn readiness(session: &Session, runs: bool, surroundings: &Surroundings) -> Readiness {
    let Some(folder) = surroundings.folder_of(session, FOLDER) else { return Readiness::Ready };
    match open_in(&folder, &session.id) {
        // Whoever says not where it listens need not say either whether it has time.
        Some(entry) if entry.messaging_socket_path.is_none() => Readiness::Closed(NO_SOCKET.to_owned()),
        Some(entry) if entry.is_idle() => match held_back(&folder) {
            Some(setting) => Readiness::Closed(format!(
                "Claude Code's settings say `\"crossSessionInbound\": \"{setting}\"`: no message is taken; its hooks bring what waits \
                 (`homing install claude`)"
            )),
            None => Readiness::Ready,
        },
        Some(_) => Readiness::Busy("the session is in the middle of a turn".to_owned()),
        None if runs => Readiness::Ready,
        None => Readiness::Closed(
            "the session is not open; it is told when it is resumed (`homing install claude`), and `[wake] headless = true` runs it".to_owned(),
        ),
    }
}
