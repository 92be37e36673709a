//! Which tasks a process runs in, found by its ancestors: a shim is subreaper, so nothing of its task escapes it. Keeps P11.
//!
//! A shim that this engine attends has said which process it is. One that has not (its first words are still on their way, or its task ended
//! under an earlier daemon and left children) is known by the lock on its attempt's folder, which only one process can hold. A process
//! that merely calls itself a shim and has a task's folder open places nothing: it would choose whose task its children run in.
//!
//! It is looked at once, when a process connects, and kept with the connection: the process may end, and its pid be another's, before the
//! first request is read. A look that finds an ancestor gone begins anew, since its children have another parent by then; a process
//! that is gone itself is not served. No process is younger than its children, so one that is older than every shim has none
//! above it: there the look ends.
//!
//! The keeper inherits the children of a shim that was killed. So a process below the keeper of this home is in a task, or is this daemon or
//! its child, or an [orphan](Unplaced::Orphan) of a task that is no longer known: it is not served, since a task would leave its
//! limits by killing its shim. So is what runs below a process that passes itself off as the shim of a task, and below no real one.

use std::ffi::OsStr;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use homing_model::{Attempt, TaskId};
use homing_sys::home;
use homing_sys::process::{self, Process};

use crate::engine::{Engine, Inner};

/// What the kernel shows as the name of a shim.
pub(crate) const SHIM: &str = "homing-shim";
/// The same of a keeper.
const KEEPER: &str = "homing-keeper";
/// Ancestors end while they are looked at; so many times in a row they do not by chance.
const LOOKS: usize = 100;

/// The tasks of this home that a process runs in. Empty for one that runs in none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ancestry {
    tasks: Arc<[TaskId]>,
    /// This engine attends none of them.
    unattended: bool,
}

impl Ancestry {
    /// The tasks, innermost first as far as the processes tell.
    pub(crate) fn tasks(&self) -> &[TaskId] {
        &self.tasks
    }

    /// Whether the tasks are known only by locks on their folders. Any process may take the lock of a task that has ended.
    pub(crate) const fn is_unattended(&self) -> bool {
        self.unattended
    }

    /// The task that all others of them are inside of.
    #[must_use]
    pub fn outermost(&self) -> Option<&TaskId> {
        self.tasks.last()
    }
}

/// Why it is not known which tasks a process runs in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unplaced {
    /// It is gone, or `/proc` cannot be read now.
    Unseen,
    /// A task left it behind when its shim was killed.
    Orphan,
}

impl Engine {
    /// Which tasks a process runs in.
    ///
    /// # Errors
    /// If that cannot be seen, or is not known any more.
    pub fn ancestry(&self, pid: u32) -> Result<Ancestry, Unplaced> {
        of(&self.inner, pid)
    }
}

/// When the oldest shim was started that may be above anybody, in the kernel's ticks: looked up once, since every later one is younger than
/// this process.
#[derive(Debug, Default)]
pub(crate) struct Oldest(OnceLock<u64>);

impl Oldest {
    /// None are older than this; the beginning of time where that could not be found out.
    fn start(&self) -> u64 {
        if let Some(known) = self.0.get() {
            return *known;
        }
        process::all_of_them().map_or(0, |all| *self.0.get_or_init(|| oldest(&all, std::process::id())))
    }
}

/// The start of the oldest of all shims and of this process. Of keepers too: a shim that has not said its name yet is younger than the one
/// that made it, and has that one's name.
fn oldest(all: &[Process], own: u32) -> u64 {
    let counts = |one: &&Process| one.pid == own || one.name == SHIM || one.name == KEEPER;
    all.iter().filter(counts).map(|one| one.start).min().unwrap_or(0)
}

