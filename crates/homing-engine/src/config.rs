//! `config.toml`: one file, every key optional, unknown keys refused with their line.

use std::fmt;
use std::io::{self, Read as _};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use homing_model::notify::SigningKey;
use homing_model::operator;
use homing_model::retention::Policy;
use homing_model::units;
use homing_model::wake;
use rustix::fs::{Mode, OFlags};
use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize, Serializer};

pub mod manual;

use crate::admission::misconfigured;
pub use crate::agent::{Agents, Entry as AgentEntry};

/// A duration as people write it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Period(pub Duration);

/// A size as people write it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size(pub u64);

struct PeriodVisitor;

impl Visitor<'_> for PeriodVisitor {
    type Value = Period;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a duration such as \"10s\" or \"7d\"")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Period, E> {
        units::duration(text).map(Period).map_err(de::Error::custom)
    }
}

impl<'de> Deserialize<'de> for Period {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(PeriodVisitor)
    }
}

impl Serialize for Period {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let millis = self.0.as_millis();
        let text = match millis {
            millis if millis % 86_400_000 == 0 && millis > 0 => format!("{}d", millis / 86_400_000),
            millis if millis % 1000 == 0 => format!("{}s", millis / 1000),
            millis => format!("{millis}ms"),
        };
        serializer.serialize_str(&text)
    }
}

struct SizeVisitor;

impl Visitor<'_> for SizeVisitor {
    type Value = Size;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a size such as \"256MiB\" or a number of bytes")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Size, E> {
        units::size(text).map(Size).map_err(de::Error::custom)
    }

    fn visit_i64<E: de::Error>(self, bytes: i64) -> Result<Size, E> {
        u64::try_from(bytes).map(Size).map_err(|_| de::Error::custom("a size cannot be negative"))
    }

    fn visit_u64<E: de::Error>(self, bytes: u64) -> Result<Size, E> {
        Ok(Size(bytes))
    }
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SizeVisitor)
    }
}

impl Serialize for Size {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = match self.0 {
            bytes if bytes > 0 && bytes % (1 << 30) == 0 => format!("{}GiB", bytes >> 30),
            bytes if bytes > 0 && bytes % (1 << 20) == 0 => format!("{}MiB", bytes >> 20),
            bytes => bytes.to_string(),
        };
        serializer.serialize_str(&text)
    }
}

/// `[reconcile]`: the safety net.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Reconcile {
    /// How often.
    pub interval: Period,
    /// Live tasks looked at in one pass at most; the next pass goes on where this one ended.
    pub max_tasks: u32,
}

impl Default for Reconcile {
    fn default() -> Self {
        Self { interval: Period(Duration::from_secs(10)), max_tasks: 1000 }
    }
}

/// `[retention]`: how long finished tasks are kept, whichever is reached first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Retention {
    /// Since their end.
    pub age: Period,
    /// How many.
    pub count: u64,
    /// How much output in all.
    pub bytes: Size,
    /// How long a forgotten task still answers with its outcome.
    pub tombstones: Period,
}

impl Default for Retention {
    fn default() -> Self {
        let policy = Policy::default();
        Self {
            age: Period(policy.age),
            count: policy.count,
            bytes: Size(policy.bytes),
            tombstones: Period(policy.tombstones),
        }
    }
}

impl Retention {
    /// As the store takes it.
    #[must_use]
    pub const fn policy(&self) -> Policy {
        Policy { age: self.age.0, count: self.count, bytes: self.bytes.0, tombstones: self.tombstones.0 }
    }
}

/// `[webhook]`: where webhooks may go, and what signs them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Webhook {
    /// Addresses that are closed otherwise: `host:port`, or a range such as `10.0.0.0/8`.
    pub allow: Vec<String>,
    /// What one attempt may take, from the look-up to the last byte of the answer.
    pub deadline: Period,
    /// Keys that sign, `whsec_…`: one, or several while they are being changed. The home's own (`webhook.secret`) if there is none.
    #[serde(
        deserialize_with = "one_or_several",
        serialize_with = "hidden",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub secret: Vec<SigningKey>,
}

impl Default for Webhook {
    fn default() -> Self {
        Self { allow: Vec::new(), deadline: Period(Duration::from_secs(15)), secret: Vec::new() }
    }
}

