//! The line that shows that a task goes on while nothing else is to be seen: a turning sign, the time, and how far the task says it is.
//!
//! It stands on stderr, where that is a terminal that somebody looks at. Whatever is printed next takes its place, because everything is
//! printed by way of the console, which knows whether it stands there. Between the lines of a task's output it shows up only after a silence,
//! and only where a line has ended: a question that waits for an answer is left alone.

use std::time::Duration;

use homing_client::Client;
use homing_model::units::show_duration;
use homing_model::{Task, TaskId};
use tokio::time::{Instant, sleep_until, timeout};

use crate::cli::context::Context;
use crate::render::columns::fit;
use crate::render::console::Console;
use crate::render::symbol;
use crate::render::table;

/// Nobody needs to see it for what is over at once.
const SOON: Duration = Duration::from_millis(500);
/// A silence between lines of output.
const SILENCE: Duration = Duration::from_secs(3);
/// How fast it turns.
const TURN: Duration = Duration::from_millis(125);
/// How often it is looked how far the task is.
const LOOK: Duration = Duration::from_secs(1);
/// A daemon that is being restarted is not waited for by a line of comfort.
const PATIENCE: Duration = Duration::from_millis(500);

const SIGNS: &[&str] = &["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
const ASCII: &[&str] = &["|", "/", "-", "\\"];

/// The line, and when it is drawn next.
pub(crate) struct Spinner {
    console: Console,
    /// Starts no daemon: whoever waits for the task does.
    client: Client,
    task: TaskId,
    begun: Instant,
    turned: usize,
    next: Instant,
    look: Instant,
    seen: Option<Task>,
    silence: Duration,
}

impl Spinner {
    /// For a task that is waited for, with or without its output between; none where nobody would see it.
    pub(crate) fn new(context: &Context, task: &TaskId, with_output: bool) -> Option<Self> {
        let now = Instant::now();
        let silence = if with_output { SILENCE } else { SOON };
        context.console.animated.then(|| Self {
            console: context.console,
            client: context.quiet_client(),
            task: task.clone(),
            begun: now,
            turned: 0,
            next: now + silence,
            look: now,
            seen: None,
            silence,
        })
    }

    /// Something was printed: there is something to look at for a while.
    pub(crate) fn rest(&mut self) {
        self.next = Instant::now() + self.silence;
    }

    /// Waits until it is to be drawn again; looks how far the task is if it was not looked for a while. Dropping it half-way loses nothing.
    pub(crate) async fn turn(&mut self) {
        sleep_until(self.next).await;
        if self.look <= Instant::now() {
            if let Ok(Ok(task)) = timeout(PATIENCE, self.client.task(self.task.as_str())).await {
                self.seen = Some(task);
            }
            self.look = Instant::now() + LOOK;
        }
        self.next = Instant::now() + TURN;
    }

    /// Draws it.
    pub(crate) fn draw(&mut self) {
        let signs = if self.console.symbols { SIGNS } else { ASCII };
        let sign = signs.get(self.turned % signs.len()).copied().unwrap_or_default();
        self.turned += 1;
        let text = text(sign, &self.task, self.seen.as_ref(), self.begun.elapsed());
        self.console.status(&text);
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        self.console.clear_status();
    }
}

/// `⠙ t-bcdfghjkmn  running  12s  40 % linking`.
fn text(sign: &str, id: &TaskId, task: Option<&Task>, waited: Duration) -> String {
    let mut text = format!("{sign} {id}");
    let Some(task) = task else { return format!("{text}  {}", whole(waited)) };
    text.push_str(&format!("  {}  {}", task.status, whole(waited)));
    if let Some(progress) = &task.progress {
        text.push_str(&format!("  {}", symbol::progress(progress)));
    } else if let Some(name) = &task.name {
        text.push_str(&format!("  {}", homing_model::sanitize::line(name)));
    } else {
        text.push_str(&format!("  {}", table::title(task)));
    }
    text
}

/// Whole seconds: tenths would only flicker.
fn whole(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..=59 => format!("{seconds}s"),
        seconds => show_duration(seconds.saturating_mul(1_000)),
    }
}

/// As much of a line as is sure not to be wrapped.
pub(crate) fn on_one_line(text: &str, width: usize) -> String {
    fit(text, width.saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use homing_client::fake::sample_task;

    use super::*;

    #[test]
    fn it_says_what_is_waited_for_how_long_and_how_far_it_is() {
        let id = TaskId::from_entropy(1);
        let mut json = sample_task("running");
        json["command"] = "make \u{1b}[2J all".into();
        let seconds = Duration::from_millis(12_345);
        let told = |json: &serde_json::Value| {
            text("*", &id, Some(&serde_json::from_value(json.clone()).unwrap()), seconds)
        };
        assert_eq!(text("*", &id, None, seconds), format!("* {id}  12s"));
        assert_eq!(told(&json), format!("* {id}  running  12s  make  all"));
        json["progress"] = serde_json::json!({ "percent": 40, "text": "linking\u{1b}]0;x\u{7}", "at": "2026-01-01T00:00:01Z" });
        assert_eq!(told(&json), format!("* {id}  running  12s  40 % linking"));
    }

    #[test]
    fn it_is_never_wrapped() {
        assert_eq!(on_one_line("abcdef", 6), "abcd…");
        assert_eq!(on_one_line("abcde", 6), "abcde");
        assert_eq!(on_one_line("abcde", 0), "");
    }
}
