//! What the daemon says of itself: JSON lines in `daemon.log` for machines, short lines for whoever runs it in a terminal.
//!
//! Which of it is said is a level, or levels by module (`HOMING_LOG`), and may change while the daemon runs. Whatever concerns a task carries its id
//! as `task`, what concerns a delivery the delivery's as `delivery`.

mod rotating;

use std::io;
use std::panic;
use std::path::Path;
use std::sync::Arc;

use homing_engine::config;
use homing_sys::home;
use parking_lot::Mutex;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Registry, reload};

use rotating::{Limits, Rotating};

/// The library that speaks MCP tells of every request, with all that is in it; that is nobody's business.
const TALKATIVE: &str = "rmcp";

/// The log of this process.
#[derive(Debug)]
pub(crate) struct Log {
    /// None where somebody else has set up what is logged before.
    filter: Option<reload::Handle<Targets, Registry>>,
    file: Option<File>,
    /// A variable says what is logged, whatever the configuration does.
    is_set: bool,
}

/// The file, shared with the subscriber.
#[derive(Debug, Clone)]
struct File(Arc<Mutex<Rotating>>);

impl<'a> MakeWriter<'a> for File {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

impl io::Write for File {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What is logged by default.
fn usual(level: LevelFilter) -> Targets {
    Targets::new().with_default(level).with_target(TALKATIVE, LevelFilter::ERROR)
}

/// What `HOMING_LOG` asks for: a level, or `MODULE=LEVEL` with commas in between, where a level alone holds for the rest.
fn asked(text: &str) -> Option<Targets> {
    // A lone word that is no level would be taken for the name of a module.
    let sound = text.split(',').all(|part| part.contains('=') || part.trim().parse::<LevelFilter>().is_ok());
    let targets: Targets = text.parse().ok().filter(|_| sound)?;
    let default = targets.default_level().unwrap_or(LevelFilter::INFO);
    let quiet = !targets.would_enable(TALKATIVE, &tracing::Level::WARN) || !text.contains(TALKATIVE);
    let targets = targets.with_default(default);
    Some(if quiet { targets.with_target(TALKATIVE, LevelFilter::ERROR) } else { targets })
}

const fn level(level: config::Level) -> LevelFilter {
    match level {
        config::Level::Error => LevelFilter::ERROR,
        config::Level::Warn => LevelFilter::WARN,
        config::Level::Info => LevelFilter::INFO,
        config::Level::Debug => LevelFilter::DEBUG,
        config::Level::Trace => LevelFilter::TRACE,
    }
}

/// Begins to log: to `daemon.log` in the home, or to stderr where somebody looks, or where there is no home to write into. The first call of a process
/// counts.
pub(crate) fn start(variable: Option<&str>, home: Option<&Path>, foreground: bool) -> Log {
    let known = variable.map(asked);
    let is_set = matches!(known, Some(Some(_)));
    let targets = known.clone().flatten().unwrap_or_else(|| usual(LevelFilter::INFO));
    let (targets, filter) = reload::Layer::new(targets);
    // What cannot be opened is no reason to be silent: the keeper has given us the same file as stderr.
    let home = home.filter(|_| !foreground);
    let opened = home.map(|home| Rotating::open(&home.join(home::LOG), Limits::default(), true));
    let file = opened.and_then(Result::ok).map(|rotating| File(Arc::new(Mutex::new(rotating))));
    let registry = tracing_subscriber::registry().with(targets);
    // A line that cannot be written (the log is on the home's disk, which may be full) is dropped: telling of that on the same
    // stderr would panic.
    let lines = tracing_subscriber::fmt::layer().with_target(false).log_internal_errors(false);
    let started = match &file {
        _ if foreground => registry.with(lines.compact().with_writer(io::stderr)).try_init(),
        Some(file) => registry.with(lines.json().flatten_event(true).with_writer(file.clone())).try_init(),
        None => registry.with(lines.json().flatten_event(true).with_writer(io::stderr)).try_init(),
    };
    if started.is_ok() {
        panic::set_hook(Box::new(|info| tracing::error!(panic = %info, "panic")));
    }
    if matches!(known, Some(None)) {
        tracing::warn!(
            HOMING_LOG = variable,
            "makes no sense: `info`, or `info,homing_store=debug`, of error, warn, info, debug, trace and off"
        );
    }
    Log { filter: started.is_ok().then_some(filter), file, is_set }
}

/// What the log and the full ones beside it take.
pub(crate) fn bytes(home: &Path) -> u64 {
    let path = home.join(home::LOG);
    let size = |path: &Path| std::fs::metadata(path).map_or(0, |found| found.len());
    let full = (1..=config::MOST_LOGS).map(|number| size(&rotating::numbered(&path, number)));
    size(&path) + full.take_while(|size| *size > 0).sum::<u64>()
}

impl Log {
    /// Whether a variable says what is logged, whatever the configuration does.
    pub(crate) const fn is_set(&self) -> bool {
        self.is_set
    }

    /// As the configuration says, from now on.
    pub(crate) fn configure(&self, config: &config::Log) {
        if let Some(file) = &self.file {
            let limits = Limits { max: config.max.0, keep: config.keep };
            file.0.lock().limit(limits);
        }
        if let Some(filter) = self.filter.as_ref().filter(|_| !self.is_set) {
            // It fails only where the subscriber is gone.
            let _ = filter.reload(usual(level(config.level)));
        }
    }
}

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    #[test]
    fn the_variable_names_a_level_or_levels_by_module() {
        let debug = asked("debug").unwrap();
        assert!(
            debug.would_enable("homing_engine", &Level::DEBUG)
                && !debug.would_enable(TALKATIVE, &Level::WARN)
        );
        let some = asked("warn,homing_store=trace").unwrap();
        assert!(some.would_enable("homing_store::sqlite", &Level::TRACE));
        assert!(!some.would_enable("homing_engine", &Level::INFO));
        let only = asked("homing_store=debug").unwrap();
        assert!(only.would_enable("homing_engine", &Level::INFO), "the rest is as usual");
        assert!(asked("rmcp=debug").unwrap().would_enable(TALKATIVE, &Level::DEBUG), "who names it wants it");
        assert!(asked("loud").is_none() && asked("homing_store=loud").is_none());
        assert!(!asked("off").unwrap().would_enable("homing_engine", &Level::ERROR));
    }
}