fn one_or_several<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<SigningKey>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Given {
        One(SigningKey),
        Several(Vec<SigningKey>),
    }
    Ok(match Given::deserialize(deserializer)? {
        Given::One(key) => vec![key],
        Given::Several(keys) => keys,
    })
}

/// What is shown of the configuration shows no key.
fn hidden<S: Serializer>(keys: &[SigningKey], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(keys.iter().map(|_| "whsec_…"))
}

/// `[output]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Output {
    /// How much of a task's output is kept, where the task does not say.
    pub max: Size,
}

impl Default for Output {
    fn default() -> Self {
        Self { max: Size(256 << 20) }
    }
}

/// `[nested]`: tasks submitted from inside tasks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Nested {
    /// How deep.
    pub depth: u32,
    /// How many live ones a task may have of its own.
    pub children: u32,
}

impl Default for Nested {
    fn default() -> Self {
        Self { depth: 3, children: 8 }
    }
}

/// `[confined]`: callers in a sandbox that the daemon is not in.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Confined {
    /// Serve them all the same. A task then runs outside their sandbox.
    pub allow: bool,
}

/// `[listener]`: the same API over TCP on this machine, for callers with the token.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Listener {
    /// Whether it is open from the start.
    pub enabled: bool,
    /// Where; 0 takes any port that is free, and keeps it.
    pub port: u16,
    /// An address beyond this machine to listen at as well. Whoever sees the traffic there has the token, and with it the account.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dangerously_bind: Option<String>,
}

impl Listener {
    /// Where else to listen. What is in force was checked when it was read.
    #[must_use]
    pub fn elsewhere(&self) -> Option<IpAddr> {
        self.dangerously_bind.as_ref().and_then(|text| text.parse().ok())
    }
}

/// `[stop]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Stop {
    /// Between the polite signal and the last one, where the task does not say.
    pub grace: Period,
}

impl Default for Stop {
    fn default() -> Self {
        Self { grace: Period(Duration::from_secs(5)) }
    }
}

/// From which level on something is logged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Only what failed.
    Error,
    /// What should be looked at.
    Warn,
    /// What an operator wants to know.
    #[default]
    Info,
    /// Every request, and every step of every task.
    Debug,
    /// More than anybody wants to know.
    Trace,
}

/// `[log]`: what the daemon says of itself, in `daemon.log` of the home.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Log {
    /// From which level on.
    pub level: Level,
    /// How large one file becomes.
    pub max: Size,
    /// How many full ones are kept besides.
    pub keep: u32,
}

impl Default for Log {
    fn default() -> Self {
        Self { level: Level::Info, max: Size(4 << 20), keep: 3 }
    }
}

/// No log file is smaller.
const LEAST_LOG: u64 = 64 << 10;
/// No more full ones are kept.
pub const MOST_LOGS: u32 = 100;

/// The whole file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The safety net.
    pub reconcile: Reconcile,
    /// How long finished tasks are kept.
    pub retention: Retention,
    /// Output.
    pub output: Output,
    /// Ending a task.
    pub stop: Stop,
    /// Tasks inside tasks.
    pub nested: Nested,
    /// Sandboxed callers.
    pub confined: Confined,
    /// The loopback listener.
    pub listener: Listener,
    /// Webhooks.
    pub webhook: Webhook,
    /// What notices may do, whatever a task asks for.
    pub notify: operator::Policy,
    /// How often an agent's session is woken.
    pub wake: wake::Settings,
    /// The daemon's own log.
    pub log: Log,
    /// Agents that are asked.
    pub agents: Agents,
}

/// Why a file is no configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// It is there but cannot be read.
    #[error("{} could not be read: {source}", path.display())]
    Read {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A line makes no sense.
    #[error("{}{}: {message}", path.display(), line.map_or_else(String::new, |line| format!(", line {line}")))]
    Parse {
        /// Which file.
        path: PathBuf,
        /// Which line, counted from 1.
        line: Option<usize>,
        /// What is wrong.
        message: String,
    },
}

/// No configuration is longer.
const LONGEST: u64 = 1 << 20;

