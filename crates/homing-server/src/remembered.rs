//! What is remembered of the listener across daemons: whether it was turned on, and its port. One small file in the home, replaced whole; without
//! it, or with one that makes no sense, nothing is remembered.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// The file's name in the home.
const NAME: &str = "listener";

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Remembered {
    /// Somebody turned it on, and nobody off since.
    pub(crate) on: bool,
    /// The port that it had, unless the configuration named it, so that whoever knows its address finds it again.
    pub(crate) port: Option<u16>,
}

impl Remembered {
    pub(crate) fn read(home: &Path) -> Self {
        let text = fs::read(home.join(NAME)).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }

    pub(crate) fn write(self, home: &Path) -> io::Result<()> {
        if Self::read(home) == self {
            return Ok(());
        }
        let fresh = home.join(format!("{NAME}.new"));
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&fresh)?;
        file.write_all(&serde_json::to_vec(&self)?)?;
        fs::rename(fresh, home.join(NAME))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_and_nonsense_is_nothing() {
        let home = tempfile::tempdir().unwrap();
        assert_eq!(Remembered::read(home.path()), Remembered::default());
        let on = Remembered { on: true, port: Some(4711) };
        on.write(home.path()).unwrap();
        assert_eq!(Remembered::read(home.path()), on);
        fs::write(home.path().join(NAME), "{\"port\":70000}").unwrap();
        assert_eq!(Remembered::read(home.path()), Remembered::default());
    }
}
