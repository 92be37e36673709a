//! Which process the keeper is, written into its own lock file, so that a shim can watch it without being in its way.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::process::{Pid, PidfdFlags, pidfd_open};

use homing_sys::{home, process};

/// Long enough for any pid and start time. Always written whole: on a full disk a file can be changed, but not grow.
const WIDTH: usize = 40;

/// The keeper says who it is.
pub(super) fn announce(lock: impl AsFd) {
    let Some(me) = process::stat(std::process::id()) else { return };
    let text = format!("{:<width$}\n", format!("{} {}", me.pid, me.start), width = WIDTH - 1);
    let _ = rustix::io::pwrite(lock, text.as_bytes(), 0);
}

/// The keeper of a home as a descriptor that is readable when it is gone; none if it is gone already.
pub(crate) fn watch(home: &Path) -> Option<OwnedFd> {
    let text = std::fs::read_to_string(home.join(home::KEEPER_LOCK)).ok()?;
    let (pid, start) = text.trim().split_once(' ')?;
    let (pid, start): (u32, u64) = (pid.parse().ok()?, start.parse().ok()?);
    let pidfd = pidfd_open(Pid::from_raw(i32::try_from(pid).ok()?)?, PidfdFlags::empty()).ok()?;
    // The descriptor holds whoever has this pid now: only with its start time is it the keeper.
    let there = process::stat(pid).filter(|there| there.start == start && !there.zombie);
    there.map(|_| pidfd)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_announced_itself_is_found_and_another_with_its_pid_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(home::KEEPER_LOCK);
        assert!(watch(dir.path()).is_none());
        let lock = std::fs::File::create(&path).unwrap();
        announce(&lock);
        assert_eq!(lock.metadata().unwrap().len(), WIDTH as u64);
        assert!(watch(dir.path()).is_some());
        std::fs::write(&path, format!("{} 1\n", std::process::id())).unwrap();
        assert!(watch(dir.path()).is_none());
    }
}
