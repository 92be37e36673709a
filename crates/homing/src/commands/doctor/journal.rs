//! The daemon's own log: how much there is, and whether it tells of errors.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;

use homing_model::Timestamp;
use homing_model::units::show_size;
use homing_sys::home::LOG;
use serde::Deserialize;

use super::Check;

const NAME: &str = "log";

/// So much of its end is looked at.
const TAIL: u64 = 256 * 1024;

/// Errors of the last day count.
const LATELY_MS: u64 = 24 * 3_600 * 1_000;

/// A line of it.
#[derive(Deserialize)]
struct Line {
    timestamp: Timestamp,
    level: String,
    #[serde(default)]
    message: String,
}

/// Whether it can be read, and what it says.
pub(super) fn journal(home: &Path, now: Timestamp) -> Check {
    let path = home.join(LOG);
    let mut file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Check::ok(NAME, "none yet; the daemon makes it");
        }
        Err(error) => {
            return Check::warn(
                NAME,
                format!("{}: {error}", path.display()),
                "Make it a plain file of yours.",
            );
        }
    };
    let size = file.metadata().map_or(0, |found| found.len());
    let full = (1..=100).map(|number| std::fs::metadata(home.join(format!("{LOG}.{number}"))));
    let all = size + full.map_while(Result::ok).map(|found| found.len()).sum::<u64>();
    let mut text = Vec::new();
    let _ = file.seek(SeekFrom::Start(size.saturating_sub(TAIL)));
    let _ = file.take(TAIL).read_to_end(&mut text);
    judge(&path, all, &String::from_utf8_lossy(&text), now)
}

fn judge(path: &Path, size: u64, text: &str, now: Timestamp) -> Check {
    let errors: Vec<Line> = text
        .lines()
        .filter_map(|line| serde_json::from_str::<Line>(line).ok())
        // The check of the configuration reports a broken one for as long as it is broken.
        .filter(|line| line.level == "ERROR" && line.message != homing_server::BROKEN_CONFIGURATION)
        .filter(|line| now.millis_since(line.timestamp) < LATELY_MS)
        .collect();
    match errors.last() {
        None => Check::ok(NAME, format!("{}, {} in all", path.display(), show_size(size))),
        Some(last) => Check::warn(
            NAME,
            format!(
                "{} of the last day in {}, the last at {}: {}",
                count(errors.len()),
                path.display(),
                last.timestamp,
                last.message
            ),
            format!(
                "Look there: grep '\"ERROR\"' {}",
                homing_model::shell::quote(&path.display().to_string())
            ),
        ),
    }
}

fn count(errors: usize) -> String {
    if errors == 1 { "1 error".to_owned() } else { format!("{errors} errors") }
}

#[cfg(test)]
mod tests {
    use super::super::State;
    use super::*;

    #[test]
    fn errors_of_the_last_day_are_told_and_older_ones_are_not() {
        let text = "half a line\n\
            {\"timestamp\":\"2026-01-01T00:00:00.000001Z\",\"level\":\"ERROR\",\"message\":\"old\"}\n\
            {\"timestamp\":\"2026-01-03T00:00:00.000001Z\",\"level\":\"INFO\",\"message\":\"serving\"}\n\
            {\"timestamp\":\"2026-01-03T00:00:00.000002Z\",\"level\":\"ERROR\",\"message\":\"the disk\",\"task\":\"t-1\"}\n";
        let broken = r#"{"timestamp":"2026-01-03T00:30:00.000001Z","level":"ERROR","message":"BROKEN"}"#;
        let text = format!("{text}{}\n", broken.replace("BROKEN", homing_server::BROKEN_CONFIGURATION));
        let text = text.as_str();
        let path = Path::new("/h/daemon.log");
        let soon = judge(path, 10, text, "2026-01-03T01:00:00.000Z".parse().unwrap());
        assert!(soon.state == State::Warn && soon.detail.starts_with("1 error of the last day"), "{soon:?}");
        assert!(soon.detail.ends_with(": the disk"), "{soon:?}");
        assert_eq!(judge(path, 10, text, "2026-01-05T00:00:00.000Z".parse().unwrap()).state, State::Ok);
    }
}
