//! Which configuration is in force: the file, or the last good one where the file is broken.
//!
//! A daemon that is revived by itself must not stay away because somebody is in the middle of an edit, and must not fall back to
//! defaults either: a shorter retention would drop what a person wanted kept. So every good file is copied into the home, and the
//! copy holds while the file is broken.

use std::path::{Path, PathBuf};
use std::time::Duration;

use homing_api::{ConfigurationInfo, ConfigurationSource};
use homing_engine::config::Period;
use homing_engine::{Config, ConfigError};
use homing_model::meter::Counter;
use homing_sys::atomic_file;
use parking_lot::Mutex;

use crate::reload::BROKEN_CONFIGURATION;

/// The copy, in the home.
const LAST_GOOD: &str = "config.last-good.toml";

/// Reads a file, and checks what only those who use it can judge. One that is not there is the default.
///
/// # Errors
/// With the line that is wrong.
pub fn load(path: &Path) -> Result<Config, ConfigError> {
    understood(path, Config::text(path)?.as_deref())
}

/// The same of what was read; of a file that is not there, nothing was.
fn understood(path: &Path, text: Option<&str>) -> Result<Config, ConfigError> {
    let config = text.map_or_else(|| Ok(Config::default()), |text| Config::parse(path, text))?;
    homing_deliver::validate(&config.webhook).map_err(|message| ConfigError::Parse {
        path: path.to_owned(),
        line: None,
        message,
    })?;
    Ok(config)
}

/// Where the configuration comes from.
#[derive(Debug)]
pub(crate) struct Settings {
    file: PathBuf,
    copy: PathBuf,
    reconcile_interval: Option<Duration>,
    variables: Vec<String>,
    log_is_set: bool,
    source: Mutex<ConfigurationSource>,
    /// Why the file is not in force.
    problem: Mutex<Option<String>>,
    reloads: Counter,
}

impl Settings {
    /// Of this file, for this home, with the interval of the reconcile pass overridden or not.
    pub(crate) fn new(file: &Path, home: &Path, reconcile_interval: Option<Duration>) -> Self {
        Self {
            file: file.to_owned(),
            copy: home.join(LAST_GOOD),
            reconcile_interval,
            variables: Vec::new(),
            log_is_set: false,
            source: Mutex::new(ConfigurationSource::Defaults),
            problem: Mutex::new(None),
            reloads: Counter::default(),
        }
    }

    /// With what is to be said of variables, and whether HOMING_LOG overrides the level.
    pub(crate) fn with_variables(self, variables: Vec<String>, log_is_set: bool) -> Self {
        Self { variables, log_is_set, ..self }
    }

    /// What is in force, and how the file is now. Reads the file.
    pub(crate) fn info(&self, in_force: &Config) -> ConfigurationInfo {
        let found = load(&self.file).map(|config| self.overridden(config));
        ConfigurationInfo {
            path: self.file.display().to_string(),
            source: *self.source.lock(),
            changed: found.as_ref().is_ok_and(|found| found != in_force),
            problem: found.err().map(|error| error.to_string()),
            interval_is_set: self.reconcile_interval.is_some(),
            log_is_set: self.log_is_set,
            variables: self.variables.clone(),
            values: serde_json::to_value(in_force).unwrap_or_default(),
        }
    }

    /// Whether the file is in force, and how often a changed one was taken over.
    pub(crate) fn standing(&self) -> (bool, u64) {
        let problem = self.problem.lock();
        let source = *self.source.lock();
        (problem.is_none() && source != ConfigurationSource::LastGood, self.reloads.read())
    }

    /// Reads the file again. None if it says what is in force already. What is wrong with it is an error each time, and `true` beside it
    /// the first time.
    pub(crate) fn again(&self, in_force: &Config) -> Result<Option<Config>, (ConfigError, bool)> {
        let read = self.read();
        let mut problem = self.problem.lock();
        match read {
            Ok(config) => {
                *problem = None;
                let changed = config != *in_force;
                self.reloads.add_many(u64::from(changed));
                Ok(changed.then_some(config))
            }
            Err(error) => {
                let text = error.to_string();
                let news = problem.as_ref() != Some(&text);
                *problem = Some(text);
                Err((error, news))
            }
        }
    }

    /// The file.
    pub(crate) fn file(&self) -> &Path {
        &self.file
    }

    fn came_from(&self, source: ConfigurationSource) {
        *self.source.lock() = source;
    }

    /// Whether the file is in force, or was, and is not there: somebody may be about to put another in its place.
    pub(crate) fn is_away(&self) -> bool {
        let source = *self.source.lock();
        source != ConfigurationSource::Defaults && matches!(Config::text(&self.file), Ok(None))
    }

