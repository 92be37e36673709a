//! Processes as `/proc` shows them, and signals that cannot hit a stranger.
//!
//! A pid alone is not an identity: it may be used again. A process here is its pid and its start time, and a signal goes through a
//! pidfd that was checked against both. Keeps P8.

use std::collections::HashMap;
use std::io::{self, Read};

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// One process, as it was when we looked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Its id.
    pub pid: u32,
    /// Its parent's.
    pub parent: u32,
    /// When it was started, in the kernel's ticks since boot.
    pub start: u64,
    /// The name of its program.
    pub name: String,
    /// Ended, with all its threads, but not waited for.
    pub zombie: bool,
    /// Stopped by a signal, or by whoever traces it: it does nothing until it is continued.
    pub frozen: bool,
}

/// What tells a process from every other of this boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ProcessId {
    /// Its number, which may be another's later.
    pub pid: u32,
    /// When it was started, in the kernel's ticks since boot.
    pub start: u64,
}

impl Process {
    /// Which process this is.
    #[must_use]
    pub const fn id(&self) -> ProcessId {
        ProcessId { pid: self.pid, start: self.start }
    }

    /// Whether it is a shell: one stands between an agent and its hooks, and is no agent.
    #[must_use]
    pub fn is_shell(&self) -> bool {
        matches!(&*self.name, "sh" | "bash" | "dash" | "zsh" | "fish" | "ksh" | "ash" | "busybox")
    }
}

/// Reads one process; none if it is gone, or cannot be looked at.
#[must_use]
pub fn stat(pid: u32) -> Option<Process> {
    look(pid).ok().flatten()
}

/// The same, but a process that is there and cannot be looked at is an error.
fn look(pid: u32) -> io::Result<Option<Process>> {
    // In one read: it is always shorter, and is asked for whole chains of processes.
    let mut text = [0; 2048];
    let read = std::fs::File::open(format!("/proc/{pid}/stat")).and_then(|mut file| file.read(&mut text));
    match read {
        Ok(length) => {
            let text = String::from_utf8_lossy(text.get(..length).unwrap_or_default());
            parse_stat(pid, &text).ok_or_else(|| io::ErrorKind::InvalidData.into()).map(Some)
        }
        Err(error) if matches!(Errno::from_io_error(&error), Some(Errno::NOENT | Errno::SRCH)) => Ok(None),
        Err(error) => Err(error),
    }
}

fn parse_stat(pid: u32, text: &str) -> Option<Process> {
    // The name is in parentheses and may itself hold any of both.
    let (open, close) = (text.find('(')?, text.rfind(')')?);
    let name = text.get(open + 1..close)?.to_owned();
    let mut fields = text.get(close + 1..)?.split_ascii_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    // Where only the first thread has ended, the process has not, whatever the state says: that is the thread's.
    let threads: u32 = fields.nth(15)?.parse().ok()?;
    let start = fields.nth(1)?.parse().ok()?;
    Some(Process {
        pid,
        parent,
        start,
        name,
        zombie: matches!(state, "Z" | "X") && threads <= 1,
        frozen: matches!(state, "T" | "t"),
    })
}

/// Whether a process has begun to exit, by the kernel's flags of its first thread (`PF_EXITING`), or is gone.
pub fn is_exiting(pid: u32) -> bool {
    const PF_EXITING: u64 = 4;
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields = text.rsplit_once(')').map(|(_, rest)| rest.split_ascii_whitespace());
    let flags = fields.and_then(|mut fields| fields.nth(6)?.parse::<u64>().ok());
    flags.is_none_or(|flags| flags & PF_EXITING != 0)
}

/// Every process that can be seen.
#[must_use]
pub fn all() -> Vec<Process> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter_map(stat).collect()
}

/// The same, none of them left out.
///
/// # Errors
/// If one that is there cannot be looked at, for want of descriptors or memory.
pub fn all_of_them() -> io::Result<Vec<Process>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc")? {
        if let Some(pid) = entry?.file_name().to_str().and_then(|name| name.parse().ok()) {
            found.extend(look(pid)?);
        }
    }
    Ok(found)
}

/// No process is nested deeper than this; a longer chain is a race with the ends of its members.
const MAX_ANCESTORS: usize = 1_000;

/// An ancestor ended while a lineage was read, so that what is above it is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BrokenLineage;