/// Reads a plain file and nothing else: whoever opens a pipe or a device in its place may wait for ever.
///
/// # Errors
/// If it is none, or longer than any configuration, or cannot be read.
pub fn read_file(path: &Path) -> io::Result<String> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = std::fs::File::from(rustix::fs::open(path, flags, Mode::empty())?);
    let metadata = file.metadata()?;
    if metadata.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    if !metadata.is_file() || metadata.len() > LONGEST {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "it is not a plain file of at most 1 MiB"));
    }
    io::read_to_string(file.take(LONGEST))
}

impl Config {
    /// Reads a file; one that is not there is the default.
    ///
    /// # Errors
    /// With the line that is wrong.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        match Self::text(path)? {
            Some(text) => Self::parse(path, &text),
            None => Ok(Self::default()),
        }
    }

    /// What a file holds; none if it is not there.
    ///
    /// # Errors
    /// If it is there and cannot be read.
    pub fn text(path: &Path) -> Result<Option<String>, ConfigError> {
        match read_file(path) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(ConfigError::Read { path: path.to_owned(), source }),
        }
    }

    /// What the text of a file says.
    ///
    /// # Errors
    /// With the line that is wrong.
    pub fn parse(path: &Path, text: &str) -> Result<Self, ConfigError> {
        let config: Self = toml::from_str(text).map_err(|error| {
            let (line, message) = misconfigured::told(text, &error);
            ConfigError::Parse { path: path.to_owned(), line, message }
        })?;
        let wrong = |message: &str| ConfigError::Parse {
            path: path.to_owned(),
            line: None,
            message: message.to_owned(),
        };
        if config.reconcile.interval.0 < Duration::from_millis(100) {
            return Err(wrong("reconcile.interval must be at least 100ms"));
        }
        if config.reconcile.max_tasks == 0 {
            return Err(wrong("reconcile.max_tasks must be at least 1"));
        }
        if config.listener.dangerously_bind.is_some() && config.listener.elsewhere().is_none() {
            return Err(wrong("listener.dangerously_bind must be an IP address, such as \"0.0.0.0\""));
        }
        if config.output.max.0 < homing_model::validate::MIN_OUTPUT_BYTES {
            return Err(wrong("output.max must be at least 64KiB"));
        }
        if config.log.max.0 < LEAST_LOG || config.log.keep > MOST_LOGS {
            return Err(wrong("log.max must be at least 64KiB, and log.keep at most 100"));
        }
        Ok(config)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Config, ConfigError> {
        Config::parse(Path::new("config.toml"), text)
    }

    #[test]
    fn nothing_is_the_default_and_every_key_is_read() {
        assert_eq!(parse("").unwrap(), Config::default());
        let config =
            parse("[reconcile]\ninterval = \"2s\"\n[output]\nmax = \"1MiB\"\n[retention]\nbytes = 5")
                .unwrap();
        assert_eq!(config.reconcile.interval.0, Duration::from_secs(2));
        assert_eq!((config.output.max.0, config.retention.bytes.0), (1 << 20, 5));
    }

    #[test]
    fn what_notices_may_do_is_read_and_what_makes_no_sense_is_named_with_its_line() {
        use homing_model::notify::When;
        use homing_model::operator::TargetKind;
        let config = parse("[notify]\nforbid = [\"exec\"]\non = \"failure\"\n[wake]\nper_hour = 3").unwrap();
        assert_eq!((config.notify.closed(), config.notify.on), (vec![TargetKind::Exec], When::Failure));
        assert_eq!(config.wake.per_hour, 3);
        for (text, wrong) in [
            ("[notify]\non = \"sometimes\"", "sometimes"),
            ("[notify]\nforbid = [\"inbox\"]", "cannot be forbidden"),
            ("[notify]\nallow = [\"mail\"]", "mail"),
            ("[wake]\nper_day = 3", "per_day"),
            ("[wake]\nper_hour = -1", "-1"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains("line 2") && error.contains(wrong), "{error}");
        }
    }

    #[test]
    fn an_unknown_key_and_a_bad_value_are_named_with_their_line() {
        let unknown = parse("[reconcile]\ninterval = \"2s\"\nnonsense = 1").unwrap_err().to_string();
        assert!(unknown.contains("line 3") && unknown.contains("nonsense"), "{unknown}");
        let bad = parse("\n[reconcile]\ninterval = \"soon\"").unwrap_err().to_string();
        assert!(bad.contains("line 3") && bad.contains("soon"), "{bad}");
    }
}
