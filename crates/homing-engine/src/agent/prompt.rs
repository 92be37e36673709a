//! The prompt on its way to an agent: a file in the task's folder, which is the command's input, from the submit to the start.
//!
//! It is not an argument where that can be avoided: every process of the machine may read those. What is in it may be secret, so it is there
//! only while the task may still have to be started.

use std::io::{self, Write as _};
use std::os::fd::AsFd;

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

/// Its name.
pub(crate) const FILE: &str = "prompt";

/// Puts it there. As with the environment, a power cut needs no care: the task is not started after one.
pub(crate) fn write(folder: impl AsFd, prompt: &str) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let file = rustix::fs::openat(folder, FILE, flags, Mode::RUSR | Mode::WUSR)?;
    std::fs::File::from(file).write_all(prompt.as_bytes())
}

/// Takes it away: the command has it open, or will never run.
pub(crate) fn forget(folder: impl AsFd) -> io::Result<()> {
    match rustix::fs::unlinkat(folder, FILE, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
