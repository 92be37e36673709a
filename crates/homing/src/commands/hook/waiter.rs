//! The hook that waits in the background: it ends with 2 when the session has something to hear, which wakes it.
//!
//! One waits for each session, by a lock in the home; the agent starts one at every end of a turn, and those that find another leave. One
//! whose agent is gone leaves too, before it tells anything: nobody would hear it. So a session that goes on in another process has a
//! waiter of its own there. And one whose agent went on to another conversation in the same process (`/clear`) leaves as well: what it says
//! would be heard there. What it would have told stays in the inbox.
//!
//! Nor does one wait for a `claude -p`, which does not end before its hooks have: whoever runs it waits for its answer, and the result
//! comes by one more turn of the session (`--notify wake`).
//!
//! In opencode homing's plugin starts it, and wakes the session itself: there the waiter takes nothing, it only ends with 2. The plugin then takes what
//! waits (`Stop`) and starts a turn with it, or leaves it where a turn has begun meanwhile.
//!
//! Results that end within [`SETTLING`] of each other cost one turn.
//!
//! It waits for facts: the inbox, and the agent's end. A daemon that dies is waited for; one that was never there is not.

use std::fs::File;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use homing_client::ListQuery;
use homing_sys::process::{self, Process};
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tokio::net::UnixStream;
use tokio::time::{sleep, timeout};

use super::{Hook, seat};
use crate::cli::exit_code;
use crate::cli::failure::Failure;
use crate::render::console::leads_nowhere;

/// How long a look lasts before it is asked again whether anything still runs.
pub(super) const ROUND: Duration = Duration::from_secs(600);
/// The hook at the end of the same turn comes first: what it tells wakes nobody.
const PRECEDENCE: Duration = Duration::from_millis(250);
/// Once there is something and other tasks still run, so long is waited for their ends.
const SETTLING: Duration = Duration::from_millis(250);
/// Between two tries to reach a daemon that went away; longer each time, up to the second.
const RETRY: Duration = Duration::from_millis(50);
const RETRY_MOST: Duration = Duration::from_secs(10);
/// What the agent takes for "wake the session".
const WAKE: u8 = 2;
/// Looked through for what sub-agents have left running: so many live tasks, so many tasks above
/// each.
const MAX_LIVE: u32 = 1_000;
const MAX_DEPTH: usize = 10;
/// Where the locks are, in the home.
pub(super) const FOLDER: &str = "waiters";
/// So many files of waiters that were killed are looked at.
const SWEPT: usize = 100;

/// Waits until there is something to hear, nothing can come any more, or the agent is gone.
pub(super) async fn wait(hook: &Hook<'_>) -> Result<u8, Failure> {
    let Some(agent) = seat::agent_process(hook.agent, &hook.context.surroundings) else {
        return Ok(exit_code::DONE);
    };
    let line = std::fs::read(format!("/proc/{}/cmdline", agent.pid)).unwrap_or_default();
    let words: Vec<&[u8]> = line.split(|byte| *byte == 0).collect();
    if !hook.with_variables(|variables| hook.agent.can_be_rewoken(variables, &words)) {
        return Ok(exit_code::DONE);
    }
    // Who cannot say anything has nothing to wait for.
    if !hook.agent.hooks().plugin_wakes && leads_nowhere(io::stderr()) {
        return Ok(exit_code::DONE);
    }
    let Ok(ended) = watch(&agent) else { return Ok(exit_code::DONE) };
    sleep(PRECEDENCE).await;
    // Where no daemon is now, there is nothing to wait for.
    match timeout(hook.patience, hook.client.session_of(&hook.owner)).await {
        Ok(Ok(_)) => {}
        Ok(Err(error)) if error.is_shortage() => {}
        Ok(Err(_)) | Err(_) => return Ok(exit_code::DONE),
    }
    let now = timeout(hook.patience, hook.client.session()).await;
    let seated = matches!(now, Ok(Ok(Some(now))) if now.owner == hook.owner);
    tokio::select! {
        biased;
        _ = ended.readable() => Ok(exit_code::DONE),
        woken = attend(hook, &agent, seated) => woken,
    }
}

