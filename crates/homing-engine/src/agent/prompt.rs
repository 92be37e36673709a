//! The prompt on its way to an agent: a file in the task's folder, which is the command's input, from the submit to the start.
//!
//! It is not an argument where that can be avoided: every process of the machine may read those. What is in it may be secret, so it is there
//! only while the task may still have to be started.

use std::io;
use std::os::fd::AsFd;

use rustix::fs::AtFlags;
use rustix::io::Errno;

/// Its name.
pub(crate) const FILE: &str = "prompt";

/// Takes it away: the command has it open, or will never run.
pub(crate) fn forget(folder: impl AsFd) -> io::Result<()> {
    match rustix::fs::unlinkat(folder, FILE, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
