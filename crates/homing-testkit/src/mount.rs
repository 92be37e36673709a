//! A small disk of its own for a home: to be filled, or made read-only. Only root can have one.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A mounted tmpfs, gone when dropped.
#[derive(Debug)]
pub(crate) struct Mount(PathBuf);

impl Mount {
    /// Mounts one of `size` bytes; none if that is not allowed here.
    pub(crate) fn new(path: &Path, size: u64) -> Option<Self> {
        std::fs::create_dir(path).expect("a folder to mount on");
        let options = format!("size={size},mode=0700");
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", &options, "homing-test"]).arg(path).status();
        if mounted.is_ok_and(|status| status.success()) {
            return Some(Self(path.to_owned()));
        }
        std::fs::remove_dir(path).expect("the folder that was just made");
        None
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}
