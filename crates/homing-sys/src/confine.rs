//! Whether a caller is in a sandbox that the daemon is not in.
//!
//! Keeps P11: a task runs with the daemon's freedom, so whoever has less of it must not submit one, nor read what others' tasks
//! print. The facts are the kernel's, looked up once per connection by the pid that it recorded when the connection was made, and
//! compared with our own, looked up in the same way. What cannot be looked up is refused: a process that hides, or that is gone. That
//! the pid was still that process's is for the caller to make sure of, afterwards ([`crate::peer`]).
//!
//! All reads go through one open `/proc/PID`, which stays with that process: if it ends halfway and its pid is used again, the
//! rest of the reads fail.
//!
//! Landlock shows nowhere. A process that is not privileged needs no_new_privs for it, which shows; one with `CAP_SYS_ADMIN` does not, so
//! a daemon that has that capability cannot see such a sandbox (SECURITY.md).

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;

use rustix::fs::{AtFlags, Mode, OFlags, openat, statat};
use rustix::io::Errno;

use crate::peer::PeerProcess;

/// More than the status of a process in all groups that there can be.
const LONGEST_STATUS: u64 = 1 << 20;

/// The namespaces of a process, by the names that `/proc/PID/ns` and a message have for them.
const NAMESPACES: [(&str, &str); 8] = [
    ("user", "user"),
    ("mnt", "mount"),
    ("pid", "pid"),
    ("net", "network"),
    ("ipc", "ipc"),
    ("uts", "uts"),
    ("cgroup", "cgroup"),
    ("time", "time"),
];

/// What a process may be locked into.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Confinement {
    no_new_privs: u64,
    /// 0 none, 1 strict, 2 filters.
    seccomp: u64,
    seccomp_filters: u64,
    namespaces: [Identity; NAMESPACES.len()],
    root: Identity,
    capabilities: Capabilities,
    /// Sorted; the group that it runs in among them.
    groups: Vec<u32>,
    /// What a security module calls it; empty where there is none.
    label: String,
}

/// Sets of capabilities, one bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Capabilities {
    effective: u64,
    permitted: u64,
    bounding: u64,
}

impl Capabilities {
    /// Whether one of its sets lacks something that the same set of `ours` has.
    const fn lacks(self, ours: Self) -> bool {
        (ours.effective & !self.effective)
            | (ours.permitted & !self.permitted)
            | (ours.bounding & !self.bounding)
            != 0
    }
}

/// Device and inode: the same for two processes in one namespace, or with one root.
type Identity = (u64, u64);

/// What a caller has that we have not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// It gave up gaining privileges.
    NoNewPrivs,
    /// Its system calls are filtered.
    Seccomp,
    /// It is in another namespace of this kind.
    Namespace(&'static str),
    /// It sees another root folder.
    Root,
    /// It lacks a capability.
    Capabilities,
    /// It is not in this group.
    Group(u32),
    /// A security module confines it.
    Label,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoNewPrivs => f.write_str("it runs with no_new_privs, and the daemon does not"),
            Self::Seccomp => f.write_str("it runs under more seccomp filters than the daemon"),
            Self::Namespace(name) => write!(f, "it is in another {name} namespace than the daemon"),
            Self::Root => f.write_str("it has another root folder than the daemon"),
            Self::Capabilities => f.write_str("it lacks capabilities that the daemon has"),
            Self::Group(group) => write!(f, "it is not in group {group}, which the daemon is in"),
            Self::Label => {
                f.write_str("it has another security label (AppArmor, SELinux, Smack) than the daemon")
            }
        }
    }
}

impl Confinement {
    /// Our own.
    ///
    /// # Errors
    /// If `/proc` cannot be read.
    pub fn own() -> io::Result<Self> {
        Self::read("/proc/self")
    }

    /// That of another process.
    ///
    /// # Errors
    /// If it is gone, or hides.
    pub fn of(pid: u32) -> io::Result<Self> {
        Self::read(&format!("/proc/{pid}"))
    }

