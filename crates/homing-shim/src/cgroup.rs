//! A cgroup per task, where one can be made: an exact list of the tree, and one write that ends it all.
//!
//! Only the unified hierarchy (version 2) is used, and no controller of it: killing and freezing need none. Where the daemon may not make one, the
//! shim's role as subreaper keeps the tree together all the same.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use homing_sys::process::{self, Process};

/// Of how many cgroups at most is looked at what they hold.
const MOST: usize = 10_000;

/// Where this process is in the unified hierarchy, as a folder.
fn own() -> Option<(PathBuf, PathBuf)> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let mount = mounts.lines().find_map(|line| {
        let (left, right) = line.split_once(" - ")?;
        let mut left = left.split(' ').skip(3);
        let (root, point) = (left.next()?, left.next()?);
        right.starts_with("cgroup2 ").then(|| (root.to_owned(), PathBuf::from(point)))
    });
    let (root, point) = mount?;
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    let relative =
        path.strip_prefix(root.trim_end_matches('/')).unwrap_or(path).trim_start_matches('/').to_owned();
    Some((point.clone(), point.join(relative)))
}

fn is_writable(folder: &Path) -> bool {
    let procs = folder.join("cgroup.procs");
    let may = |path: &Path| rustix::fs::access(path, rustix::fs::Access::WRITE_OK).is_ok();
    may(folder) && may(&procs)
}

/// The folder for everything of one home: below the topmost cgroup we may change, so that it does not end with whoever started us.
#[must_use]
pub fn base(home: &Path) -> Option<PathBuf> {
    let (root, own) = own()?;
    let mut best = None;
    let mut folder = own.as_path();
    loop {
        if !is_writable(folder) {
            break;
        }
        best = Some(folder);
        if folder == root {
            break;
        }
        folder = folder.parent()?;
    }
    let path = home.as_os_str().as_encoded_bytes();
    let backwards: Vec<u8> = path.iter().rev().copied().collect();
    let name = format!("homing-{:08x}{:08x}", crc32fast::hash(path), crc32fast::hash(&backwards));
    Some(best?.join(name))
}

/// Makes the home's folder, and moves this process out of its starter's cgroup into it.
///
/// # Errors
/// If that is not allowed here.
pub fn detach(base: &Path) -> io::Result<()> {
    let daemon = base.join("daemon");
    for folder in [base, &daemon] {
        match fs::create_dir(folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            Ok(()) | Err(_) => {}
        }
    }
    fs::write(daemon.join("cgroup.procs"), "0")
}

/// Moves this process, perhaps the last of its home, out again and removes what is empty. What others are still in stays, and goes with
/// the last of them.
pub(crate) fn leave(base: &Path) {
    if let Some(outside) = base.parent() {
        let _ = fs::write(outside.join("cgroup.procs"), "0");
    }
    for group in fs::read_dir(base).into_iter().flatten().flatten() {
        remove_whole(&group.path());
    }
    let _ = fs::remove_dir(base);
}

/// Whether nobody is in a cgroup or in one below it, by the kernel's word.
fn is_empty(path: &Path) -> bool {
    fs::read_to_string(path.join("cgroup.events"))
        .is_ok_and(|events| events.lines().any(|line| line == "populated 0"))
}

/// Removes a cgroup that nobody is in, with those below it, the innermost first. A task's programs made what is below: while any of them lives it is
/// theirs; no more of it is looked at than [`MOST`], and no link is followed.
fn remove_whole(path: &Path) {
    // Mostly nothing is below, and nobody in it: the kernel removes no other.
    if fs::remove_dir(path).is_ok() || !is_empty(path) {
        return;
    }
    let (mut folders, mut next) = (vec![path.to_owned()], 0);
    while let Some(folder) = folders.get(next).filter(|_| folders.len() < MOST) {
        let below = fs::read_dir(folder).into_iter().flatten().flatten();
        let is_folder = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
        let below: Vec<_> = below.filter(is_folder).map(|entry| entry.path()).collect();
        folders.extend(below);
        next += 1;
    }
    // Each was found after the one that it is in.
    for folder in folders.iter().rev() {
        let _ = fs::remove_dir(folder);
    }
}

/// One task's cgroup.
#[derive(Debug)]
pub(crate) struct Group {
    path: PathBuf,
}

impl Group {
    /// Makes it and opens it for a clone into it.
    pub(crate) fn make(base: &Path, name: &str) -> io::Result<(Self, OwnedFd)> {
        let path = base.join(name);
        // With the home's own, which whoever left last may have removed.
        fs::create_dir_all(&path)?;
        let group = Self { path };
        let fd = crate::folder::open(&group.path)?;
        Ok((group, fd))
    }

    /// The members, and those of cgroups below it.
    pub(crate) fn members(&self) -> Vec<Process> {
        let members = self.everybody().into_iter().filter_map(process::stat);
        members.filter(|process| !process.zombie).collect()
    }

    /// Ends every member at once, those that fork meanwhile included.
    pub(crate) fn kill(&self) {
        // Kernels before 5.14 have no such file; the callers signal every process they see as well.
        let _ = fs::write(self.path.join("cgroup.kill"), "1");
    }

    /// Lets every member stand still, or go on: also those that are born into it meanwhile, and those of cgroups below it.
    ///
    /// # Errors
    /// If the kernel cannot (before 5.2).
    pub(crate) fn freeze(&self, still: bool) -> io::Result<()> {
        // Never made by this: where there is no such file, the kernel knows of no such thing.
        let mut file = fs::OpenOptions::new().write(true).open(self.path.join("cgroup.freeze"))?;
        io::Write::write_all(&mut file, if still { b"1" } else { b"0" })
    }

    /// Whether every member stands still, by the kernel's word.
    pub(crate) fn is_frozen(&self) -> bool {
        fs::read_to_string(self.path.join("cgroup.events"))
            .is_ok_and(|events| events.lines().any(|line| line == "frozen 1"))
    }

    /// The process ids of all members, and of those of cgroups below it.
    pub(crate) fn everybody(&self) -> Vec<u32> {
        let (mut found, mut folders) = (Vec::new(), vec![self.path.clone()]);
        while let Some(folder) = folders.pop() {
            let members = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
            found.extend(members.lines().filter_map(|line| line.parse::<u32>().ok()));
            let below = fs::read_dir(&folder).into_iter().flatten().flatten();
            let is_folder = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
            folders.extend(below.filter(is_folder).map(|entry| entry.path()));
        }
        found
    }

    /// Removes it, with those below it, once they are empty.
    pub(crate) fn remove(&self) {
        remove_whole(&self.path);
    }
}

/// The name of an attempt's cgroup.
pub(crate) fn name(task: &str, attempt: u32) -> String {
    format!("{task}.{attempt}")
}