/// Whether the agent's process is in another conversation by now. Where no hook ever said in which, nothing speaks against ours.
async fn elsewhere(hook: &Hook<'_>, seated: bool) -> bool {
    match timeout(hook.patience, hook.client.session()).await {
        Ok(Ok(Some(now))) => now.owner != hook.owner,
        Ok(Ok(None)) => seated,
        // Who cannot be asked cannot be told anything either.
        Ok(Err(_)) | Err(_) => false,
    }
}

/// Becomes readable when the process ends.
fn watch(agent: &Process) -> io::Result<UnixStream> {
    let pid = i32::try_from(agent.pid).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::NotFound)?;
    let pidfd = pidfd_open(pid, PidfdFlags::NONBLOCK)?;
    // The descriptor holds whoever has this pid: make sure that it is the one we mean.
    if process::stat(agent.pid).is_none_or(|now| now.start != agent.start || now.zombie) {
        return Err(io::ErrorKind::NotFound.into());
    }
    // No socket; the stream type is only how the runtime watches it.
    UnixStream::from_std(std::os::unix::net::UnixStream::from(pidfd))
}

async fn attend(hook: &Hook<'_>, agent: &Process, seated: bool) -> Result<u8, Failure> {
    let Ok(Some(_lock)) = Lock::take(&hook.context.home, &hook.owner, agent) else {
        return Ok(exit_code::DONE);
    };
    let mut pause = RETRY;
    loop {
        match look(hook).await {
            Ok(Look::Something) if elsewhere(hook, seated).await => return Ok(exit_code::DONE),
            Ok(Look::Something) => {
                if runs(hook).await.unwrap_or(false) {
                    sleep(SETTLING).await;
                }
                if hook.agent.hooks().plugin_wakes {
                    return Ok(WAKE);
                }
                if let Some(telling) = hook.take().await {
                    // A session that is woken and told nothing would not know what for; by its next hook it is told.
                    if !hook.context.console.noted(&telling.text) {
                        return Ok(exit_code::DONE);
                    }
                    hook.told(telling.ids).await;
                    return Ok(WAKE);
                }
                // Another hook of the session was first; or it cannot be taken now, and asking again at once would only spin.
                sleep(pause).await;
                pause = (pause * 2).min(RETRY_MOST);
            }
            Ok(Look::Nothing) => return Ok(exit_code::DONE),
            Ok(Look::NotYet) => pause = RETRY,
            Err(error) if error.is_disconnect() || error.is_shortage() => {
                sleep(pause).await;
                pause = (pause * 2).min(RETRY_MOST);
            }
            Err(_) => return Ok(exit_code::DONE),
        }
    }
}

/// How it looks.
enum Look {
    /// There is something to tell.
    Something,
    /// Nothing, and nothing will come.
    Nothing,
    /// Nothing so far.
    NotYet,
}

async fn look(hook: &Hook<'_>) -> Result<Look, homing_client::Error> {
    // In this order: what has ended when the first is asked is in the inbox when the second is.
    let runs = runs(hook).await?;
    let wait = if runs { ROUND } else { Duration::ZERO };
    let there = !hook.client.await_inbox(&hook.owner, wait).await?.items.is_empty();
    Ok(match (there, runs) {
        (true, _) => Look::Something,
        (false, true) => Look::NotYet,
        (false, false) => Look::Nothing,
    })
}

