//! One task, whole.

use homing_testkit::{Receiver, Script, wait_for};

#[test]
fn a_task_is_shown_with_its_attempts_its_notices_and_its_deliveries() {
    let home = super::home();
    let receiver = Receiver::new([Script::status(503).header("retry-after", "3600")]);
    let url = format!("http://127.0.0.1:{}/hook?token=hunter2", receiver.port());
    let id = home.submit(&["--notify", "inbox", "--notify", &url], "exit 7");
    let task = wait_for("the first attempt at the webhook", || {
        Some(home.task(&id)).filter(|task| task["deliveries"][0]["attempts"] == 1)
    });
    assert_eq!((&task["status"], &task["id"]), (&"failed".into(), &id.as_str().into()));
    let attempt = &task["attempts"][0];
    assert_eq!((&attempt["number"], &attempt["outcome"]["exit_code"]), (&1.into(), &7.into()), "{attempt}");
    let notice = &task["notices"][0];
    assert_eq!(
        (&notice["type"], &notice["inbox"]),
        (&"task.completed".into(), &"waiting".into()),
        "{notice}"
    );
    let delivery = &task["deliveries"][0];
    assert_eq!((&delivery["state"], &delivery["notice_id"]), (&"pending".into(), &notice["id"]));
    assert!(delivery["next_at"].is_string() && delivery["history"][0]["status"] == 503, "{delivery}");
    let shown = home.cli(["show", &id]).ok().text();
    assert!(shown.contains("  notices      task.completed  waits in the inbox ("), "{shown}");
    assert!(shown.contains("?…  pending after 1 attempt, next in "), "{shown}");
    assert!(!shown.contains("hunter2") && !task.to_string().contains("hunter2"), "{shown}");
    let _ = home.cli(["ack", &id]).ok();
    assert_eq!(home.task(&id)["notices"][0]["inbox"], "acknowledged");
    assert_eq!(
        home.cli(["list", "--all", "--json"]).ok().json()["items"][0]["notices"],
        serde_json::Value::Null
    );
}
