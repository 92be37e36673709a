//! Lets a whole tree stand still, and makes sure that it does. Keeps P8.
//!
//! # Theory of operation
//!
//! Where the tree has a cgroup of its own the kernel freezes that, and says when everybody stands still. Whoever is not in it (there is none, or
//! a process moved elsewhere) gets SIGSTOP, but only once its parent stands still: a shell that saw a child of its own stop would take the
//! terminal from it. Who was stopped by somebody else before is left alone, and is not continued later.
//!
//! # Why nobody is free
//!
//! A signal is not a standstill yet: a fork that is under way ends first, and its child, or one whose parent ended while the list was made,
//! may be on no list. So one look proves nothing. A look is clean if it found everybody alive on its list stopped after the list was made (not
//! gone: whoever has ended meanwhile was free, and may have left a child), and if nobody is on the list, dead or alive, who was not on that of the clean
//! look before, in the same state.
//!
//! Say that somebody is free when the second of two clean looks begins, and take the one that is nearest to this process: its ancestors stand still,
//! so they are listed, and none of them waits for it. While the list is made it may end, but not vanish: the list has it, alive or as a
//! zombie. So the list before had it in the same state; but a zombie is not free, and one that was alive was found stopped, and still is. So nobody is.
//!
//! One thing can vanish: a child of a parent that ignores the ends of its children. Its own child is then this process's, which waits for nobody
//! while it looks; and a parent that stands still gets no other. So [`PROOF`] is one look more. What remains is below such a parent too: whoever makes
//! brothers and not children, or whose parent is a subreaper; it is looked for again when the tree prints. Whoever is continued by somebody is what
//! [`Hold::glance`] is for.
//!
//! A process that sleeps in the kernel (a disk that does not answer, a parent whose `vfork` child is stopped) does nothing, and stops before it does
//! anything again: after a while it counts as standing still, and is looked at all the same.
//!
//! Whoever forks and ends at once is gone before it was reached through the list. But then its child is this process's own, whom nobody else
//! watches: such children are stopped as they come, without a list, once a look has found that somebody got away.
//!
//! A process whose first thread has ended looks like one that has, and is none while another thread lives: it is held like any other.

use std::collections::HashSet;

use crate::cgroup::Group;
use homing_sys::process::{self, Process};

/// Clean looks in a row that are the proof.
const PROOF: u8 = 3;

/// What a process is doing, by all of its threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Motion {
    /// Ended, whether waited for or not.
    Ended,
    /// Stopped, or traced to a stop.
    Still,
    /// Asleep in the kernel where no signal reaches it yet.
    Asleep,
    /// Free to do something.
    Moving,
}

fn motion_of(state: &str) -> Motion {
    match state {
        "Z" | "X" | "x" => Motion::Ended,
        "T" | "t" => Motion::Still,
        "D" => Motion::Asleep,
        _ => Motion::Moving,
    }
}

/// The most that any thread of a process does.
fn motion(pid: u32) -> Motion {
    states(pid).iter().map(|state| motion_of(state)).max().unwrap_or(Motion::Ended)
}

/// The states of a process's threads, as `/proc` has them.
fn states(pid: u32) -> Vec<String> {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let state = |entry: std::fs::DirEntry| {
        let text = std::fs::read(entry.path().join("stat")).ok()?;
        let text = String::from_utf8_lossy(&text).into_owned();
        // The name is in parentheses and may itself hold any of both.
        text.get(text.rfind(')')? + 1..)?.split_ascii_whitespace().next().map(str::to_owned)
    };
    threads.flatten().filter_map(state).collect()
}

/// Everybody alive in a tree, parents before their children: descendants of this process, and members of the cgroup that may have left it.
pub(crate) fn members(group: Option<&Group>) -> Vec<Process> {
    listed(group).into_iter().filter(|process| !process.zombie).collect()
}