/// A process and its ancestors, nearest first, without the system's first process. Empty if the
/// process is gone. Each is looked up when it is asked for.
pub fn lineage(pid: u32) -> impl Iterator<Item = Result<Process, BrokenLineage>> {
    lineage_by(pid, stat)
}

/// The ancestors of this process, nearest first, as far as they can be seen.
pub fn own_ancestors() -> impl Iterator<Item = Process> {
    lineage(std::process::id()).map_while(Result::ok).skip(1)
}

/// The same as [`lineage`], with another way to look a process up.
pub fn lineage_by(
    pid: u32,
    look: impl Fn(u32) -> Option<Process>,
) -> impl Iterator<Item = Result<Process, BrokenLineage>> {
    let mut next = Some((pid, u64::MAX, 0));
    std::iter::from_fn(move || {
        let (pid, youngest, depth) = next.take()?;
        // A process that is younger than its child only has the pid of the parent.
        match look(pid).filter(|found| found.start <= youngest && depth < MAX_ANCESTORS) {
            Some(found) => {
                next = (found.parent > 1).then_some((found.parent, found.start, depth + 1));
                Some(Ok(found))
            }
            None => (depth > 0).then_some(Err(BrokenLineage)),
        }
    })
}

/// The living descendants of a process, parents before children.
#[must_use]
pub fn descendants(root: u32) -> Vec<Process> {
    family(root).into_iter().filter(|process| !process.zombie).collect()
}

/// The same, with those who have ended and were not waited for.
pub fn family(root: u32) -> Vec<Process> {
    let mut by_parent: HashMap<u32, Vec<Process>> = HashMap::new();
    for process in all() {
        by_parent.entry(process.parent).or_default().push(process);
    }
    let mut found: Vec<Process> = Vec::new();
    let mut parents = vec![root];
    while let Some(parent) = parents.pop() {
        let children = by_parent.remove(&parent).unwrap_or_default();
        parents.extend(children.iter().map(|child| child.pid));
        found.extend(children);
    }
    found
}

/// The children of this very process, without a look at everybody else's; none where the kernel does not say.
pub fn children() -> Vec<Process> {
    let me = std::process::id();
    let listed = std::fs::read_to_string(format!("/proc/{me}/task/{me}/children")).unwrap_or_default();
    listed.split_ascii_whitespace().filter_map(|pid| stat(pid.parse().ok()?)).collect()
}

/// Sends a signal to this very process; false if it is gone.
pub fn signal(process: &Process, number: i32) -> bool {
    let Some(pid) = i32::try_from(process.pid).ok().and_then(Pid::from_raw) else { return false };
    let Some(number) = Signal::from_named_raw(number) else { return false };
    let Ok(pidfd) = pidfd_open(pid, PidfdFlags::empty()) else { return false };
    // The descriptor now holds whoever has this pid: make sure that it is the one we mean.
    if stat(process.pid).is_none_or(|now| now.start != process.start) {
        return false;
    }
    pidfd_send_signal(&pidfd, number).is_ok()
}

/// Living processes that were started with this variable in their environment.
#[must_use]
pub fn with_variable(name: &str, value: &str) -> Vec<Process> {
    let holds = |process: &Process| has_variable(process.pid, name, value);
    all().into_iter().filter(|process| !process.zombie).filter(holds).collect()
}

/// Living processes by the value that they were started with of the first of these variables that they have, in one look at all.
#[must_use]
pub fn by_variable(names: &[&str]) -> HashMap<String, Vec<Process>> {
    let starts: Vec<_> = names.iter().map(|name| format!("{name}=").into_bytes()).collect();
    let mut found: HashMap<String, Vec<Process>> = HashMap::new();
    for process in all().into_iter().filter(|process| !process.zombie) {
        let Ok(environ) = std::fs::read(format!("/proc/{}/environ", process.pid)) else { continue };
        let of = |start: &Vec<u8>| {
            environ.split(|byte| *byte == 0).find_map(|entry| entry.strip_prefix(start.as_slice()))
        };
        let value = starts.iter().find_map(of);
        if let Some(value) = value {
            found.entry(String::from_utf8_lossy(value).into_owned()).or_default().push(process);
        }
    }
    found
}

/// Whether a process was started with this variable in its environment.
#[must_use]
pub fn has_variable(pid: u32, name: &str, value: &str) -> bool {
    let wanted = format!("{name}={value}").into_bytes();
    std::fs::read(format!("/proc/{pid}/environ"))
        .is_ok_and(|environ| environ.split(|byte| *byte == 0).any(|entry| entry == wanted))
}