pub(crate) fn of(inner: &Inner, pid: u32) -> Result<Ancestry, Unplaced> {
    let oldest = inner.oldest_shim.start();
    let own = Own { keeper: inner.keeper.pid(), daemon: std::process::id() };
    let looked = (0..LOOKS).map(|_| climb(pid, oldest, own, process::stat));
    let (shims, kept) = match looked.into_iter().find(|climb| *climb != Climb::Torn) {
        Some(Climb::Top { shims, kept }) => (shims, kept),
        Some(Climb::Gone | Climb::Torn) | None => return Err(Unplaced::Unseen),
    };
    let (mut attended, mut unattended, mut forged) = (Vec::new(), Vec::new(), false);
    for shim in &shims {
        if let Some(record) = inner.live.by_shim(shim) {
            attended.push(record.id);
            continue;
        }
        // What cannot be looked at now is not taken for a shim of another home.
        let Some(claim) = claim_of(inner.home.path(), shim).map_err(|_| Unplaced::Unseen)? else { continue };
        let id = claim.attempt.task.clone();
        match inner.live.record(&id) {
            _ if !claim.locked => forged = true,
            Some(record) if record.attempt() != claim.attempt => forged = true,
            // It may have said who it is since it was looked for.
            Some(_) if inner.live.shim(&id).is_none_or(|known| known.id() == shim.id()) => attended.push(id),
            Some(_) => forged = true,
            None => unattended.push(id),
        }
    }
    match (attended.is_empty(), unattended.is_empty()) {
        (false, _) => Ok(Ancestry { tasks: attended.into(), unattended: false }),
        (true, false) => Ok(Ancestry { tasks: unattended.into(), unattended: true }),
        (true, true) if kept || forged => Err(Unplaced::Orphan),
        (true, true) => Ok(Ancestry::default()),
    }
}

/// The processes of this home that are above no task, or above all of them.
#[derive(Debug, Clone, Copy)]
struct Own {
    /// While the engine is connected to one.
    keeper: Option<u32>,
    daemon: u32,
}

/// What a look at all ancestors came to.
#[derive(Debug, PartialEq, Eq)]
enum Climb {
    /// These of them call themselves shims. `kept`: it is below the keeper of this home, and not because it is the daemon or its child.
    Top { shims: Vec<Process>, kept: bool },
    /// The process itself is gone.
    Gone,
    /// One of them ended meanwhile.
    Torn,
}

fn climb(pid: u32, oldest: u64, own: Own, look: impl Fn(u32) -> Option<Process>) -> Climb {
    let mut lineage = process::lineage_by(pid, look).peekable();
    if lineage.peek().is_none() {
        return Climb::Gone;
    }
    let (mut shims, mut kept) = (Vec::new(), false);
    // The keeper itself is below no keeper.
    let mut accounted = own.keeper == Some(pid);
    for process in lineage {
        let Ok(process) = process else { return Climb::Torn };
        accounted |= process.pid == own.daemon;
        kept |= own.keeper == Some(process.pid) && !accounted;
        let is_older_than_shims = process.start < oldest;
        if process.name == SHIM {
            shims.push(process);
        }
        if is_older_than_shims {
            break;
        }
    }
    Climb::Top { shims, kept }
}

/// The process of that pid, if it is a shim.
pub(crate) fn shim(pid: u32) -> Option<Process> {
    process::stat(pid).filter(|process| process.name == SHIM)
}

/// An attempt of this home whose folder a process has open.
#[derive(Debug, PartialEq, Eq)]
struct Claim {
    attempt: Attempt,
    /// It has locked the folder too, as the shim of the attempt does before it executes the command.
    locked: bool,
}

/// What a process that calls itself a shim claims to be the shim of: the attempt whose folder it has locked, else one that it has open. None if it
/// is the shim of another home, or gone.
fn claim_of(home: &Path, shim: &Process) -> io::Result<Option<Claim>> {
    let open = match std::fs::read_dir(format!("/proc/{}/fd", shim.pid)) {
        Err(error) if is_gone(&error) => return Ok(None),
        open => open?,
    };
    let held = |descriptor: PathBuf| {
        let target = std::fs::read_link(&descriptor).ok()?;
        let mut parts = target.iter();
        let task: TaskId = parts.find_map(|part| part.to_str()?.parse().ok())?;
        let below = parts.as_path();
        // The first attempt has the task's own folder.
        let number = if below == Path::new("") { 1 } else { below.to_str()?.parse().ok()? };
        // What a path looks like depends on whom one asks; which folder it is does not.
        let ours = home.join(home::TASKS).join(task.as_str()).join(below);
        let (theirs, ours) = (std::fs::metadata(&descriptor).ok()?, std::fs::metadata(ours).ok()?);
        let same = theirs.is_dir() && (theirs.dev(), theirs.ino()) == (ours.dev(), ours.ino());
        same.then(|| Claim {
            attempt: Attempt { task, number },
            locked: has_lock(shim.pid, descriptor.file_name()),
        })
    };
    let mut claim = None;
    for entry in open {
        match entry {
            Ok(entry) => match held(entry.path()) {
                Some(held) if held.locked => return Ok(Some(held)),
                Some(held) => claim = Some(held),
                None => {}
            },
            Err(error) if is_gone(&error) => return Ok(None),
            Err(error) => return Err(error),
        }
    }
    Ok(claim)
}

