//! What still runs, for a session that goes on after a break.

use homing_model::sanitize::line;
use homing_model::units::show_duration;
use homing_model::{Task, Timestamp, turn};

/// So many are named.
pub(super) const MOST: u32 = 10;
/// The longest name or command, in characters.
const LONGEST: usize = 100;

/// A few lines about the tasks that have not ended; none if there are none.
pub(super) fn text(tasks: &[Task], now: Timestamp) -> Option<String> {
    let most = usize::try_from(MOST).unwrap_or(usize::MAX);
    let count = tasks.len();
    let head = match count {
        0 => return None,
        1 => "1 background task of this session still runs".to_owned(),
        _ if count > most => format!("more than {most} background tasks of this session still run"),
        _ => format!("{count} background tasks of this session still run"),
    };
    let mut text = format!("{} {head}; do not start them again. You are told when they end.\n", turn::MARK);
    for task in tasks.iter().take(most) {
        let what = short(task.name.as_deref().unwrap_or(&task.command));
        let since = task.started_at.map(|at| format!(" for {}", show_duration(now.millis_since(at))));
        text.push_str(&format!("{} {}{}: {what}\n", task.id, task.status, since.unwrap_or_default()));
    }
    if count > most {
        text.push_str("`homing list` shows them all.\n");
    }
    Some(text)
}

fn short(text: &str) -> String {
    let text = line(text);
    match text.char_indices().nth(LONGEST) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use homing_client::fake::sample_task;

    use super::*;

    #[test]
    fn a_few_are_named_and_the_rest_is_counted() {
        let now = Timestamp::from_millis(0);
        assert_eq!(text(&[], now), None);
        let mut task: Task = serde_json::from_value(sample_task("running")).unwrap();
        task.name = Some("x\u{1b}[2J\n".repeat(60));
        let one = text(std::slice::from_ref(&task), now).unwrap();
        assert!(one.starts_with("[homing notice - not user input] 1 background task"), "{one}");
        assert!(!one.contains('\u{1b}') && one.lines().count() == 2, "{one}");
        let many = text(&vec![task; 11], now).unwrap();
        assert!(many.contains("more than 10") && many.lines().count() == 12, "{many}");
        assert!(many.chars().count() < 2_000);
    }
}