/// The number of a signal by its name (`TERM`, `SIGTERM`, `term`) or number.
///
/// # Errors
/// If there is no such signal.
pub fn signal_number(text: &str) -> io::Result<i32> {
    const NAMES: [(&str, i32); 31] = [
        ("HUP", libc::SIGHUP),
        ("INT", libc::SIGINT),
        ("QUIT", libc::SIGQUIT),
        ("ILL", libc::SIGILL),
        ("TRAP", libc::SIGTRAP),
        ("ABRT", libc::SIGABRT),
        ("BUS", libc::SIGBUS),
        ("FPE", libc::SIGFPE),
        ("KILL", libc::SIGKILL),
        ("USR1", libc::SIGUSR1),
        ("SEGV", libc::SIGSEGV),
        ("USR2", libc::SIGUSR2),
        ("PIPE", libc::SIGPIPE),
        ("ALRM", libc::SIGALRM),
        ("TERM", libc::SIGTERM),
        ("STKFLT", libc::SIGSTKFLT),
        ("CHLD", libc::SIGCHLD),
        ("CONT", libc::SIGCONT),
        ("STOP", libc::SIGSTOP),
        ("TSTP", libc::SIGTSTP),
        ("TTIN", libc::SIGTTIN),
        ("TTOU", libc::SIGTTOU),
        ("URG", libc::SIGURG),
        ("XCPU", libc::SIGXCPU),
        ("XFSZ", libc::SIGXFSZ),
        ("VTALRM", libc::SIGVTALRM),
        ("PROF", libc::SIGPROF),
        ("WINCH", libc::SIGWINCH),
        ("IO", libc::SIGIO),
        ("PWR", libc::SIGPWR),
        ("SYS", libc::SIGSYS),
    ];
    let upper = text.trim().to_ascii_uppercase();
    let name = upper.strip_prefix("SIG").unwrap_or(&upper);
    let by_name = NAMES.iter().find(|(known, _)| *known == name).map(|(_, number)| *number);
    by_name.or_else(|| name.parse().ok().filter(|number| (1..=31).contains(number))).ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("`{text}` is not a signal: write TERM, INT, KILL, … or 1 to 31"),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_parentheses_do_not_confuse_the_parser() {
        let rest = "R 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20";
        let process = parse_stat(7, &format!("7 (a) (b) R) {rest}")).unwrap();
        assert_eq!((process.name.as_str(), process.parent, process.start), ("a) (b) R", 1, 4711));
    }

    #[test]
    fn a_process_with_another_start_time_is_a_stranger() {
        let me = stat(std::process::id()).unwrap();
        assert!(signal(&Process { start: me.start, ..me.clone() }, libc::SIGCONT));
        assert!(!signal(&Process { start: me.start + 1, ..me }, libc::SIGCONT));
    }

    #[test]
    fn lineage_ends_before_the_first_process_or_is_broken() {
        let of = |pid, parent, start| Process {
            pid,
            parent,
            start,
            name: String::new(),
            zombie: false,
            frozen: false,
        };
        let tree = [of(50, 40, 9), of(40, 30, 8), of(30, 1, 7), of(60, 70, 5), of(70, 1, 6)];
        let pids = |pid| {
            let look = |pid| tree.iter().find(|one| one.pid == pid).cloned();
            lineage_by(pid, look).map(|found| found.map(|found| found.pid)).collect::<Vec<_>>()
        };
        assert_eq!(pids(50), [Ok(50), Ok(40), Ok(30)]);
        assert_eq!(pids(60), [Ok(60), Err(BrokenLineage)], "the parent is younger than its child");
        assert_eq!(pids(99), []);
        let endless = lineage_by(5, |pid| Some(of(pid, 5, 1))).last();
        assert_eq!(endless, Some(Err(BrokenLineage)));
        let mine: Vec<_> = own_ancestors().collect();
        assert!(mine.windows(2).all(|pair| pair[0].parent == pair[1].pid));
        assert_eq!(mine.first().map(|parent| parent.pid), Some(std::os::unix::process::parent_id()));
    }

    #[test]
    fn signals_by_name_and_number() {
        assert_eq!(signal_number("sigterm").unwrap(), libc::SIGTERM);
        assert_eq!(signal_number("9").unwrap(), libc::SIGKILL);
        assert!(signal_number("NOPE").is_err());
        assert!(signal_number("0").is_err());
    }
}
