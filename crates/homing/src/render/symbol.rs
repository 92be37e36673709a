//! Statuses and signals as people see them: a symbol and a word, never a colour alone.

pub(crate) use homing_model::signal::name as signal;
use homing_model::{Progress, Status, Task};

use crate::render::console::{Console, Tint};

fn of(status: Status) -> (&'static str, &'static str, Tint) {
    match status {
        Status::Queued => ("○", ".", Tint::Dim),
        Status::Starting => ("◌", ".", Tint::Blue),
        Status::Running => ("●", "*", Tint::Blue),
        Status::Paused => ("‖", "=", Tint::Yellow),
        Status::Stopping => ("◍", "~", Tint::Yellow),
        Status::Succeeded => ("✓", "+", Tint::Green),
        Status::Failed | Status::StartFailed => ("✗", "x", Tint::Red),
        Status::Stopped => ("■", "#", Tint::Yellow),
        Status::TimedOut => ("⧗", "!", Tint::Red),
        Status::Lost => ("?", "?", Tint::Red),
    }
}

/// `✓ succeeded`, and its colour.
pub(crate) fn status(status: Status, console: &Console) -> (String, Tint) {
    let (symbol, ascii, tint) = of(status);
    (format!("{} {status}", if console.symbols { symbol } else { ascii }), tint)
}

/// `40 % linking`.
pub(crate) fn progress(progress: &Progress) -> String {
    let percent = progress.percent.map(|percent| format!("{} %", (percent * 10.0).round() / 10.0));
    let text = progress.text.as_deref().map(homing_model::foreign::one_line);
    percent.into_iter().chain(text).collect::<Vec<_>>().join(" ")
}

/// What the kernel said of the end, in a few characters: `0`, `SIGKILL`, `-`.
pub(crate) fn exit(task: &Task) -> String {
    let Some(outcome) = &task.outcome else { return "-".to_owned() };
    match (outcome.exit_code, outcome.signal) {
        (Some(code), _) => code.to_string(),
        (None, Some(number)) => signal(number),
        (None, None) => "-".to_owned(),
    }
}

/// How a task ended, or where it is, in a line: `failed: exit 1`, `stopped by me`, `lost: machine rebooted`.
pub(crate) fn sentence(task: &Task) -> String {
    task.sentence()
}

#[cfg(test)]
mod tests {
    use homing_client::fake::sample_task;

    use super::*;

    #[test]
    fn an_end_is_told_in_one_line() {
        let mut json = sample_task("lost");
        json["outcome"]["reason"] = "machine\nrebooted".into();
        assert_eq!(sentence(&serde_json::from_value(json).unwrap()), "lost: machine rebooted");
        assert_eq!(sentence(&serde_json::from_value(sample_task("failed")).unwrap()), "failed, exit 1");
        assert_eq!(sentence(&serde_json::from_value(sample_task("succeeded")).unwrap()), "succeeded");
        assert_eq!(sentence(&serde_json::from_value(sample_task("running")).unwrap()), "running");
    }
}
