//! A notice as people see it: what happened to which task, how long ago; then its id and the last line that was printed. Where there is little
//! room the task has a line of its own: what ended matters as much as how.

use homing_model::foreign::one_line as line;
use homing_model::notice::{Body, Completed};
use homing_model::units::show_duration;
use homing_model::{Notice, Status, Timestamp};

use crate::render::columns::{fit, of, squeeze};
use crate::render::console::{Console, Tint};
use crate::render::symbol;

/// Columns that a task's name has at least.
const NAMED: usize = 16;

/// One notice, on two lines, or on three.
pub(crate) fn render(notice: &Notice, now: Timestamp, console: &Console) -> String {
    let (what, tint, more) = match &notice.body {
        Body::Completed(completed) => {
            let (status, tint) = symbol::status(completed.status, console);
            (format!("{status}{}", ending(completed)), tint, words(completed))
        }
        Body::Matched { pattern, line: matched, held_back, explanation } => {
            let held = if *held_back > 0 { format!(" and {held_back} more") } else { String::new() };
            let more = explanation.as_ref().map_or_else(|| last_line(matched), |why| Some(line(why)));
            (format!("matched {}{held}", line(pattern)), Tint::Blue, more)
        }
        Body::Quiet { quiet_ms, waiting_for_input } => {
            let input = if *waiting_for_input { ", it seems to wait for input" } else { "" };
            (format!("quiet for {}{input}", show_duration(*quiet_ms)), Tint::Yellow, None)
        }
        Body::WakePaused { per_hour, until, held_back } => {
            let wait = show_duration(until.millis_since(now));
            let more = format!("{held_back} wait here; the next wake is in {wait}");
            (format!("woken {per_hour} times in an hour, which is the most"), Tint::Yellow, Some(more))
        }
        Body::Heartbeat { new_output } => ("runs on".to_owned(), Tint::Blue, last_line(new_output)),
    };
    let task = notice.task.name.as_deref().unwrap_or(&notice.task.command);
    let age = show_duration(now.millis_since(notice.at));
    let width = console.width.unwrap_or(usize::MAX);
    let before = format!("{}  {what}  ", notice.task.id);
    let (task, age) = (line(task), format!("  ({age} ago)"));
    let head = if of(&before) + of(&age) + of(&task).min(NAMED) <= width {
        squeeze(&before, &task, &age, width)
    } else {
        format!("{}\n{}", fit(before.trim_end(), width), squeeze("  ", &task, &age, width))
    };
    let head = head.replacen(what.as_str(), &console.tint(tint, &what), 1);
    let more = more.map(|more| format!("  {more}"));
    let more = fit(&format!("  {}{}", notice.id, more.unwrap_or_default()), width);
    format!("{head}\n{}\n", console.tint(Tint::Dim, &more))
}

fn ending(completed: &Completed) -> String {
    let outcome = completed.outcome.as_ref();
    let exit =
        match (outcome.and_then(|outcome| outcome.exit_code), outcome.and_then(|outcome| outcome.signal)) {
            (Some(0) | None, None) => String::new(),
            (Some(code), _) => format!(", exit {code}"),
            (None, Some(number)) => format!(", {}", symbol::signal(number)),
        };
    let took = completed.duration_ms.map(|took| format!(" after {}", show_duration(took)));
    let held = completed.held_back.map(|count| format!(", {count} more matched"));
    exit + &took.unwrap_or_default() + &held.unwrap_or_default()
}

/// The answer begins with what matters, an output ends with it; and where nobody can know, or nothing began, the reason is what matters.
fn words(completed: &Completed) -> Option<String> {
    let reason = completed.outcome.as_ref().and_then(|outcome| outcome.reason.as_deref()).map(line);
    if matches!(completed.status, Status::Lost | Status::StartFailed) && reason.is_some() {
        return reason;
    }
    let answer = completed
        .answer
        .as_deref()
        .map(|answer| answer.lines().map(line).find(|text| !text.trim().is_empty()));
    answer.unwrap_or_else(|| last_line(&completed.output_tail))
}

fn last_line(text: &str) -> Option<String> {
    text.lines().rev().map(line).find(|text| !text.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notice(body: &serde_json::Value) -> Notice {
        let mut json = serde_json::json!({
            "id": "n-2222222222", "seq": 1, "at": "2026-01-01T00:00:00.000Z",
            "task": {"id": "t-2222222222", "name": null, "owner": "u", "command": "make", "cwd": null, "labels": {}},
        });
        json.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn an_end_is_told_with_its_last_line_and_nothing_that_a_terminal_obeys() {
        let notice = notice(&serde_json::json!({
            "type": "task.completed", "status": "failed", "outcome": {"exit_code": 2}, "started_at": null, "ended_at": null,
            "duration_ms": 1500, "output_tail": "one\ntwo\u{1b}[2J\n\n", "output_bytes": 9, "output_truncated": false,
            "output_path": null, "answer": null, "held_back": 4,
        }));
        let at = Timestamp::from_millis(notice.at.as_millis() + 60_000);
        let text = render(&notice, at, &Console::plain(None));
        assert!(text.starts_with("t-2222222222  "), "{text}");
        assert!(
            text.contains(
                "failed, exit 2 after 1.5s, 4 more matched  make  (1m 00s ago)\n  n-2222222222  two"
            ),
            "{text}"
        );
        assert!(!text.contains('\u{1b}'));
    }

    #[test]
    fn where_there_is_little_room_the_task_is_named_all_the_same() {
        let mut notice = notice(&serde_json::json!({
            "type": "task.completed", "status": "failed", "outcome": {"exit_code": 2}, "started_at": null, "ended_at": null,
            "duration_ms": 1500, "output_tail": "an end of it that is a long one", "output_bytes": 9, "output_truncated": false,
            "output_path": null, "answer": null,
        }));
        notice.task.name = Some("nightly-build".to_owned());
        let shown = |width| render(&notice, notice.at, &Console::plain(Some(width)));
        assert_eq!(
            shown(40),
            "t-2222222222  ✗ failed, exit 2 after 1.…\n  nightly-build  (0ms ago)\n  n-2222222222  an end of it that is a …\n"
        );
        assert_eq!(shown(80).lines().count(), 2);
        for width in [1, 10, 20, 40, 60, 80] {
            assert!(shown(width).lines().all(|line| of(line) <= width), "{width}: {}", shown(width));
        }
    }

    #[test]
    fn an_end_that_nobody_knows_and_a_start_that_was_none_are_told_with_their_reason() {
        for status in ["lost", "start_failed"] {
            let notice = notice(&serde_json::json!({
                "type": "task.completed", "status": status, "outcome": {"exit_code": null, "reason": "supervisor killed"},
                "started_at": null, "ended_at": null, "duration_ms": null, "output_tail": "half a line", "output_bytes": 9,
                "output_truncated": false, "output_path": null, "answer": null,
            }));
            let text = render(&notice, notice.at, &Console::plain(None));
            assert!(text.contains("n-2222222222  supervisor killed"), "{text}");
        }
    }
}
