//! The configuration in force: each value, and where it comes from.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use homing_engine::Config;
use homing_engine::config::Period;
use homing_model::units;
use toml::{Table, Value};

use crate::options::environment::Surroundings;

/// The variable that overrides how often the reconcile pass runs.
const INTERVAL: &str = "HOMING_RECONCILE_INTERVAL";
/// The key that it overrides.
const INTERVAL_KEY: &str = "reconcile.interval";
/// The variable that overrides what is logged, and the key that it overrides.
const LEVEL: &str = "HOMING_LOG";
const LEVEL_KEY: &str = "log.level";
/// It runs no more often.
const LEAST: Duration = Duration::from_millis(100);

/// Which keys a variable overrides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Overrides {
    /// `reconcile.interval`.
    pub(crate) interval: bool,
    /// `log.level`.
    pub(crate) log: bool,
}

/// Which keys the variables of this environment override.
pub(crate) fn overrides(surroundings: &Surroundings) -> Overrides {
    Overrides { interval: interval(surroundings).value.is_some(), log: surroundings.get(LEVEL).is_some() }
}

/// What the variable says.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Interval {
    /// The interval, if it names one.
    pub(crate) value: Option<Duration>,
    /// What is to be said of it, if it is not simply in force.
    pub(crate) said: Option<String>,
}

impl Interval {
    /// That it is ignored, and why.
    pub(crate) fn ignored(&self) -> Option<&str> {
        self.said.as_deref().filter(|_| self.value.is_none())
    }
}

/// Reads the variable.
pub(crate) fn interval(surroundings: &Surroundings) -> Interval {
    let Some(text) = surroundings.get(INTERVAL) else { return Interval::default() };
    match text.to_str().map(units::duration) {
        Some(Ok(value)) if value < LEAST => Interval {
            value: Some(LEAST),
            said: Some(format!("{INTERVAL} is below 100ms, which is in force")),
        },
        Some(Ok(value)) => Interval { value: Some(value), said: None },
        Some(Err(error)) => Interval { value: None, said: Some(format!("{INTERVAL} is ignored: {error}")) },
        None => Interval { value: None, said: Some(format!("{INTERVAL} is ignored: it is not text")) },
    }
}

/// The same configuration with what the variable says.
pub(crate) fn overridden(mut config: Config, surroundings: &Surroundings) -> Config {
    if let Some(value) = interval(surroundings).value {
        config.reconcile.interval = Period(value);
    }
    config
}

/// Every value by its key (`stop.grace`), as the file would have it.
pub(crate) fn values(config: &Config) -> BTreeMap<String, Value> {
    Table::try_from(config).map(|table| flat(&table)).unwrap_or_default()
}

fn flat(table: &Table) -> BTreeMap<String, Value> {
    let sections = table.iter().filter_map(|(section, keys)| Some((section, keys.as_table()?)));
    sections
        .flat_map(|(section, keys)| {
            keys.iter().map(move |(key, value)| (format!("{section}.{key}"), value.clone()))
        })
        .collect()
}

/// Which values differ.
pub(crate) fn differences(one: &Config, other: &Config) -> Vec<(String, Value, Value)> {
    let theirs = values(other);
    let differing = values(one).into_iter().filter_map(|(key, value)| {
        let other = theirs.get(&key).filter(|other| **other != value)?;
        Some((key, value, other.clone()))
    });
    differing.collect()
}

/// Where each value comes from: a file that sets it to that, nothing but the default, or what cannot be seen any more.
pub(crate) fn origins(
    in_force: &Config,
    file: &Path,
    set_by_variable: Overrides,
) -> BTreeMap<String, String> {
    let text = homing_engine::config::read_file(file).unwrap_or_default();
    let set = text.parse::<Table>().map(|table| flat(&table)).unwrap_or_default();
    // A value may be written in many ways: what counts is what it is read as.
    let read = Config::load(file).map(|config| values(&config)).unwrap_or_default();
    let defaults = values(&Config::default());
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let origin = |key: &str, value: &Value| {
        if key == INTERVAL_KEY && set_by_variable.interval {
            INTERVAL.to_owned()
        } else if key == LEVEL_KEY && set_by_variable.log {
            format!("overridden by {LEVEL}")
        } else if set.contains_key(key) && read.get(key) == Some(value) {
            name.clone()
        } else if defaults.get(key) == Some(value) {
            "default".to_owned()
        } else {
            format!("an earlier {name}")
        }
    };
    values(in_force).into_iter().map(|(key, value)| (key.clone(), origin(&key, &value))).collect()
}