    /// Reads the file, once, and keeps a copy of a good one.
    ///
    /// # Errors
    /// With the line that is wrong.
    pub(crate) fn read(&self) -> Result<Config, ConfigError> {
        let text = Config::text(&self.file)?;
        let config = understood(&self.file, text.as_deref())?;
        let there = text.is_some();
        self.came_from(if there { ConfigurationSource::File } else { ConfigurationSource::Defaults });
        self.keep(text.unwrap_or_default().as_bytes());
        Ok(self.overridden(config))
    }

    /// What to begin with: the file, or the copy if the file is broken. An error if there is neither.
    ///
    /// # Errors
    /// With the line of the file that is wrong.
    pub(crate) fn begin(&self) -> Result<Config, ConfigError> {
        let had_one = std::fs::metadata(&self.copy).is_ok_and(|copy| copy.len() > 0);
        if had_one && matches!(Config::text(&self.file), Ok(None)) {
            tracing::warn!(path = %self.file.display(), "there was a configuration, and it is gone: the defaults are in force");
        }
        let error = match self.read() {
            Ok(config) => return Ok(config),
            Err(error) => error,
        };
        match Config::load(&self.copy) {
            Ok(config) if self.copy.exists() => {
                tracing::error!(%error, "{BROKEN_CONFIGURATION}");
                self.came_from(ConfigurationSource::LastGood);
                Ok(self.overridden(config))
            }
            Ok(_) | Err(_) => Err(error),
        }
    }

    fn overridden(&self, mut config: Config) -> Config {
        if let Some(interval) = self.reconcile_interval {
            config.reconcile.interval = Period(interval);
        }
        config
    }

    /// The home is not written to when nothing changed, and a copy that cannot be made is no reason to stop.
    fn keep(&self, text: &[u8]) {
        if std::fs::read(&self.copy).is_ok_and(|kept| kept == text) {
            return;
        }
        if let Err(error) = atomic_file::replace(&self.copy, text, 0o600) {
            tracing::warn!(%error, "no copy of the configuration could be kept");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_file_leaves_the_last_good_one_in_force() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("config.toml");
        let settings = Settings::new(&file, dir.path(), None);
        std::fs::write(&file, "[confined]\nallow = ").unwrap();
        assert!(settings.begin().is_err(), "there is no good one yet");
        std::fs::write(&file, "[confined]\nallow = true\n").unwrap();
        assert!(settings.begin().unwrap().confined.allow);
        std::fs::write(&file, "[confined]\nalow = true\n").unwrap();
        assert!(settings.read().unwrap_err().to_string().contains("line 2"));
        assert!(settings.begin().unwrap().confined.allow);
        std::fs::remove_file(&file).unwrap();
        assert!(!settings.begin().unwrap().confined.allow, "no file is the default");
    }

    #[test]
    fn what_is_in_force_is_told_and_whether_the_file_is_another_by_now() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("config.toml");
        let settings = Settings::new(&file, dir.path(), None);
        let config = settings.begin().unwrap();
        let info = settings.info(&config);
        assert_eq!((info.source, info.changed, info.problem), (ConfigurationSource::Defaults, false, None));
        assert_eq!(info.values["stop"]["grace"], "5s");
        std::fs::write(&file, "[stop]\ngrace = \"1s\"\n").unwrap();
        let info = settings.info(&config);
        assert_eq!((info.source, info.changed), (ConfigurationSource::Defaults, true));
        let config = settings.read().unwrap();
        let info = settings.info(&config);
        assert_eq!((info.source, info.changed), (ConfigurationSource::File, false));
        std::fs::write(&file, "[stop]\ngrcae = \"1s\"\n").unwrap();
        let info = settings.info(&config);
        assert!(info.problem.is_some_and(|problem| problem.contains("line 2")) && !info.changed);
        let next = Settings::new(&file, dir.path(), None);
        let config = next.begin().unwrap();
        let info = next.info(&config);
        assert_eq!(
            (info.source, info.values["stop"]["grace"].as_str()),
            (ConfigurationSource::LastGood, Some("1s"))
        );
    }

    #[test]
    fn a_file_that_was_in_force_and_is_not_there_is_away() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("config.toml");
        let settings = Settings::new(&file, dir.path(), None);
        let _ = settings.begin().unwrap();
        assert!(!settings.is_away(), "it never was there");
        std::fs::write(&file, "[confined]\nallow = true\n").unwrap();
        assert!(settings.read().unwrap().confined.allow && !settings.is_away());
        std::fs::remove_file(&file).unwrap();
        assert!(settings.is_away());
        assert!(!settings.read().unwrap().confined.allow && !settings.is_away(), "it was read as removed");
    }

    #[test]
    fn the_interval_of_the_caller_wins() {
        let dir = tempfile::tempdir().unwrap();
        let settings = Settings::new(&dir.path().join("absent"), dir.path(), Some(Duration::from_secs(1)));
        assert_eq!(settings.begin().unwrap().reconcile.interval.0, Duration::from_secs(1));
    }
}