    fn read(path: &str) -> io::Result<Self> {
        let folder =
            rustix::fs::open(path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        let identity = |name: &str| -> io::Result<Identity> {
            let found = statat(&folder, name, AtFlags::empty())?;
            Ok((found.st_dev, found.st_ino))
        };
        let mut status = Vec::with_capacity(4096);
        let file = openat(&folder, "status", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        // Without the limit it would be asked first how long it is, and files of `/proc` do not know.
        File::from(file).take(LONGEST_STATUS).read_to_end(&mut status)?;
        if status.len() as u64 >= LONGEST_STATUS {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let value = |name: &str| field(&status, name, 10).ok_or(io::ErrorKind::InvalidData);
        let set = |name: &str| field(&status, name, 16).ok_or(io::ErrorKind::InvalidData);
        let mut namespaces = [Identity::default(); NAMESPACES.len()];
        for (place, (name, _)) in namespaces.iter_mut().zip(NAMESPACES) {
            *place = match identity(&format!("ns/{name}")) {
                // A kernel that was built without this kind, for this process as for ours.
                Err(error) if error.kind() == io::ErrorKind::NotFound => Identity::default(),
                found => found?,
            };
        }
        Ok(Self {
            no_new_privs: value("NoNewPrivs")?,
            seccomp: value("Seccomp")?,
            // Absent before Linux 5.9.
            seccomp_filters: value("Seccomp_filters").unwrap_or(0),
            namespaces,
            root: identity("root")?,
            capabilities: Capabilities {
                effective: set("CapEff")?,
                permitted: set("CapPrm")?,
                bounding: set("CapBnd")?,
            },
            groups: groups(&status).ok_or(io::ErrorKind::InvalidData)?,
            label: label(&folder)?,
        })
    }

    /// Why this process is more confined than `ours`, if it is.
    #[must_use]
    pub fn beyond(&self, ours: &Self) -> Option<Reason> {
        self.locked_in(ours).or_else(|| self.less_able(ours))
    }

    /// The same where a daemon takes over the tasks of an earlier one, but for groups: a user who has more groups by one login than by another
    /// does not lose tasks by that.
    pub fn beyond_as_successor(&self, ours: &Self) -> Option<Reason> {
        let lacks = self.capabilities.lacks(ours.capabilities).then_some(Reason::Capabilities);
        self.locked_in(ours).or(lacks).or_else(|| self.mislabelled(ours))
    }

    /// What a process is locked into whatever user, groups and capabilities it has.
    fn locked_in(&self, ours: &Self) -> Option<Reason> {
        if self.no_new_privs > ours.no_new_privs {
            return Some(Reason::NoNewPrivs);
        }
        // Mode 1 allows four calls and nothing else: fewer than any filter.
        let strict = self.seccomp == 1 && ours.seccomp != 1;
        if strict || (self.seccomp > 0 && ours.seccomp == 0) || self.seccomp_filters > ours.seccomp_filters {
            return Some(Reason::Seccomp);
        }
        let mut kinds = NAMESPACES.iter().zip(self.namespaces.iter().zip(&ours.namespaces));
        if let Some(((_, name), _)) = kinds.find(|(_, (theirs, ours))| theirs != ours) {
            return Some(Reason::Namespace(name));
        }
        (self.root != ours.root).then_some(Reason::Root)
    }

    /// What it may do less. Only one direction counts: a caller with more than we have gains nothing by us.
    fn less_able(&self, ours: &Self) -> Option<Reason> {
        if self.capabilities.lacks(ours.capabilities) {
            return Some(Reason::Capabilities);
        }
        if let Some(group) = ours.groups.iter().find(|group| !self.groups.contains(group)) {
            return Some(Reason::Group(*group));
        }
        self.mislabelled(ours)
    }

    /// Whether a security module has it under other rules than us, and not under none.
    fn mislabelled(&self, ours: &Self) -> Option<Reason> {
        (self.label != ours.label && !is_unconfined(&self.label)).then_some(Reason::Label)
    }
}

/// Whether a label says of itself that it confines nothing: AppArmor's own word or mode, and SELinux' type of a login.
fn is_unconfined(label: &str) -> bool {
    let complains = [" (unconfined)", " (complain)"].iter().any(|mode| label.ends_with(mode));
    label.is_empty() || label == "unconfined" || complains || label.split(':').nth(2) == Some("unconfined_t")
}

/// The label of a process; empty where no security module gives one.
fn label(folder: impl AsFd) -> io::Result<String> {
    let read = || -> io::Result<Vec<u8>> {
        let file = openat(&folder, "attr/current", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        let mut text = Vec::new();
        File::from(file).take(LONGEST_STATUS).read_to_end(&mut text)?;
        Ok(text)
    };
    match read() {
        Ok(text) => Ok(String::from_utf8_lossy(&text).trim_end_matches(['\0', '\n']).to_owned()),
        Err(error) if matches!(Errno::from_io_error(&error), Some(Errno::INVAL | Errno::NOENT)) => {
            Ok(String::new())
        }
        Err(error) => Err(error),
    }
}

/// Whether the process at the other end of a local connection may talk to keeper or shim, which would run anything for it: the same
/// user, alive, and with no [`Reason`] against it. There is no setting for this: who is let in by configuration is let in by the daemon.
pub fn is_trusted_peer(
    socket: impl AsFd,
    against: impl Fn(&Confinement, &Confinement) -> Option<Reason>,
) -> bool {
    let Ok(peer) = PeerProcess::of(socket) else { return false };
    let confined = || -> Option<bool> {
        let (theirs, ours) = (Confinement::of(peer.pid()?).ok()?, Confinement::own().ok()?);
        Some(against(&theirs, &ours).is_some())
    };
    // Alive comes last: only then was all of this read of the process that connected.
    peer.uid() == rustix::process::geteuid().as_raw() && confined() == Some(false) && peer.is_alive()
}

/// Why this process is more confined than the system's first process, or than one of its own ancestors, if it is: such a process never
/// starts the daemon, which would be locked into the same sandbox and outlive it. Whom we may not look at is not held against us.
///
/// Groups, capabilities and labels do not count here: a login takes them from what is above it, for every ordinary user.
#[must_use]
pub fn beyond_origin() -> Option<String> {
    let own = Confinement::own().ok()?;
    let lineage = crate::process::lineage(std::process::id()).map_while(Result::ok);
    // By their parents, the first process is among them.
    for pid in lineage.map(|process| process.parent).filter(|pid| *pid > 0) {
        if let Some(reason) = Confinement::of(pid).ok().and_then(|theirs| own.locked_in(&theirs)) {
            return Some(reason.to_string().replace("the daemon", "the process that started it"));
        }
    }
    // Its namespaces are hidden from ordinary users; the rest is not.
    let status = std::fs::read("/proc/1/status").ok()?;
    let init = Confinement {
        no_new_privs: field(&status, "NoNewPrivs", 10)?,
        seccomp: field(&status, "Seccomp", 10)?,
        seccomp_filters: field(&status, "Seccomp_filters", 10).unwrap_or(0),
        ..own.clone()
    };
    own.locked_in(&init).map(|reason| reason.to_string().replace("the daemon", "the system's first process"))
}

/// Whether this process may lock itself, or what it starts, into Landlock without a trace (`CAP_SYS_ADMIN`).
#[must_use]
pub fn is_blind_to_landlock() -> bool {
    const SYS_ADMIN: u64 = 1 << 21;
    Confinement::own().is_ok_and(|own| own.capabilities.effective & SYS_ADMIN != 0)
}

/// A number of `/proc/PID/status`.
fn field(status: &[u8], name: &str, radix: u32) -> Option<u64> {
    u64::from_str_radix(line(status, name)?, radix).ok()
}

/// All groups of a process: the one that it runs in, and the supplementary ones.
fn groups(status: &[u8]) -> Option<Vec<u32>> {
    // Real, effective, saved and that of the filesystem.
    let effective = line(status, "Gid")?.split_ascii_whitespace().nth(1)?;
    let all = line(status, "Groups")?.split_ascii_whitespace().chain([effective]);
    let mut groups = all.map(|group| group.parse().ok()).collect::<Option<Vec<u32>>>()?;
    groups.sort_unstable();
    groups.dedup();
    Some(groups)
}

/// A line of `/proc/PID/status`, read from its end: what we look for is there, and a process's name, which it chooses itself, is
/// at the start.
fn line<'a>(status: &'a [u8], name: &str) -> Option<&'a str> {
    status.rsplit(|byte| *byte == b'\n').find_map(|line| {
        let value = line.strip_prefix(name.as_bytes())?.strip_prefix(b":")?;
        std::str::from_utf8(value).ok().map(str::trim)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p11_more_confined_is_refused_and_equal_or_less_is_not() {
        let plain = Confinement::default;
        let filtered = || Confinement { seccomp: 2, seccomp_filters: 1, ..plain() };
        let contained = || Confinement { no_new_privs: 1, seccomp: 2, seccomp_filters: 3, ..plain() };
        let other = (9, 9);
        let elsewhere = |name: &str| {
            let place = NAMESPACES.iter().position(|(_, known)| *known == name).unwrap();
            let mut all = plain();
            all.namespaces[place] = other;
            all
        };
        let able = |capabilities| Confinement { capabilities, ..plain() };
        let some = Capabilities { effective: 0b10, permitted: 0b11, bounding: 0b111 };
        let member = |groups: &[u32]| Confinement { groups: groups.to_vec(), ..plain() };
        let labelled = |label: &str| Confinement { label: label.into(), ..plain() };
        let cases = [
            (plain(), plain(), None),
            (contained(), contained(), None),
            (plain(), contained(), None),
            (filtered(), contained(), None),
            (contained(), filtered(), Some(Reason::NoNewPrivs)),
            (Confinement { no_new_privs: 1, ..plain() }, plain(), Some(Reason::NoNewPrivs)),
            (filtered(), plain(), Some(Reason::Seccomp)),
            (Confinement { seccomp_filters: 2, ..filtered() }, filtered(), Some(Reason::Seccomp)),
            (Confinement { seccomp: 1, ..plain() }, filtered(), Some(Reason::Seccomp)),
            (Confinement { seccomp: 2, ..plain() }, plain(), Some(Reason::Seccomp)),
            (elsewhere("mount"), plain(), Some(Reason::Namespace("mount"))),
            (elsewhere("pid"), plain(), Some(Reason::Namespace("pid"))),
            (elsewhere("user"), plain(), Some(Reason::Namespace("user"))),
            (elsewhere("network"), plain(), Some(Reason::Namespace("network"))),
            (elsewhere("ipc"), plain(), Some(Reason::Namespace("ipc"))),
            (elsewhere("uts"), plain(), Some(Reason::Namespace("uts"))),
            (elsewhere("cgroup"), plain(), Some(Reason::Namespace("cgroup"))),
            (elsewhere("time"), plain(), Some(Reason::Namespace("time"))),
            (Confinement { root: other, ..plain() }, plain(), Some(Reason::Root)),
            (able(some), able(some), None),
            (able(some), plain(), None),
            (able(Capabilities { effective: 0, ..some }), able(some), Some(Reason::Capabilities)),
            (able(Capabilities { permitted: 0b10, ..some }), able(some), Some(Reason::Capabilities)),
            (able(Capabilities { bounding: 0b11, ..some }), able(some), Some(Reason::Capabilities)),
            (member(&[4, 27, 1000]), member(&[27, 1000]), None),
            (member(&[27, 1000]), member(&[4, 27, 1000]), Some(Reason::Group(4))),
            (labelled("unconfined"), labelled("firefox (enforce)"), None),
            (labelled("code (unconfined)"), labelled("unconfined"), None),
            (labelled("firefox (enforce)"), labelled("firefox (enforce)"), None),
            (labelled("firefox (enforce)"), labelled("unconfined"), Some(Reason::Label)),
            (labelled("u:r:unconfined_t:s0"), labelled("system_u:system_r:init_t:s0"), None),
            (labelled("u:r:sandbox_t:s0:c1,c2"), labelled("u:r:unconfined_t:s0"), Some(Reason::Label)),
        ];
        for (theirs, ours, expected) in cases {
            assert_eq!(theirs.beyond(&ours), expected, "{theirs:?} against {ours:?}");
            let successor = expected.filter(|reason| !matches!(reason, Reason::Group(_)));
            assert_eq!(theirs.beyond_as_successor(&ours), successor, "{theirs:?} after {ours:?}");
            let able = matches!(expected, Some(Reason::Capabilities | Reason::Group(_) | Reason::Label));
            assert_eq!(theirs.locked_in(&ours), expected.filter(|_| !able), "{theirs:?} started by {ours:?}");
        }
    }

    #[test]
    fn we_are_as_confined_as_ourselves() {
        let own = Confinement::own().unwrap();
        assert_eq!(Confinement::of(std::process::id()).unwrap(), own);
        assert_ne!(own.namespaces[1], (0, 0));
        assert!(own.groups.contains(&rustix::process::getegid().as_raw()));
        assert_ne!(own.capabilities.bounding, 0);
        assert_eq!(own.beyond(&own), None);
    }

    #[test]
    fn p11_a_process_that_is_gone_cannot_be_judged() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = child.id();
        child.wait().unwrap();
        assert!(Confinement::of(pid).is_err());
        assert!(Confinement::of(0).is_err());
    }

    #[test]
    fn p11_a_peer_that_ends_while_it_is_looked_at_is_not_trusted() {
        const CONNECT: &str = "import socket, sys\ns = socket.socket(socket.AF_UNIX)\ns.connect(sys.argv[1])\nsys.stdin.read()\n";
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let mut python = std::process::Command::new("python3");
        python.args(["-c", CONNECT]).arg(&path).stdin(std::process::Stdio::piped());
        let child = std::cell::RefCell::new(python.spawn().unwrap());
        let (socket, _) = listener.accept().unwrap();
        assert!(is_trusted_peer(&socket, |_, _| None));
        let ends = |_: &Confinement, _: &Confinement| {
            drop(child.borrow_mut().stdin.take());
            child.borrow_mut().wait().unwrap();
            None
        };
        assert!(!is_trusted_peer(&socket, ends), "its pid may be another's by now");
    }

    #[test]
    fn a_name_cannot_pass_for_a_field() {
        let status =
            b"Name:\tx\\nNoNewPrivs:\t0\nUmask:\t0022\nNoNewPrivs:\t1\nSeccomp:\t2\nSeccomp_filters:\t4\n";
        assert_eq!(field(status, "NoNewPrivs", 10), Some(1));
        assert_eq!(field(status, "Seccomp", 10), Some(2));
        assert_eq!(field(status, "Seccomp_filters", 10), Some(4));
        assert_eq!(field(status, "Absent", 10), None);
        let status = b"Name:\tGroups:\nGid:\t1000\t27\t1000\t1000\nGroups:\t1000 4 \nCapEff:\t000001ff\n";
        assert_eq!(groups(status), Some(vec![4, 27, 1000]));
        assert_eq!(groups(b"Gid:\t0\t0\t0\t0\nGroups:\t \n"), Some(vec![0]));
        assert_eq!(field(status, "CapEff", 16), Some(0x1ff));
    }
}
