//! What agents keep of their sessions, and how it goes when the last task of a session is forgotten.
//!
//! Keeps P11: only what has the session's whole id in its name (or, with one agent, in its first lines) is removed, only beneath the agent's own
//! folder, and no link is followed. The program that ran as the agent printed the id, and it may print the id of a session that is not its
//! own. So nothing is removed where any file of the session was created before the first task of that session was accepted: then the session
//! is older than the task, and what was added to it since is not the task's either. Nothing is removed of a session that a hook has
//! named in a process outside of the task, and an id that is too short to be unique removes nothing.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;

use homing_agents::parse::is_session;
use homing_agents::{Agent, registry};
use homing_model::agent::Driver;
use homing_model::{SubAgent, TaskId, Timestamp};
use homing_store::store;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, StatxFlags};
use rustix::io::Errno;

use crate::engine::Inner;

/// The shortest id of a session by which files are removed.
const SHORTEST: usize = 16;

/// The agent whose files a driver's sessions have.
fn agent_of(driver: &Driver) -> Option<&'static dyn Agent> {
    match driver {
        Driver::Agent(name) => registry::find(name.as_str()),
        Driver::Stdout | Driver::Lines { .. } => None,
    }
}

/// A session that no task needs any more.
pub(crate) struct ReleasedSession {
    agent: SubAgent,
    /// When its first task was accepted. Files that are older belong to someone else.
    since: Timestamp,
}

/// The session that goes with this task, once its ledger entry is a tombstone: none if another task still has the session.
pub(crate) async fn to_remove(
    inner: &Inner,
    task: &TaskId,
    agent: Option<SubAgent>,
) -> Result<Option<ReleasedSession>, store::Error> {
    let Some(agent) = agent else { return Ok(None) };
    let since = inner.store.released_session(task.clone()).await?;
    Ok(since.map(|since| ReleasedSession { agent, since }))
}

/// Removes what the agent kept of the session, if it kept nothing before the session's first task; answers how many files and folders that were.
pub(crate) fn remove(released: &ReleasedSession) -> io::Result<usize> {
    let agent = &released.agent;
    let session = agent.heard.session_id.as_deref().filter(|id| id.len() >= SHORTEST && is_session(id));
    let (Some(session), Some(folder)) = (session, &agent.folder) else { return Ok(0) };
    let root = match open(rustix::fs::CWD, Path::new(folder.as_os_str()), OFlags::empty()) {
        Ok(root) => root,
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(0),
        Err(error) => return Err(error.into()),
    };
    let mut older = false;
    visit(&root, released, session, &mut |folder, name, _| {
        older |= !created_since(folder, name, released.since);
        Ok(())
    })?;
    if older {
        return Ok(0);
    }
    let mut removed = 0;
    visit(&root, released, session, &mut |folder, name, kind| {
        // It may have come since.
        if !created_since(folder, name, released.since) {
            return Ok(());
        }
        match kind {
            FileType::Directory => {
                std::fs::remove_dir_all(format!("/proc/self/fd/{}/{name}", folder.as_raw_fd()))?;
            }
            _ => rustix::fs::unlinkat(folder, name, AtFlags::empty())?,
        }
        removed += 1;
        Ok(())
    })?;
    Ok(removed)
}

/// Called with the folder of an entry, its name and its kind.
type Visitor<'a> = dyn FnMut(&OwnedFd, &str, FileType) -> io::Result<()> + 'a;