/// Whether a task of the session still runs, or one that its sub-agents have left running, which
/// reports to the session.
async fn runs(hook: &Hook<'_>) -> Result<bool, homing_client::Error> {
    if !hook.client.list(&hook.live()).await?.items.is_empty() {
        return Ok(true);
    }
    let live = ListQuery { owner: None, limit: Some(MAX_LIVE), ..hook.live() };
    let live = hook.client.list(&live).await?.items;
    let mut above: Vec<_> = live.into_iter().filter_map(|task| task.parent).collect();
    for _ in 0..MAX_DEPTH {
        above.sort_unstable();
        above.dedup();
        let mut next = Vec::new();
        for id in std::mem::take(&mut above) {
            match hook.client.task(id.as_str()).await {
                Ok(task) if task.owner == hook.owner => return Ok(true),
                Ok(task) => next.extend(task.parent),
                // Forgotten by now, or not for this caller to see.
                Err(homing_client::Error::Problem(_)) => {}
                Err(error) => return Err(error),
            }
        }
        above = next;
    }
    Ok(false)
}

/// The right to wait for a session in one process of the agent. It is given up with the process, however that ends.
struct Lock {
    path: PathBuf,
    file: File,
}

impl Lock {
    /// Takes it; `None` where another waits already.
    fn take(home: &Path, owner: &str, agent: &Process) -> io::Result<Option<Self>> {
        let path = folder(home)?.join(format!("{}.{}.{}", owner.replace(':', "-"), agent.pid, agent.start));
        loop {
            let flags = i32::try_from(OFlags::NOFOLLOW.bits()).unwrap_or(0);
            let mut options = std::fs::OpenOptions::new();
            options.write(true).create(true).truncate(false).mode(0o600).custom_flags(flags);
            let file = options.open(&path)?;
            if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
                return Ok(None);
            }
            // Whoever held it may have removed it meanwhile: then this is the lock of nothing.
            if is_at(&file, &path) {
                return Ok(Some(Self { path, file }));
            }
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // While it is held: nobody else can have taken it.
        if is_at(&self.file, &self.path) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn is_at(file: &File, path: &Path) -> bool {
    let place = |meta: std::fs::Metadata| (meta.dev(), meta.ino());
    file.metadata().ok().map(place) == std::fs::symlink_metadata(path).ok().map(place)
}

/// The folder of what is kept for the processes of agents.
pub(super) fn folder(home: &Path) -> io::Result<PathBuf> {
    let folder = home.join(FOLDER);
    match std::fs::DirBuilder::new().mode(0o700).create(&folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => sweep(&folder),
    }
    Ok(folder)
}

/// Removes what killed waiters of agents that are gone have left: nobody will take those again.
fn sweep(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten().take(SWEPT) {
        let name = entry.file_name();
        let mut parts = name.to_str().unwrap_or_default().rsplit('.');
        let (start, pid) = (parts.next().and_then(|text| text.parse().ok()), parts.next());
        let agent = pid.and_then(|text| process::stat(text.parse().ok()?));
        if start.is_none() || agent.map(|agent| agent.start) != start {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_waits_for_each_session_in_each_process_and_leaves_nothing_behind() {
        let home = tempfile::tempdir().unwrap();
        let agent = process::stat(std::process::id()).unwrap();
        let take = |owner: &str, agent: &Process| Lock::take(home.path(), owner, agent).unwrap();
        let left = || std::fs::read_dir(home.path().join(FOLDER)).unwrap().count();
        let first = take("claude:s", &agent).unwrap();
        assert!(take("claude:s", &agent).is_none(), "one waits already");
        assert!(take("claude:t", &agent).is_some());
        let other = process::stat(agent.parent).unwrap();
        assert!(take("claude:s", &other).is_some(), "the session goes on in another process");
        drop(first);
        assert_eq!(left(), 0);
        for killed in ["claude-s.1.1", "claude-s.4000000.7", "strange"] {
            std::fs::write(home.path().join(FOLDER).join(killed), "").unwrap();
        }
        let again = take("claude:s", &agent).unwrap();
        assert_eq!(left(), 1, "what the killed left is gone");
        drop(again);
    }
}
