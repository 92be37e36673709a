//! What was told of a task, and where that went, in lines.

use homing_model::NoticeInfo;
use homing_model::foreign::one_line as line;
use homing_model::inbox::InboxState;
use homing_model::notify::When;
use homing_model::task::NotifyInfo;
use homing_model::units::show_duration;
use homing_model::{Delivery, DeliveryState, Timestamp};

/// Who is told, and when.
pub(super) fn policy(notify: &NotifyInfo) -> String {
    let targets: Vec<_> = notify.targets.iter().map(|target| line(target)).collect();
    let whom = if targets.is_empty() { "nobody".to_owned() } else { targets.join(", ") };
    match notify.on {
        When::Always => whom,
        When::Failure => format!("{whom}, of a failure"),
        When::Never => "nobody".to_owned(),
    }
}

/// `task.completed  waits in the inbox (n-…, 10.0s ago)`.
pub(super) fn notice(notice: &NoticeInfo, now: Timestamp) -> String {
    let kind = notice.kind.as_deref().map_or_else(|| "damaged".to_owned(), line);
    let held = match (notice.inbox, notice.held_until) {
        (InboxState::Held, Some(until)) => format!(" for {}", show_duration(until.millis_since(now))),
        _ => String::new(),
    };
    let age = notice.at.map(|at| format!(", {} ago", show_duration(now.millis_since(at))));
    format!("{kind}  {}{held} ({}{})", notice.inbox.as_str(), notice.id, age.unwrap_or_default())
}

/// `https://x.example/  pending after 2 attempts, next in 5m 00s: connection refused (d-…)`.
pub(super) fn delivery(delivery: &Delivery, now: Timestamp) -> String {
    let tries = match delivery.attempts {
        0 => String::new(),
        1 => " after 1 attempt".to_owned(),
        count => format!(" after {count} attempts"),
    };
    let next = delivery.next_at.filter(|at| *at > now);
    let next = next.map(|at| format!(", next in {}", show_duration(at.millis_since(now))));
    let last = delivery.history.last().map(|tried| tried.result.as_str());
    // How somebody was woken is worth a word; that a webhook was taken is not.
    let woken = delivery.target.starts_with("wake");
    let last = last.filter(|_| woken || delivery.state != DeliveryState::Delivered);
    let why = delivery.reason.as_deref().or(last).map(|why| format!(": {}", line(why)));
    format!(
        "{}  {}{tries}{}{} ({})",
        line(&delivery.target),
        delivery.state,
        next.unwrap_or_default(),
        why.unwrap_or_default(),
        delivery.id
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delivery_says_where_it_is_and_what_went_wrong_last() {
        let of = |json: serde_json::Value| {
            let mut whole = serde_json::json!({ "id": "d-2222222222", "notice_id": "n-2222222222", "task_id": "t-bcdfghjkmn",
                "owner": "me", "target": "https://x.example/?…", "state": "pending", "attempts": 0,
                "created_at": "2026-01-01T00:00:00.000Z", "next_at": null, "ended_at": null, "reason": null,
                "history": [] });
            whole.as_object_mut().unwrap().extend(json.as_object().cloned().unwrap());
            delivery(&serde_json::from_value(whole).unwrap(), "2026-01-01T00:00:01.000Z".parse().unwrap())
        };
        assert_eq!(of(serde_json::json!({})), "https://x.example/?…  pending (d-2222222222)");
        let tried =
            serde_json::json!([{ "at": "2026-01-01T00:00:00.000Z", "took_ms": 1, "result": "refused" }]);
        assert_eq!(
            of(serde_json::json!({ "attempts": 1, "next_at": "2026-01-01T00:00:06.000Z", "history": tried })),
            "https://x.example/?…  pending after 1 attempt, next in 5.0s: refused (d-2222222222)"
        );
        assert_eq!(
            of(serde_json::json!({ "attempts": 2, "state": "dead", "reason": "gone", "history": tried })),
            "https://x.example/?…  dead after 2 attempts: gone (d-2222222222)"
        );
        assert_eq!(
            of(serde_json::json!({ "attempts": 2, "state": "delivered", "history": tried })),
            "https://x.example/?…  delivered after 2 attempts (d-2222222222)"
        );
    }

    #[test]
    fn a_notice_says_whether_its_owner_has_it() {
        let of = |inbox: &str, held: Option<&str>| {
            let json = serde_json::json!({ "id": "n-2222222222", "seq": 1, "type": "task.completed",
                "at": "2026-01-01T00:00:00.000Z", "inbox": inbox, "held_until": held });
            notice(&serde_json::from_value(json).unwrap(), "2026-01-01T00:00:01.000Z".parse().unwrap())
        };
        assert_eq!(of("waiting", None), "task.completed  waits in the inbox (n-2222222222, 1.0s ago)");
        let held = of("held", Some("2026-01-01T00:00:31.000Z"));
        assert_eq!(held, "task.completed  held for 30.0s (n-2222222222, 1.0s ago)");
        assert!(of("acknowledged", None).contains("  acknowledged ("));
    }
}