/// The same, with those who have ended and were not waited for.
fn listed(group: Option<&Group>) -> Vec<Process> {
    let mut members = process::family(std::process::id());
    for member in group.map(Group::members).unwrap_or_default() {
        if members.iter().all(|known| known.pid != member.pid) {
            members.push(member);
        }
    }
    members
}

/// One line of a list: who, and whether it lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Entry {
    pid: u32,
    start: u64,
    zombie: bool,
}

/// A tree that is held where it is.
#[derive(Debug)]
pub(crate) struct Hold {
    /// The kernel holds the cgroup.
    by_group: bool,
    /// Who was sent SIGSTOP, in that order.
    stopped: Vec<Process>,
    /// Whom the last look found outside the cgroup.
    roster: HashSet<Entry>,
    /// Somebody who got away from the last look: ended or came while it was made.
    fleeting: Option<Process>,
    /// Clean looks in a row.
    clean: u8,
    /// The last look found somebody asleep in the kernel.
    uneasy: bool,
    /// The last look stopped somebody for the first time.
    advanced: bool,
}

impl Hold {
    /// Begins to hold the tree; [`look`](Self::look) says when it stands still.
    pub(crate) fn begin(group: Option<&Group>) -> Self {
        let by_group = group.is_some_and(|group| group.freeze(true).is_ok());
        Self {
            by_group,
            stopped: Vec::new(),
            roster: HashSet::new(),
            fleeting: None,
            clean: 0,
            uneasy: false,
            advanced: false,
        }
    }

    /// Looks at everybody, and stops those who are free. True once it is certain that nobody is. With `late`, whoever sleeps in the kernel
    /// counts as standing still.
    pub(crate) fn look(&mut self, group: Option<&Group>, late: bool) -> bool {
        self.advanced = false;
        self.fleeting = None;
        // In this order: who is born between the two is not taken for one who left the cgroup.
        let members = listed(group);
        let held = self.held(group);
        let frozen = group.is_none_or(|group| !self.by_group || group.is_frozen());
        if let Some(group) = group.filter(|_| !frozen) {
            // On its way; or somebody has thawed it.
            let _ = group.freeze(true);
        }
        self.uneasy = !frozen;
        let mut still = frozen || (late && asleep(&held));
        let (before, mut news) = (std::mem::take(&mut self.roster), false);
        // Whoever might see a child of its own stop.
        let mut watchful = if still { HashSet::new() } else { held.clone() };
        for process in members.into_iter().filter(|process| !held.contains(&process.pid)) {
            let entry = Entry { pid: process.pid, start: process.start, zombie: process.zombie };
            self.roster.insert(entry);
            if !before.contains(&entry) {
                news = true;
                // Nobody was waited for before the first look.
                self.fleeting =
                    self.fleeting.take().or_else(|| (!before.is_empty()).then(|| process.clone()));
            }
            if process.zombie {
                continue;
            }
            let motion = motion(process.pid);
            match motion {
                Motion::Still => continue,
                Motion::Ended => {
                    still = false;
                    self.fleeting = Some(process);
                    continue;
                }
                Motion::Asleep if late => self.uneasy = true,
                Motion::Asleep | Motion::Moving => still = false,
            }
            let is_seen = watchful.contains(&process.parent);
            if is_seen || motion == Motion::Moving {
                watchful.insert(process.pid);
            }
            if !is_seen {
                self.stop(process);
            }
        }
        self.clean = match (still, news) {
            (false, _) => 0,
            (true, true) => 1,
            (true, false) => (self.clean + 1).min(PROOF),
        };
        self.is_certain()
    }

    /// Whether somebody got away from the last look.
    pub(crate) const fn is_fled(&self) -> bool {
        self.fleeting.is_some()
    }

    /// Stops the children of this very process that are free now: nobody else watches them.
    pub(crate) fn catch(&mut self, group: Option<&Group>) {
        let children = process::children();
        let held = self.held(group);
        for child in children.into_iter().filter(|child| !child.zombie && !held.contains(&child.pid)) {
            if motion(child.pid) == Motion::Moving {
                self.stop(child);
            }
        }
    }

