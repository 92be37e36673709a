//! One delivery, or one notice, that makes no sense costs nobody else anything, and is told.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use homing_testkit::{Home, Receiver, Script, gate, wait_for};
use rusqlite::Connection;
use serde_json::Value;

fn of_task(home: &Home, id: &str) -> Value {
    home.cli(["deliveries", "--task", id, "--json"]).ok().json()["items"][0].clone()
}

fn damage(home: &Home, statement: &str, id: &str) {
    let conn = Connection::open(home.path().join("homing.db")).expect("a database");
    conn.busy_timeout(std::time::Duration::from_secs(10)).expect("patience");
    assert_eq!(conn.execute(statement, [id]).expect("damaged"), 1);
}

/// Three tasks that were told of in vain: the first one's delivery is damaged, the second one's notice, and the third is whole.
fn three(home: &Home, target: &str) -> Vec<String> {
    let ids: Vec<String> = (0..3).map(|_| home.submit(&["--notify", target], "true")).collect();
    for id in &ids {
        wait_for("an attempt", || {
            let delivery = of_task(home, id);
            let tried = delivery["attempts"] != 0 || !delivery["hook"].is_null();
            // Waiting for the next one, and not under way.
            (tried && delivery["state"] == "pending" && delivery["next_at"] != delivery["created_at"])
                .then_some(())
        });
    }
    damage(home, "UPDATE deliveries SET target = 'nowhere' WHERE task_id = ?1", &ids[0]);
    damage(home, "UPDATE notices SET body = '{\"half' WHERE task = ?1", &ids[1]);
    ids
}

fn check(home: &Home, ids: &[String]) {
    for id in ids {
        let _ = home.cli(["redeliver", id]).ok();
    }
    for id in &ids[..2] {
        let dead = wait_for("the damaged one to be given up", || {
            Some(of_task(home, id)).filter(|delivery| delivery["state"] == "dead")
        });
        assert!(dead["reason"].as_str().is_some_and(|why| why.contains("damaged")), "{dead}");
    }
    wait_for("the whole one to be delivered", || {
        (of_task(home, &ids[2])["state"] == "delivered").then_some(())
    });
    assert_eq!(home.get("/v1/status").json()["deliveries"]["dead"], 2);
    let shown = home.cli(["show", &ids[1], "--json"]).ok().json();
    assert_eq!(shown["notices"][0]["type"], Value::Null, "{shown}");
    assert_eq!(shown["deliveries"][0]["state"], "dead");
}

#[test]
fn p5_a_damaged_delivery_and_a_damaged_notice_do_not_hold_up_a_webhook() {
    let home = super::home();
    // Not by the number of attempts: on a slow machine the second of one may come before the first of another.
    let ready = Arc::<AtomicBool>::default();
    let is_ready = Arc::clone(&ready);
    let receiver =
        Receiver::choosing(move |_| Script::status(if is_ready.load(Ordering::SeqCst) { 204 } else { 500 }));
    let ids = three(&home, &format!("http://127.0.0.1:{}/", receiver.port()));
    ready.store(true, Ordering::SeqCst);
    check(&home, &ids);
}

#[test]
fn p5_a_damaged_notice_does_not_spoil_the_hand_over_of_others() {
    let home = super::home();
    let folder = home.scratch().display().to_string();
    let ids = three(&home, &format!("exec:cd '{folder}' && [ -e ready ] || exit 3; cat > got"));
    std::fs::write(home.scratch().join("ready"), b"").expect("ready");
    check(&home, &ids);
    let got = std::fs::read_to_string(home.scratch().join("got")).expect("told");
    let got: Value = serde_json::from_str(&got).expect("JSON");
    assert_eq!(got["notices"][0]["task"]["id"], *ids[2]);
}

#[test]
fn a_pass_tells_when_it_ran_and_of_the_row_that_it_could_not_read_and_goes_on() {
    let home = super::home();
    let started = home.command().env("HOMING_RECONCILE_INTERVAL", "200ms").args(["daemon", "start"]).status();
    assert!(started.expect("the binary runs").success());
    let ids: Vec<String> = (0..2).map(|_| home.submit(&[], &gate("go"))).collect();
    for id in &ids {
        let _ = home.until_status(id, "running");
    }
    let reconcile = || home.get("/v1/status").json()["reconcile"].clone();
    let passes =
        |count: u64| wait_for("passes", || reconcile()["passes"].as_u64().filter(|passes| *passes >= count));
    let _ = passes(1);
    assert!(reconcile()["last_run_at"].is_string(), "{}", reconcile());
    assert_eq!(reconcile()["errors"], serde_json::json!([]));
    damage(&home, "UPDATE tasks SET spec = '{' WHERE id = ?1", &ids[0]);
    let errors = wait_for("the damage to be told", || {
        Some(reconcile()["errors"].clone()).filter(|errors| errors[0].is_object())
    });
    assert_eq!((&errors[0]["task_id"], &errors[0]["code"]), (&ids[0].as_str().into(), &"damaged_row".into()));
    let _ = passes(reconcile()["passes"].as_u64().unwrap_or_default() + 2);
    std::fs::write(home.scratch().join("go"), b"").expect("a gate opens");
    assert_eq!(home.ended(&ids[1])["status"], "succeeded", "the other is none the worse");
}

#[test]
fn p5_a_command_whose_row_is_damaged_holds_up_its_channel_until_the_next_pass_only() {
    let home = super::home();
    let started = home.command().env("HOMING_RECONCILE_INTERVAL", "200ms").args(["daemon", "start"]).status();
    assert!(started.expect("the binary runs").success());
    let folder = home.scratch().display().to_string();
    let line = format!("exec:cd '{folder}' && echo x >> calls && {}", gate("go"));
    let id = home.submit(&["--notify", &line], "true");
    let calls = || std::fs::read_to_string(home.scratch().join("calls")).unwrap_or_default().lines().count();
    wait_for("the command to run", || (calls() == 1).then_some(()));
    let hook = wait_for("the hook", || of_task(&home, &id)["hook"].as_str().map(str::to_owned));
    damage(&home, "UPDATE tasks SET spec = '{' WHERE id = ?1", &hook);
    wait_for("another command to be told", || (calls() == 2).then_some(()));
    std::fs::write(home.scratch().join("go"), b"").expect("a gate opens");
    wait_for("it to be delivered", || (of_task(&home, &id)["state"] == "delivered").then_some(()));
}
