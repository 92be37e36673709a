//! A folder that is gone when nobody needs it any longer.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// The folder.
#[derive(Debug)]
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    /// A new one, beside those of other runs. Its path is short, because sockets are to be in it.
    pub(crate) fn new(name: &str) -> Result<Scratch> {
        let path = std::env::temp_dir().join(format!("homing-{name}-{}", std::process::id()));
        std::fs::create_dir(&path).with_context(|| format!("{} could not be made", path.display()))?;
        Ok(Scratch(path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Whoever looks for what is left over finds it; there is nobody to tell here.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
