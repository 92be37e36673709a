//! Whether a task at a terminal waits for somebody to type: a best effort, by what the kernel says of its processes.
//!
//! Yes if a process in the foreground of the terminal is blocked in a read of it (or in a `select` of its input alone, as shells and whatever
//! uses readline do). Maybe if it waits for several things at once and the terminal may be one of them: an `epoll` says whether it is, of a
//! `poll` or `select` only that the process has the terminal as its input. What cannot be known is no.

use std::fs;

use homing_model::InputWait;
use rustix::fs::{major, minor, stat};

/// Processes and threads that are looked at, at most.
const MOST: usize = 200;

#[cfg(target_arch = "x86_64")]
mod calls {
    pub(super) const READS: [u64; 2] = [0, 19];
    pub(super) const SELECTS: [u64; 2] = [23, 270];
    pub(super) const POLLS: [u64; 2] = [7, 271];
    pub(super) const EPOLLS: [u64; 3] = [232, 281, 441];
}
#[cfg(not(target_arch = "x86_64"))]
mod calls {
    // The numbers that all newer machines share.
    pub(super) const READS: [u64; 2] = [63, 65];
    pub(super) const SELECTS: [u64; 1] = [72];
    pub(super) const POLLS: [u64; 1] = [73];
    pub(super) const EPOLLS: [u64; 2] = [22, 441];
}

/// What is needed of `/proc/PID/stat`.
#[derive(Debug, PartialEq, Eq)]
struct Standing {
    parent: u32,
    group: i64,
    terminal: u64,
    foreground: i64,
}

/// Whether the task with this main process waits for input at its terminal, for certain.
pub(crate) fn waits_for_input(pid: u32) -> bool {
    input_wait(pid) == InputWait::Yes
}

/// Whether the task with this main process waits for input at its terminal.
pub(crate) fn input_wait(pid: u32) -> InputWait {
    let Some(main) = standing(pid).filter(|main| main.terminal != 0 && main.foreground > 0) else {
        return InputWait::No;
    };
    let mut found = InputWait::No;
    // Its parent, the shim, has its orphans too.
    let mut rest = children(main.parent);
    rest.push(pid);
    for _ in 0..MOST {
        let Some(pid) = rest.pop().filter(|_| found < InputWait::Yes) else { break };
        let Some(process) = standing(pid) else { continue };
        if process.group == main.foreground && process.terminal == main.terminal {
            found = found.max(reads(pid, main.terminal));
        }
        rest.extend(children(pid));
    }
    found
}

fn standing(pid: u32) -> Option<Standing> {
    parse(&String::from_utf8_lossy(&fs::read(format!("/proc/{pid}/stat")).ok()?))
}

fn parse(text: &str) -> Option<Standing> {
    // The name is in parentheses and may itself hold any of both.
    let mut fields = text.get(text.rfind(')')? + 1..)?.split_ascii_whitespace().skip(1);
    let parent = fields.next()?.parse().ok()?;
    let group = fields.next()?.parse().ok()?;
    let terminal: i64 = fields.nth(1)?.parse().ok()?;
    let foreground = fields.next()?.parse().ok()?;
    Some(Standing { parent, group, terminal: u64::from(u32::try_from(terminal).ok()?), foreground })
}

fn threads(pid: u32) -> Vec<u32> {
    let Ok(entries) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).take(MOST).collect()
}

fn children(pid: u32) -> Vec<u32> {
    let of = |thread: u32| fs::read_to_string(format!("/proc/{pid}/task/{thread}/children")).ok();
    let lists: Vec<String> = threads(pid).into_iter().filter_map(of).collect();
    lists.iter().flat_map(|list| list.split_ascii_whitespace()).filter_map(|pid| pid.parse().ok()).collect()
}

/// Whether one of its threads is blocked reading this terminal, or may be.
fn reads(pid: u32, terminal: u64) -> InputWait {
    let sure = |is_so: bool| if is_so { InputWait::Yes } else { InputWait::No };
    let unsure = |may_be: bool| if may_be { InputWait::Maybe } else { InputWait::No };
    let of_thread = |thread: u32| {
        let folder = format!("/proc/{pid}/task/{thread}");
        match fs::read_to_string(format!("{folder}/syscall")) {
            Ok(call) => match blocked_on(&call) {
                Some(Blocked::Read(fd)) => sure(is_terminal(pid, fd, terminal)),
                Some(Blocked::Several) => unsure(is_terminal(pid, 0, terminal)),
                Some(Blocked::Epoll(fd)) => unsure(awaited(pid, fd).any(|fd| is_terminal(pid, fd, terminal))),
                None => InputWait::No,
            },
            // Where that may not be read, the kernel's function may say it.
            Err(_) => match fs::read_to_string(format!("{folder}/wchan")).as_deref() {
                Ok("n_tty_read") => InputWait::Yes,
                // Readers of sockets wait like this too.
                Ok("wait_woken") => sure(is_terminal(pid, 0, terminal) && !has_sockets(pid)),
                _ => InputWait::No,
            },
        }
    };
    threads(pid).into_iter().map(of_thread).max().unwrap_or_default()
}

