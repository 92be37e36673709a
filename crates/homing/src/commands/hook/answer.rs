//! How long the answer of a turn was when homing made the turn go on.
//!
//! An agent may report the answer of the whole turn at each of its ends, also at that of a request
//! which failed. Only a longer answer shows that the model has read what made the turn go on (P5).
//! The length is kept for the process of the agent, beside the locks of waiters, which also remove
//! what agents that are gone have left.

use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use homing_sys::process::Process;
use rustix::fs::OFlags;

use super::waiter;

/// Keeps the length of an answer, in bytes.
pub(super) fn keep(home: &Path, owner: &str, agent: &Process, bytes: usize) -> io::Result<()> {
    waiter::folder(home)?;
    let flags = i32::try_from(OFlags::NOFOLLOW.bits()).unwrap_or(0);
    let mut options = std::fs::OpenOptions::new();
    let mut file = options
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .custom_flags(flags)
        .open(place(home, owner, agent))?;
    write!(file, "{bytes}")
}

/// Takes out what was kept.
pub(super) fn take(home: &Path, owner: &str, agent: &Process) -> Option<usize> {
    let place = place(home, owner, agent);
    let bytes = std::fs::read_to_string(&place).ok()?.parse().ok();
    let _ = std::fs::remove_file(place);
    bytes
}

fn place(home: &Path, owner: &str, agent: &Process) -> PathBuf {
    let name = format!("answer-{}.{}.{}", owner.replace(':', "-"), agent.pid, agent.start);
    home.join(waiter::FOLDER).join(name)
}

#[cfg(test)]
mod tests {
    use homing_sys::process;

    use super::*;

    #[test]
    fn a_length_is_kept_for_one_process_and_taken_once() {
        let home = tempfile::tempdir().unwrap();
        let agent = process::stat(std::process::id()).unwrap();
        let other = process::stat(agent.parent).unwrap();
        for bytes in [7, 1_234] {
            keep(home.path(), "gemini:s", &agent, bytes).unwrap();
        }
        assert_eq!(take(home.path(), "gemini:s", &other), None);
        assert_eq!(take(home.path(), "gemini:s", &agent), Some(1_234));
        assert_eq!(take(home.path(), "gemini:s", &agent), None);
    }
}