/// Whether a process has locked what is open at this descriptor of its own. The kernel shows a lock where it was taken, with the process
/// that took it; a descriptor that was inherited or handed on has the lock of another.
fn has_lock(pid: u32, descriptor: Option<&OsStr>) -> bool {
    let Some(number) = descriptor.and_then(OsStr::to_str) else { return false };
    let Ok(about) = std::fs::read_to_string(format!("/proc/{pid}/fdinfo/{number}")) else { return false };
    about.lines().filter_map(|line| line.strip_prefix("lock:")).any(|lock| {
        let mut words = lock.split_ascii_whitespace().skip(1);
        words.next() == Some("FLOCK")
            && words.nth(1) == Some("WRITE")
            && words.next() == Some(&pid.to_string())
    })
}

/// A process that has ended, or that is another user's.
fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied)
        || error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p11_a_shim_is_known_by_the_lock_on_its_attempts_folder() {
        let dir = tempfile::tempdir().unwrap();
        let task = TaskId::from_entropy(7);
        let folder = dir.path().join(home::TASKS).join(task.as_str());
        std::fs::create_dir_all(folder.join("2")).unwrap();
        let me = process::stat(std::process::id()).unwrap();
        let other = tempfile::tempdir().unwrap();
        assert_eq!(claim_of(dir.path(), &me).unwrap(), None);
        for (number, path) in [(1, folder.clone()), (2, folder.join("2"))] {
            let claim = |locked| Some(Claim { attempt: Attempt { task: task.clone(), number }, locked });
            let held = std::fs::File::open(&path).unwrap();
            assert_eq!(claim_of(dir.path(), &me).unwrap(), claim(false), "it is open, and not locked");
            let locker = std::fs::File::open(&path).unwrap();
            assert!(homing_shim::folder::lock(&locker).unwrap());
            assert_eq!(claim_of(dir.path(), &me).unwrap(), claim(true));
            assert_eq!(claim_of(other.path(), &me).unwrap(), None, "it is of another home");
            drop((held, locker));
        }
    }

    #[test]
    fn p11_a_lock_that_another_process_took_makes_no_shim() {
        let dir = tempfile::tempdir().unwrap();
        let task = TaskId::from_entropy(7);
        let folder = dir.path().join(home::TASKS).join(task.as_str());
        std::fs::create_dir_all(&folder).unwrap();
        let locker = std::fs::File::open(&folder).unwrap();
        assert!(homing_shim::folder::lock(&locker).unwrap());
        let mut heir = std::process::Command::new("sleep").arg("600").stdin(locker).spawn().unwrap();
        let claim = claim_of(dir.path(), &process::stat(heir.id()).unwrap()).unwrap();
        heir.kill().unwrap();
        heir.wait().unwrap();
        assert_eq!(claim, Some(Claim { attempt: Attempt { task, number: 1 }, locked: false }));
    }

    fn process(pid: u32, parent: u32, start: u64, name: &str) -> Process {
        Process { pid, parent, start, name: name.into(), zombie: false, frozen: false }
    }

    fn top(shims: &[Process]) -> Climb {
        Climb::Top { shims: shims.to_vec(), kept: false }
    }

    /// A daemon and a keeper that are above none of these processes.
    const NOT_OURS: Own = Own { keeper: None, daemon: 1_000 };

    #[test]
    fn p11_an_orphan_of_a_task_is_not_outside_of_all_tasks() {
        let tree = [
            process(20, 1, 3, KEEPER),
            process(25, 20, 4, "homing"),
            process(26, 25, 6, "notify-send"),
            process(30, 20, 7, SHIM),
            process(40, 30, 8, "sh"),
            process(41, 20, 8, "sh"),
            process(50, 41, 9, "sh"),
            process(60, 1, 9, "sh"),
        ];
        let look = |pid| tree.iter().find(|one| one.pid == pid).cloned();
        let own = Own { keeper: Some(20), daemon: 25 };
        let none = Vec::new;
        assert_eq!(climb(40, 0, own, look), Climb::Top { shims: vec![tree[3].clone()], kept: true });
        for pid in [41, 50] {
            assert_eq!(climb(pid, 0, own, look), Climb::Top { shims: none(), kept: true }, "{pid}");
        }
        for pid in [20, 25, 26, 60] {
            assert_eq!(climb(pid, 0, own, look), Climb::Top { shims: none(), kept: false }, "{pid}");
        }
        let elsewhere = climb(41, 0, NOT_OURS, look);
        assert_eq!(elsewhere, Climb::Top { shims: none(), kept: false }, "below the keeper of another home");
    }

    #[test]
    fn p11_a_look_during_which_an_ancestor_ends_is_no_look() {
        let tree = [
            process(50, 40, 9, "sh"),
            process(40, 30, 8, "sh"),
            process(30, 20, 7, SHIM),
            process(20, 1, 3, KEEPER),
        ];
        let without = |missing: u32| {
            let tree = tree.clone();
            move |pid| tree.iter().find(|one| one.pid == pid && pid != missing).cloned()
        };
        assert_eq!(climb(50, 0, NOT_OURS, without(0)), top(&tree[2..3]));
        assert_eq!(climb(20, 0, NOT_OURS, without(0)), top(&[]));
        assert_eq!(climb(50, 0, NOT_OURS, without(50)), Climb::Gone);
        for missing in [40, 30, 20] {
            assert_eq!(climb(50, 0, NOT_OURS, without(missing)), Climb::Torn, "{missing}");
        }
    }

    #[test]
    fn p11_a_stranger_with_the_pid_of_a_parent_is_none() {
        let reused = [process(50, 40, 9, "sh"), process(40, 1, 10, "sh")];
        assert_eq!(
            climb(50, 0, NOT_OURS, |pid| reused.iter().find(|one| one.pid == pid).cloned()),
            Climb::Torn
        );
    }

    #[test]
    fn p11_the_look_ends_at_whoever_is_older_than_every_shim_and_no_sooner() {
        let tree = [
            process(50, 40, 9, "sh"),
            process(40, 30, 7, SHIM),
            process(30, 20, 7, KEEPER),
            process(20, 10, 6, "agent"),
        ];
        let look =
            |pid| Some(tree.iter().find(|one| one.pid == pid).cloned().expect("nobody beyond is looked at"));
        assert_eq!(climb(50, 7, NOT_OURS, look), top(&tree[1..2]));
        assert_eq!(climb(20, 7, NOT_OURS, look), top(&[]));
    }

    #[test]
    fn p11_nobody_is_older_than_the_oldest_shim_keeper_or_daemon() {
        let daemon = process(9, 8, 50, "homing");
        let all = |others: &[Process]| [std::slice::from_ref(&daemon), others].concat();
        assert_eq!(oldest(&all(&[]), 9), 50);
        assert_eq!(oldest(&all(&[process(3, 1, 7, "sh")]), 9), 50);
        assert_eq!(oldest(&all(&[process(8, 1, 40, KEEPER), process(4, 1, 30, SHIM)]), 9), 30);
        assert_eq!(oldest(&all(&[process(8, 1, 20, KEEPER), process(4, 8, 30, SHIM)]), 9), 20);
        assert_eq!(oldest(&[], 9), 0, "who saw nobody knows nothing");
        assert!(Oldest::default().start() <= process::stat(std::process::id()).unwrap().start);
    }

    #[test]
    fn a_chain_without_an_end_is_given_up() {
        assert_eq!(climb(5, 0, NOT_OURS, |pid| Some(process(pid, 5, 1, "sh"))), Climb::Torn);
    }
}
