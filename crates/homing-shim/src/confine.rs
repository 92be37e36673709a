//! Whether a caller is in a sandbox that the daemon is not in.
//!
//! Keeps P11: a task runs with the daemon's freedom, so whoever has less of it must not submit one, nor read what others' tasks
//! print. The facts are the kernel's, looked up once per connection by the pid that it recorded when the connection was made, and
//! compared with our own, looked up in the same way. What cannot be looked up is refused: a process that hides, or that is gone. That
//! the pid was still that process's is for the caller to make sure of, afterwards ([`crate::peer`]).
//!
//! All reads go through one open `/proc/PID`, which stays with that process: if it ends halfway and its pid is used again, the
//! rest of the reads fail. Landlock shows nowhere, but needs no_new_privs, which does.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;

use rustix::fs::{AtFlags, Mode, OFlags, openat, statat};

use crate::peer::PeerProcess;

/// More than the status of a process in all groups that there can be.
const LONGEST_STATUS: u64 = 1 << 20;

/// What a process may be locked into.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Confinement {
    no_new_privs: u64,
    /// 0 none, 1 strict, 2 filters.
    seccomp: u64,
    seccomp_filters: u64,
    mount: Identity,
    pid: Identity,
    user: Identity,
    net: Identity,
    root: Identity,
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
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoNewPrivs => f.write_str("it runs with no_new_privs, and the daemon does not"),
            Self::Seccomp => f.write_str("it runs under more seccomp filters than the daemon"),
            Self::Namespace(name) => write!(f, "it is in another {name} namespace than the daemon"),
            Self::Root => f.write_str("it has another root folder than the daemon"),
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
        let value = |name: &str| field(&status, name);
        Ok(Self {
            no_new_privs: value("NoNewPrivs").ok_or(io::ErrorKind::InvalidData)?,
            seccomp: value("Seccomp").ok_or(io::ErrorKind::InvalidData)?,
            // Kernels before 5.9 do not count them.
            seccomp_filters: value("Seccomp_filters").unwrap_or(0),
            mount: identity("ns/mnt")?,
            pid: identity("ns/pid")?,
            user: identity("ns/user")?,
            net: identity("ns/net")?,
            root: identity("root")?,
        })
    }

    /// Why this process is more confined than `ours`, if it is.
    #[must_use]
    pub fn beyond(&self, ours: &Self) -> Option<Reason> {
        let namespaces = [
            ("user", self.user, ours.user),
            ("mount", self.mount, ours.mount),
            ("pid", self.pid, ours.pid),
            ("network", self.net, ours.net),
        ];
        if self.no_new_privs > ours.no_new_privs {
            return Some(Reason::NoNewPrivs);
        }
        // Mode 1 allows four calls and nothing else: fewer than any filter.
        let strict = self.seccomp == 1 && ours.seccomp != 1;
        if strict || (self.seccomp > 0 && ours.seccomp == 0) || self.seccomp_filters > ours.seccomp_filters {
            return Some(Reason::Seccomp);
        }
        if let Some((name, ..)) = namespaces.into_iter().find(|(_, theirs, ours)| theirs != ours) {
            return Some(Reason::Namespace(name));
        }
        (self.root != ours.root).then_some(Reason::Root)
    }
}

/// Whether the process at the other end of a local connection may talk to keeper or shim, which would run anything for it: the same
/// user, alive, and no more confined than we are. There is no setting for this: who is let in by configuration is let in by the daemon.
pub(crate) fn is_trusted_peer(socket: impl AsFd) -> bool {
    let Ok(peer) = PeerProcess::of(socket) else { return false };
    let confined = || -> Option<bool> {
        let (theirs, ours) = (Confinement::of(peer.pid()?).ok()?, Confinement::own().ok()?);
        Some(theirs.beyond(&ours).is_some())
    };
    // Alive comes last: only then was all of this read of the process that connected.
    peer.uid() == rustix::process::geteuid().as_raw() && confined() == Some(false) && peer.is_alive()
}