/// What a thread that is blocked waits to read from.
#[derive(Debug, PartialEq, Eq)]
enum Blocked {
    /// This descriptor.
    Read(u64),
    /// Several; which, is in its memory.
    Several,
    /// Several, which this descriptor knows.
    Epoll(u64),
}

/// What a call of `/proc/PID/syscall` waits to read from, if it is one that does. A thread that runs shows none.
fn blocked_on(call: &str) -> Option<Blocked> {
    let mut words = call.split_ascii_whitespace();
    let number: u64 = words.next()?.parse().ok()?;
    let first = u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok()?;
    if calls::READS.contains(&number) {
        return Some(Blocked::Read(first));
    }
    if calls::EPOLLS.contains(&number) {
        return Some(Blocked::Epoll(first));
    }
    if calls::SELECTS.contains(&number) {
        // One descriptor is waited for, and there is only one below 1.
        return Some(if first == 1 { Blocked::Read(0) } else { Blocked::Several });
    }
    calls::POLLS.contains(&number).then_some(Blocked::Several)
}

/// The descriptors that an `epoll` of a process waits for, as the kernel lists them.
fn awaited(pid: u32, epoll: u64) -> impl Iterator<Item = u64> {
    let listed = fs::read_to_string(format!("/proc/{pid}/fdinfo/{epoll}")).unwrap_or_default();
    let fds: Vec<u64> = listed
        .lines()
        .filter_map(|line| line.strip_prefix("tfd:")?.split_ascii_whitespace().next()?.parse().ok())
        .collect();
    fds.into_iter()
}

/// Whether a descriptor is this terminal, by its own name or as `/dev/tty`.
fn is_terminal(pid: u32, fd: u64, terminal: u64) -> bool {
    let Ok(file) = stat(format!("/proc/{pid}/fd/{fd}")) else { return false };
    let device = (u64::from(major(file.st_rdev)), u64::from(minor(file.st_rdev)));
    let own = ((terminal >> 8) & 0xfff, (terminal & 0xff) | ((terminal >> 12) & 0xf_ff00));
    device == own || device == (5, 0)
}

fn has_sockets(pid: u32) -> bool {
    let Ok(entries) = fs::read_dir(format!("/proc/{pid}/fd")) else { return true };
    let is_one = |entry: fs::DirEntry| {
        fs::read_link(entry.path()).is_ok_and(|name| name.to_string_lossy().starts_with("socket:"))
    };
    entries.flatten().any(is_one)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_writes_is_understood_whatever_the_name() {
        let read = parse("7 (a) (b) S 1 2 3 34816 5 6 7");
        assert_eq!(read, Some(Standing { parent: 1, group: 2, terminal: 34_816, foreground: 5 }));
        assert_eq!(parse("7 (x) S 1 2 3 0 -1 0").map(|p| (p.terminal, p.foreground)), Some((0, -1)));
        assert_eq!(parse("7 (x"), None);
    }

    #[test]
    fn a_read_or_a_select_of_the_input_alone_waits_for_it_and_others_may() {
        let [read, _] = calls::READS;
        let select = calls::SELECTS[0];
        assert_eq!(blocked_on(&format!("{read} 0x3 0x7f00 0x20000 0x0")), Some(Blocked::Read(3)));
        assert_eq!(blocked_on(&format!("{select} 0x1 0x7f00 0x0")), Some(Blocked::Read(0)));
        assert_eq!(blocked_on(&format!("{select} 0x5 0x7f00 0x0")), Some(Blocked::Several));
        assert_eq!(blocked_on(&format!("{} 0x7f00 0x2 0x0", calls::POLLS[0])), Some(Blocked::Several));
        assert_eq!(blocked_on(&format!("{} 0x4 0x7f00 0x2", calls::EPOLLS[0])), Some(Blocked::Epoll(4)));
        for other in ["running", "-1 0x7f 0x0", "230 0x0 0x0", ""] {
            assert_eq!(blocked_on(other), None, "{other}");
        }
    }

    #[test]
    fn a_process_without_a_terminal_waits_for_nobody() {
        assert!(!waits_for_input(std::process::id()) || standing(std::process::id()).unwrap().terminal != 0);
        assert!(!waits_for_input(u32::MAX));
    }
}