/// The configuration as TOML, each value with its origin behind it, or above it where the terminal is too narrow for both.
pub(crate) fn render(
    in_force: &Config,
    origins: &BTreeMap<String, String>,
    terminal: Option<usize>,
) -> String {
    let text = toml::to_string(in_force).unwrap_or_default();
    let behind = origins.values().map(|origin| origin.chars().count() + 4).max().unwrap_or_default();
    let room = terminal.unwrap_or(usize::MAX).saturating_sub(behind);
    let fitting = text.lines().map(|line| line.chars().count()).filter(|length| *length <= room);
    let width = fitting.max().unwrap_or_default();
    let mut section = "";
    let mut out = String::new();
    for line in text.lines() {
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            section = name;
        }
        let origin = line.split_once(" = ").and_then(|(key, _)| origins.get(&format!("{section}.{key}")));
        match origin {
            Some(origin) if line.chars().count() > room => out.push_str(&format!("# {origin}:\n{line}\n")),
            Some(origin) => out.push_str(&format!("{line:<width$}  # {origin}\n")),
            None => out.push_str(&format!("{line}\n")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(value: &str) -> Interval {
        interval(&Surroundings::from([(INTERVAL, value)]))
    }

    #[test]
    fn a_variable_that_makes_no_sense_is_ignored_but_not_in_silence() {
        assert_eq!(set("2s"), Interval { value: Some(Duration::from_secs(2)), said: None });
        let soon = set("soon");
        assert_eq!(soon.value, None);
        assert!(soon.ignored().is_some_and(|said| said.contains(INTERVAL) && said.contains("`soon`")));
        let short = set("1ms");
        assert!(short.value == Some(LEAST) && short.said.is_some() && short.ignored().is_none());
        assert_eq!(interval(&Surroundings::default()), Interval::default());
    }

    #[test]
    fn every_value_says_where_it_comes_from() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("config.toml");
        std::fs::write(&file, "[stop]\ngrace = \"1000ms\"\n[nested]\ndepth = 9\n").unwrap();
        let mut config = Config::load(&file).unwrap();
        config.nested.depth = 7;
        config.reconcile.interval = Period(Duration::from_secs(2));
        let origins = origins(&config, &file, Overrides { interval: true, log: true });
        let text = render(&config, &origins, None);
        for (line, origin) in [
            ("grace = \"1s\"", "config.toml"),
            ("depth = 7", "an earlier config.toml"),
            ("interval = \"2s\"", INTERVAL),
            ("max_tasks = 1000", "default"),
            ("level = \"info\"", "overridden by HOMING_LOG"),
        ] {
            let found = text.lines().find(|found| found.starts_with(line)).unwrap();
            assert!(found.ends_with(&format!("  # {origin}")), "{text}");
        }
        let parsed: Config = toml::from_str(&text).unwrap();
        assert_eq!(parsed, config, "it is still a configuration");
        for terminal in [40, 80] {
            let text = render(&config, &origins, Some(terminal));
            let long = |line: &&str| line.chars().count() > terminal;
            assert!(!text.lines().filter(long).any(|line| line.contains("  # ")), "{text}");
            assert_eq!(toml::from_str::<Config>(&text).unwrap(), config);
        }
    }

    #[test]
    fn differences_are_named_by_their_key() {
        let mut other = Config::default();
        other.nested.depth = 1;
        let found = differences(&Config::default(), &other);
        assert_eq!(found, [("nested.depth".to_owned(), Value::Integer(3), Value::Integer(1))]);
    }
}