/// Why this process is more confined than the system's first process, or than one of its own ancestors, if it is: such a process never
/// starts the daemon, which would be locked into the same sandbox and outlive it. Whom we may not look at is not held against us.
#[must_use]
pub fn beyond_origin() -> Option<String> {
    let own = Confinement::own().ok()?;
    let parent = |pid: u32| crate::process::stat(pid).map(|found| found.parent).filter(|pid| *pid > 0);
    let ancestors = std::iter::successors(parent(std::process::id()), |pid| parent(*pid));
    for pid in ancestors.take(MAX_ANCESTORS) {
        if let Some(reason) = Confinement::of(pid).ok().and_then(|theirs| own.beyond(&theirs)) {
            return Some(reason.to_string().replace("the daemon", "the process that started it"));
        }
    }
    // Its namespaces are hidden from ordinary users; the rest is not.
    let status = std::fs::read("/proc/1/status").ok()?;
    let init = Confinement {
        no_new_privs: field(&status, "NoNewPrivs")?,
        seccomp: field(&status, "Seccomp")?,
        seccomp_filters: field(&status, "Seccomp_filters").unwrap_or(0),
        ..own
    };
    own.beyond(&init).map(|reason| reason.to_string().replace("the daemon", "the system's first process"))
}

/// No process is nested deeper than this; a longer chain is a race with their ends.
const MAX_ANCESTORS: usize = 1_000;

/// A number of `/proc/PID/status`, read from its end: what we look for is there, and a process's name, which it chooses itself, is
/// at the start.
fn field(status: &[u8], name: &str) -> Option<u64> {
    status.rsplit(|byte| *byte == b'\n').find_map(|line| {
        let value = line.strip_prefix(name.as_bytes())?.strip_prefix(b":")?;
        std::str::from_utf8(value).ok()?.trim().parse().ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p11_more_confined_is_refused_and_equal_or_less_is_not() {
        let plain = Confinement::default();
        let filtered = Confinement { seccomp: 2, seccomp_filters: 1, ..plain };
        let contained = Confinement { no_new_privs: 1, seccomp: 2, seccomp_filters: 3, ..plain };
        let other = (9, 9);
        let cases = [
            (plain, plain, None),
            (contained, contained, None),
            (plain, contained, None),
            (filtered, contained, None),
            (contained, filtered, Some(Reason::NoNewPrivs)),
            (Confinement { no_new_privs: 1, ..plain }, plain, Some(Reason::NoNewPrivs)),
            (filtered, plain, Some(Reason::Seccomp)),
            (Confinement { seccomp_filters: 2, ..filtered }, filtered, Some(Reason::Seccomp)),
            (Confinement { seccomp: 1, ..plain }, filtered, Some(Reason::Seccomp)),
            (Confinement { seccomp: 2, ..plain }, plain, Some(Reason::Seccomp)),
            (Confinement { mount: other, ..plain }, plain, Some(Reason::Namespace("mount"))),
            (Confinement { pid: other, ..plain }, plain, Some(Reason::Namespace("pid"))),
            (Confinement { user: other, ..plain }, plain, Some(Reason::Namespace("user"))),
            (Confinement { net: other, ..plain }, plain, Some(Reason::Namespace("network"))),
            (Confinement { root: other, ..plain }, plain, Some(Reason::Root)),
        ];
        for (theirs, ours, expected) in cases {
            assert_eq!(theirs.beyond(&ours), expected, "{theirs:?} against {ours:?}");
        }
    }

    #[test]
    fn we_are_as_confined_as_ourselves() {
        let own = Confinement::own().unwrap();
        assert_eq!(Confinement::of(std::process::id()).unwrap(), own);
        assert_ne!(own.mount, (0, 0));
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
    fn a_name_cannot_pass_for_a_field() {
        let status =
            b"Name:\tx\\nNoNewPrivs:\t0\nUmask:\t0022\nNoNewPrivs:\t1\nSeccomp:\t2\nSeccomp_filters:\t4\n";
        assert_eq!(field(status, "NoNewPrivs"), Some(1));
        assert_eq!(field(status, "Seccomp"), Some(2));
        assert_eq!(field(status, "Seccomp_filters"), Some(4));
        assert_eq!(field(status, "Absent"), None);
    }
}
