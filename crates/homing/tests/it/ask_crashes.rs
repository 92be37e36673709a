//! Everybody but the agent dies, at every kind of moment around its end: the answer is the same.

use std::time::Duration;

use homing_testkit::{Home, drift, gate, wait_for};
use serde_json::Value;

use super::ask::{SESSION, ask, fake, result, says};

fn completions(home: &Home, id: &str) -> Vec<Value> {
    let log = home.cli(["events"]).ok().text();
    let events = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    events.filter(|event| event["type"] == "task.completed" && event["task_id"] == id).collect()
}

fn answered(home: &Home, id: &str) {
    let task = home.ended(id);
    assert_eq!((&task["status"], &task["outcome"]["exit_code"]), (&"succeeded".into(), &0.into()), "{task}");
    assert_eq!((&task["answer"], &task["answer_state"]), (&"Because.".into(), &"ok".into()), "{task}");
    let agent = &task["agent"];
    assert_eq!((&agent["session_id"], &agent["turns"]), (&SESSION.into(), &2.into()), "{task}");
    let told = completions(home, id);
    assert_eq!((told.len(), &told[0]["data"]["answer"]), (1, &"Because.".into()), "{told:?}");
}

#[test]
fn p3_an_answer_survives_the_daemons_sigkill_at_the_end() {
    let home = super::home();
    for round in 0..10_u32 {
        let go = format!("go{round}");
        let script =
            format!("(cat; echo) > got{round}; {}; {}; {}", says("Hm."), gate(&go), result("Because."));
        fake(&home, "claude", &script);
        let id = ask(&home, &["why?"]).ok().text();
        assert_eq!(home.told(&format!("got{round}")), "why?");
        let daemon = wait_for("the daemon", || home.find_daemon()).pid;
        // From just before the exit to just after it was recorded.
        home.open(&go);
        drift(Duration::from_millis(u64::from(round) * 2));
        home.kill_at_once(&[daemon]);
        answered(&home, &id);
    }
    home.nothing_left();
}

#[test]
fn p4_an_answer_that_nobody_heard_is_told_by_whoever_comes() {
    let home = super::home();
    fake(&home, "claude", &format!("{}; {}; {}", says("Hm."), gate("go"), result("Because.")));
    let id = ask(&home, &["why?"]).ok().text();
    let _ = home.until_status(&id, "running");
    home.stop_daemon();
    home.open("go");
    wait_for("the shim's end", || home.processes("homing-shim").is_empty().then_some(()));
    answered(&home, &id);
}

#[test]
fn p10_a_prompt_is_read_once_though_the_daemon_dies_before_the_start() {
    let home = super::home();
    let _ = home.daemon_pid();
    for round in 0..6_u32 {
        let script =
            format!("cat >> got{round}; echo >> got{round}; {}; {}", says("Hm."), result("Because."));
        fake(&home, "claude", &script);
        let daemon = wait_for("the daemon", || home.find_daemon()).pid;
        let id = ask(&home, &["why?"]).ok().text();
        drift(Duration::from_millis(u64::from(round)));
        home.kill_at_once(&[daemon]);
        answered(&home, &id);
        assert_eq!(home.truth(&format!("got{round}")), "why?\n");
    }
}