    fn stop(&mut self, process: Process) {
        if !process::signal(&process, libc::SIGSTOP) {
            return;
        }
        let is_same = |known: &Process| (known.pid, known.start) == (process.pid, process.start);
        if !self.stopped.iter().any(is_same) {
            self.stopped.push(process);
            self.advanced = true;
        }
    }

    /// Whether the last look came further, so that the next one may at once.
    pub(crate) const fn has_advanced(&self) -> bool {
        self.advanced
    }

    /// Whether the last look was clean, so that the next one need not wait for anybody.
    pub(crate) const fn is_clean(&self) -> bool {
        self.clean > 0
    }

    /// Whether the last looks were the proof.
    const fn is_certain(&self) -> bool {
        self.clean >= PROOF
    }

    /// Whether it is worth looking again: somebody is asleep in the kernel.
    pub(crate) const fn is_uneasy(&self) -> bool {
        self.uneasy
    }

    /// Whether those whom the last look found are still where they were. Costs little, and is enough: whoever else there may be comes of one of them.
    pub(crate) fn glance(&self, group: Option<&Group>) -> bool {
        let is_there = |entry: &&Entry| {
            let held = matches!(motion(entry.pid), Motion::Still | Motion::Asleep);
            held && process::stat(entry.pid).is_some_and(|now| now.start == entry.start)
        };
        let frozen = group.is_none_or(|group| !self.by_group || group.is_frozen());
        frozen && self.roster.iter().filter(|entry| !entry.zombie).all(|entry| is_there(&entry))
    }

    /// What was proved may be so no longer.
    pub(crate) const fn doubt(&mut self) {
        self.clean = 0;
    }

    /// Whether only the kernel's freezer holds it, which nobody undoes by a signal.
    pub(crate) const fn is_firm(&self) -> bool {
        self.by_group && self.stopped.is_empty()
    }

    /// Somebody who cannot be held: who moves, or else who got away from the last look.
    pub(crate) fn free(&self, group: Option<&Group>) -> Option<Process> {
        let held = self.held(group);
        let moving = |process: &Process| {
            let is_held = held.contains(&process.pid);
            let motion = states(process.pid).iter().any(|state| state == "R");
            if is_held { motion } else { self::motion(process.pid) == Motion::Moving }
        };
        members(group).into_iter().find(moving).or_else(|| self.fleeting.clone())
    }

    /// Lets everybody go on, children before their parents: whoever was stopped by somebody else is not touched.
    pub(crate) fn release(self, group: Option<&Group>) {
        for process in self.stopped.iter().rev() {
            process::signal(process, libc::SIGCONT);
        }
        if let Some(group) = group.filter(|_| self.by_group) {
            let _ = group.freeze(false);
        }
    }

    /// Whom the kernel holds.
    fn held(&self, group: Option<&Group>) -> HashSet<u32> {
        group.filter(|_| self.by_group).map(Group::everybody).into_iter().flatten().collect()
    }
}

/// Whether somebody of these sleeps in the kernel, and nobody runs.
fn asleep(pids: &HashSet<u32>) -> bool {
    let states: Vec<String> = pids.iter().flat_map(|pid| states(*pid)).collect();
    states.iter().any(|state| state == "D") && states.iter().all(|state| state != "R")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_does_what_its_busiest_thread_does() {
        assert!(Motion::Ended < Motion::Still);
        assert!(Motion::Still < Motion::Asleep && Motion::Asleep < Motion::Moving);
        assert_eq!(["Z", "X"].map(motion_of), [Motion::Ended; 2]);
        assert_eq!(["T", "t"].map(motion_of), [Motion::Still; 2]);
        assert_eq!(["R", "S", "I"].map(motion_of), [Motion::Moving; 3]);
        assert_eq!(motion_of("D"), Motion::Asleep);
        assert_eq!(motion(std::process::id()), Motion::Moving);
        assert_eq!(motion(u32::MAX), Motion::Ended, "one that is gone");
    }
}
