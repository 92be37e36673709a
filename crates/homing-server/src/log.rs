//! What the daemon says of itself: JSON lines for machines, short lines for whoever runs it in a terminal.

use std::panic;

use tracing::Level;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// The library that speaks MCP tells of every request, with all that is in it; that is nobody's business.
const TALKATIVE: &str = "rmcp";

/// Sends what is logged to stderr, from `level` on. The first call of a process counts.
pub(crate) fn start(level: Option<&str>, foreground: bool) {
    let known = level.map(str::parse::<Level>);
    let max = match known {
        Some(Ok(level)) => level,
        Some(Err(_)) | None => Level::INFO,
    };
    // A line that cannot be written (the log is on the home's disk, which may be full) is dropped: telling of that on the same
    // stderr would panic.
    let builder = tracing_subscriber::fmt()
        .with_max_level(max)
        .with_target(false)
        .with_writer(std::io::stderr)
        .log_internal_errors(false);
    let said = Targets::new().with_default(max).with_target(TALKATIVE, LevelFilter::ERROR);
    let started = if foreground {
        builder.compact().finish().with(said).try_init()
    } else {
        builder.json().flatten_event(true).finish().with(said).try_init()
    };
    if started.is_ok() {
        panic::set_hook(Box::new(|info| tracing::error!(panic = %info, "panic")));
    }
    if let Some(Err(_)) = known {
        tracing::warn!(level, "no such level: error, warn, info, debug and trace are known");
    }
}