/// Visits all files and folders of a session.
fn visit(
    root: &OwnedFd,
    released: &ReleasedSession,
    session: &str,
    visitor: &mut Visitor<'_>,
) -> io::Result<()> {
    let places = agent_of(&released.agent.driver).map_or(&[][..], |agent| agent.ask().session_files);
    for (place, levels) in places {
        match open(root, Path::new(place), OFlags::NOFOLLOW) {
            Ok(place) => visit_below(&place, released, session, *levels, visitor)?,
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn open(base: impl AsFd, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    rustix::fs::openat(
        base,
        path,
        flags | OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )
}

/// Whether a file has a part of the id in its name, and all of it in its first lines.
fn is_abbreviated(folder: &OwnedFd, driver: &Driver, name: &str, session: &str) -> bool {
    if !agent_of(driver).is_some_and(|agent| agent.abbreviates(name, session)) {
        return false;
    }
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let Ok(file) = rustix::fs::openat(folder, name, flags, Mode::empty()) else { return false };
    let mut begin = vec![0; 4096];
    let read = rustix::io::read(file, &mut begin[..]).unwrap_or(0);
    let begin = begin.get(..read).unwrap_or_default();
    begin.windows(session.len()).any(|window| window == session.as_bytes())
}

/// Whether an entry was created at this time or later. False where the filesystem does not record it: such a file stays.
fn created_since(folder: &OwnedFd, name: &str, since: Timestamp) -> bool {
    let Ok(found) = rustix::fs::statx(folder, name, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::BTIME) else {
        return false;
    };
    let created =
        found.stx_btime.tv_sec.saturating_mul(1_000) + i64::from(found.stx_btime.tv_nsec / 1_000_000);
    found.stx_mask & StatxFlags::BTIME.bits() != 0 && created >= since.as_millis()
}

/// Visits what bears the session's name in this folder, and in those below it, so many levels down.
fn visit_below(
    folder: &OwnedFd,
    released: &ReleasedSession,
    session: &str,
    levels: u32,
    visitor: &mut Visitor<'_>,
) -> io::Result<()> {
    let entries: Vec<_> = Dir::read_from(folder)?.collect::<Result<_, _>>()?;
    for entry in entries {
        let Ok(name) = entry.file_name().to_str() else { continue };
        if matches!(name, "." | "..") {
            continue;
        }
        // Not every filesystem says in its listing what an entry is.
        let Ok(found) = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
        let kind = FileType::from_raw_mode(found.st_mode);
        // A folder that merely contains the id in its name may be that of a project, with sessions of others in it.
        let named = match kind {
            FileType::Directory => name == session,
            _ => name.contains(session) || is_abbreviated(folder, &released.agent.driver, name, session),
        };
        match (kind, named) {
            (FileType::RegularFile | FileType::Directory, true) => visitor(folder, name, kind)?,
            (FileType::Directory, false) if levels > 1 => {
                if let Ok(below) = open(folder, Path::new(name), OFlags::NOFOLLOW) {
                    visit_below(&below, released, session, levels - 1, visitor)?;
                }
            }
            (_, _) => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use homing_model::agent::Heard;

    use super::*;

    const SESSION: &str = "86cdf13b-9232-4361-8416-ce03ab341f08";

    fn known(agent: &str) -> Driver {
        Driver::Agent(homing_model::AgentName::new(agent).unwrap())
    }

    fn agent(driver: Driver, folder: &Path, session: &str) -> ReleasedSession {
        let heard = Heard { session_id: Some(session.into()), ..Heard::default() };
        let folder = Some(folder.as_os_str().to_owned().into());
        let agent = SubAgent { name: "x".into(), driver, folder, continues: None, heard };
        ReleasedSession { agent, since: Timestamp::from_millis(0) }
    }

    fn put(root: &Path, path: &str) -> std::path::PathBuf {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, "x").unwrap();
        path
    }

    #[test]
    fn p11_only_what_bears_the_sessions_name_goes_and_no_link_is_followed() {
        let dir = tempfile::tempdir().unwrap();
        let root = &dir.path().join(".claude");
        let goes = [
            put(root, &format!("projects/-work/{SESSION}.jsonl")),
            put(root, &format!("projects/-work/{SESSION}/subagents/agent-1.jsonl")),
            put(root, &format!("todos/{SESSION}-agent-{SESSION}.json")),
        ];
        let stays = [
            put(root, "projects/-work/11111111-9232-4361-8416-ce03ab341f08.jsonl"),
            put(root, &format!("projects/-work/memory/{SESSION}.md")),
            put(root, &format!("elsewhere/{SESSION}.jsonl")),
            put(root, "settings.json"),
            put(root, &format!("projects/-tmp-{SESSION}-scratch/11111111-9232-4361-8416-ce03ab341f08.jsonl")),
            put(dir.path(), &format!("outside/{SESSION}.jsonl")),
        ];
        std::os::unix::fs::symlink(dir.path().join("outside"), root.join("projects/link")).unwrap();
        let link = root.join(format!("projects/-work/{SESSION}.link"));
        std::os::unix::fs::symlink(&stays[5], &link).unwrap();
        for odd in ["", ".", "..", "8", "86cdf13b", "../../outside/aaaaaaaaaaaaa", &SESSION[..15]] {
            assert_eq!(remove(&agent(known("claude"), root, odd)).unwrap(), 0, "{odd}");
        }
        assert_eq!(remove(&agent(known("claude"), root, SESSION)).unwrap(), 3);
        assert!(goes.iter().all(|path| !path.exists()) && stays.iter().all(|path| path.exists()));
        assert!(link.symlink_metadata().is_ok());
        assert_eq!(remove(&agent(known("claude"), root, SESSION)).unwrap(), 0, "once is enough");
    }

    #[test]
    fn each_agent_has_its_own_places_and_none_is_no_trouble() {
        let dir = tempfile::tempdir().unwrap();
        let thread = "01a1e0e0-0f01-7141-ae73-04e100a4fc9a";
        let rollout =
            put(dir.path(), &format!("sessions/2026/11/15/rollout-2026-11-15T20-00-00-{thread}.jsonl"));
        assert_eq!(remove(&agent(known("claude"), dir.path(), thread)).unwrap(), 0);
        assert_eq!(remove(&agent(known("codex"), dir.path(), thread)).unwrap(), 1);
        assert!(!rollout.exists());
        let chat = put(dir.path(), "tmp/work/chats/session-2026-11-15T20-40-01a1e0e0.jsonl");
        let other = put(dir.path(), "tmp/work/chats/session-2026-11-15T20-41-01a1e0e0.jsonl");
        std::fs::write(&chat, format!("{{\"sessionId\":\"{thread}\"}}\n")).unwrap();
        assert_eq!(remove(&agent(known("gemini"), dir.path(), thread)).unwrap(), 1);
        assert!(!chat.exists() && other.exists(), "a few characters are not enough");
        assert_eq!(remove(&agent(Driver::Stdout, dir.path(), thread)).unwrap(), 0);
        assert_eq!(remove(&agent(known("codex"), &dir.path().join("none"), thread)).unwrap(), 0);
        let mut nowhere = agent(known("codex"), dir.path(), thread);
        nowhere.agent.folder = None;
        assert_eq!(remove(&nowhere).unwrap(), 0);
    }

    fn created(path: &Path) -> Timestamp {
        let created = std::fs::metadata(path).unwrap().created().unwrap();
        let created = created.duration_since(std::time::UNIX_EPOCH).unwrap().as_millis();
        Timestamp::from_millis(i64::try_from(created).unwrap())
    }

    #[test]
    fn p11_nothing_of_a_session_goes_if_any_of_it_is_older() {
        let dir = tempfile::tempdir().unwrap();
        let transcript = put(dir.path(), &format!("projects/-work/{SESSION}.jsonl"));
        let later = |path: &str| {
            let mut later = put(dir.path(), path);
            while created(&later) == created(&transcript) {
                std::fs::remove_file(&later).unwrap();
                later = put(dir.path(), path);
            }
            later
        };
        let list = later(&format!("todos/{SESSION}-agent-{SESSION}.json"));
        let mut released = agent(known("claude"), dir.path(), SESSION);
        released.since = created(&list);
        assert_eq!(remove(&released).unwrap(), 0);
        assert!(transcript.exists() && list.exists());
        std::fs::remove_file(&transcript).unwrap();
        assert_eq!(remove(&released).unwrap(), 1);
    }

    #[test]
    fn p11_files_older_than_the_first_task_of_a_session_stay() {
        let dir = tempfile::tempdir().unwrap();
        let older = put(dir.path(), &format!("projects/-work/{SESSION}.jsonl"));
        let folder = put(dir.path(), &format!("tasks/{SESSION}/1.json"));
        let mut released = agent(known("claude"), dir.path(), SESSION);
        released.since = created(&folder).plus_millis(1);
        assert_eq!(remove(&released).unwrap(), 0);
        assert!(older.exists() && folder.exists());
        released.since = Timestamp::from_millis(0);
        assert_eq!(remove(&released).unwrap(), 2);
    }
}
