//! What is remembered of the listener across daemons: whether it was turned on or off, and its port. One small file in the home, replaced
//! whole; without it, or with one that makes no sense, nothing is remembered.

use std::path::Path;
use std::{fs, io};

use homing_engine::config;
use homing_model::digest::sha256;
use homing_sys::atomic_file;
use serde::{Deserialize, Serialize};

/// The file's name in the home.
const NAME: &str = "listener";

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Remembered {
    /// Somebody turned it on, and nobody off since.
    pub(crate) on: bool,
    /// The port that it had, unless the configuration named it, so that whoever knows its address finds it again.
    pub(crate) port: Option<u16>,
    /// Somebody turned it off, and nobody on since: the digest of the `[listener]` that this outweighs, and no other.
    pub(crate) off: Option<String>,
}

/// The digest of what the configuration says of the listener. Of its values, one by one: what a later release adds, and nobody sets, is no change.
pub(crate) fn digest(config: &config::Listener) -> String {
    let config::Listener { enabled, port, dangerously_bind } = config;
    sha256(format!("{enabled} {port} {}", dangerously_bind.as_deref().unwrap_or_default()).as_bytes())
}

impl Remembered {
    /// Whether it was turned off under this configuration.
    pub(crate) fn is_off(&self, config: &config::Listener) -> bool {
        self.off.as_ref().is_some_and(|off| *off == digest(config))
    }

    pub(crate) fn read(home: &Path) -> Self {
        let text = fs::read(home.join(NAME)).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }

    pub(crate) fn write(&self, home: &Path) -> io::Result<()> {
        if Self::read(home) == *self {
            return Ok(());
        }
        atomic_file::replace(&home.join(NAME), &serde_json::to_vec(self)?, 0o600)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_and_nonsense_is_nothing() {
        let home = tempfile::tempdir().unwrap();
        assert_eq!(Remembered::read(home.path()), Remembered::default());
        let on = Remembered { on: true, port: Some(4711), off: Some("digest".into()) };
        on.write(home.path()).unwrap();
        assert_eq!(Remembered::read(home.path()), on);
        fs::write(home.path().join(NAME), "{\"port\":70000}").unwrap();
        assert_eq!(Remembered::read(home.path()), Remembered::default());
        fs::write(home.path().join(NAME), "{\"on\":true,\"port\":4711}").unwrap();
        let before = Remembered { on: true, port: Some(4711), off: None };
        assert_eq!(Remembered::read(home.path()), before, "as an earlier release wrote it");
    }

    #[test]
    fn it_is_off_under_the_configuration_that_was_outweighed_and_under_no_other() {
        let config = config::Listener { enabled: true, ..config::Listener::default() };
        let off = Remembered { off: Some(digest(&config)), ..Remembered::default() };
        assert!(off.is_off(&config) && !Remembered::default().is_off(&config));
        for other in [
            config::Listener { enabled: false, ..config.clone() },
            config::Listener { port: 4711, ..config.clone() },
            config::Listener { dangerously_bind: Some("0.0.0.0".into()), ..config },
        ] {
            assert!(!off.is_off(&other), "{other:?}");
        }
    }
}
