//! The daemon dies, and whoever is connected to a bridge hears the truth from the next one.

use homing_testkit::{Home, copy_program, gate, wait_for};
use serde_json::json;

use super::speaker::Speaker;
use crate::crash_daemon::{let_daemons_die, wait_for_deaths};

#[test]
fn p3_the_daemon_is_killed_between_run_and_tasks_get() {
    let home = crate::home();
    let mut speaker = Speaker::modern(&mut home.command(), true);
    let line = format!("{}; echo survived; exit 5", gate("go"));
    let answer = speaker.ask(
        "tools/call",
        json!({ "name": "run", "arguments": { "command": line, "notify_on_complete": true } }),
    );
    let id = answer["result"]["taskId"].clone();
    for round in 0..3 {
        home.kill(home.daemon_pid());
        let task = speaker.ask("tasks/get", json!({ "taskId": id }));
        assert_eq!(task["result"]["status"], "working", "round {round}: {task}");
    }
    home.kill(home.daemon_pid());
    std::fs::write(home.scratch().join("go"), "").expect("the gate opens");
    let done = wait_for("the end", || {
        let task = speaker.ask("tasks/get", json!({ "taskId": id }));
        assert!(task["error"].is_null(), "{task}");
        Some(task["result"].clone()).filter(|task| task["status"] != "working")
    });
    assert_eq!(done["status"], "completed", "{done}");
    assert_eq!(done["result"]["structuredContent"]["task"]["exit_code"], 5, "{done}");
    assert_eq!(done["result"]["structuredContent"]["output"]["text"], "survived\n");
}

#[test]
fn p3_waits_and_runs_go_on_when_the_daemon_is_killed_under_them() {
    let home = crate::home();
    let mut speaker = Speaker::of(&home);
    let waited_for = speaker.background(&format!("{}; echo waited", gate("go")), true);
    let daemon = home.daemon_pid();
    let waiting = speaker.begin_to_ask(
        "tools/call",
        json!({ "name": "wait", "arguments": { "ids": [waited_for], "wait_ms": 60_000 } }),
    );
    let line = format!("{}; echo ran", gate("go"));
    let running = speaker.begin_to_ask(
        "tools/call",
        json!({ "name": "run", "arguments": { "command": line, "wait_ms": 60_000 } }),
    );
    wait_for("both to run", || {
        let running = home.get("/v1/tasks?status=running").json();
        (running["items"].as_array().map(Vec::len) == Some(2)).then_some(())
    });
    home.kill(daemon);
    std::fs::write(home.scratch().join("go"), "").expect("the gate opens");
    let (mut waited, mut ran) = (None, None);
    // Whichever comes first: answers come in any order.
    let first = speaker.answer_any(&[waiting, running]);
    let rest = if first["id"] == waiting { running } else { waiting };
    let second = speaker.answer(rest);
    for answer in [first, second] {
        if answer["id"] == waiting { waited = Some(answer) } else { ran = Some(answer) }
    }
    let (waited, ran) = (waited.expect("an answer"), ran.expect("an answer"));
    assert_eq!(waited["result"]["structuredContent"]["tasks"][0]["output"]["text"], "waited\n", "{waited}");
    assert_eq!(ran["result"]["structuredContent"]["output"]["text"], "ran\n", "{ran}");
}

#[test]
fn p3_a_wait_outlasts_daemons_that_die_as_they_start() {
    const DEATHS: usize = 12;
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("homing");
    let real = crate::home().program().to_owned();
    copy_program(&real, &program);
    let home = Home::new(&program);
    let mut speaker = Speaker::of(&home);
    let id = speaker.background(&format!("{}; echo waited", gate("go")), true);
    let deaths = let_daemons_die(&program, &real, DEATHS);
    let _ = home.kill_daemon();
    let wait = json!({ "name": "wait", "arguments": { "ids": [id], "wait_ms": 600_000 } });
    let waiting = speaker.begin_to_ask("tools/call", wait);
    wait_for_deaths(&deaths, DEATHS);
    home.open("go");
    let waited = speaker.answer(waiting);
    assert_eq!(waited["result"]["structuredContent"]["tasks"][0]["output"]["text"], "waited\n", "{waited}");
}

#[test]
fn p4_a_daemon_that_was_never_there_is_started_by_the_first_call_and_a_stopped_one_by_the_next() {
    let home = crate::home();
    let mut speaker = Speaker::of(&home);
    assert!(home.find_daemon().is_none());
    let id = speaker.background("echo x", false);
    let _ = home.ended(&id);
    speaker.leave();
    let _ = home.cli(["daemon", "stop"]).ok();
    let mut next = Speaker::of(&home);
    let seen = next.data("output", json!({ "id": id }));
    assert_eq!(seen["output"]["text"], "x\n");
}

#[test]
fn p6_a_run_is_acknowledged_by_the_next_call_and_not_by_its_answer() {
    let home = crate::home();
    // An owner that no other call of this test has.
    let bridge = || Speaker::legacy(home.command().env("HOMING_OWNER", "bot"));
    let mut speaker = bridge();
    let ran = speaker.data("run", json!({ "command": "true", "wait_ms": 60_000 }));
    assert_eq!((&ran["ended"], ran.get("inbox")), (&json!(true), None), "what it told does not wait: {ran}");
    // Killed: whether its client, or a model, ever saw the answer is not known.
    drop(speaker);
    let inbox = || home.task(ran["task"]["id"].as_str().expect("an id"))["notices"][0]["inbox"].clone();
    assert_eq!(inbox(), "held");
    let _ = bridge().data("list", json!({}));
    assert_eq!(inbox(), "acknowledged");
}
