//! What a tool call waits for is told by its answer, and not by the hook that waits in the background besides.

use std::process::{Child, Stdio};

use homing_testkit::{Home, gate, wait_for};
use serde_json::{Value, json};

use super::speaker::Speaker;

const OWNER: &str = "claude:s";

/// A session with a hook in the background, which waits since something runs: its id, the hook, and the session's bridge.
fn session(home: &Home) -> (String, Child, Speaker) {
    let runs = home.submit(&["--owner", OWNER], &gate("last"));
    (runs, waiter(home), Speaker::legacy(home.command().env("HOMING_OWNER", OWNER)))
}

fn waiter(home: &Home) -> Child {
    let mut waiter = home.command();
    waiter.args(["hook", "claude", "rewake"]).env_remove("CLAUDE_PID");
    waiter.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut waiter = waiter.spawn().expect("it runs");
    serde_json::to_writer(waiter.stdin.take().expect("a pipe"), &json!({ "session_id": "s" }))
        .expect("it reads");
    waits(home);
    waiter
}

fn waits(home: &Home) {
    wait_for("the waiter", || {
        let info = home.get(&format!("/v1/sessions/{OWNER}")).json();
        (info["waiter"] == true).then_some(())
    });
}

/// The last one ends, and the waiter tells it; nothing else.
fn tells_only(home: &Home, runs: &str, waiter: Child, others: &[Value]) {
    std::fs::write(home.scratch().join("last"), "").expect("the gate opens");
    let woken = waiter.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&woken.stderr).into_owned();
    assert_eq!(woken.status.code(), Some(2), "{said}");
    assert!(said.contains(runs), "{said}");
    for other in others {
        let other = other.as_str().expect("an id");
        assert!(!said.contains(other), "{other} was told twice: {said}");
    }
}

#[test]
fn p6_what_a_tool_call_waits_for_is_not_told_by_the_waiter_besides() {
    let home = crate::home();
    let (runs, waiter, mut speaker) = session(&home);
    let mut told = Vec::new();
    for round in 0..20 {
        // Some end before the wait has begun.
        let line = if round % 2 == 0 { "true" } else { "sleep 0.02" };
        let ran =
            speaker.data("run", json!({ "command": line, "notify_on_complete": true, "wait_ms": 60_000 }));
        assert_eq!(ran["ended"], true, "{ran}");
        told.push(ran["task"]["id"].clone());
    }
    tells_only(&home, &runs, waiter, &told);
}

#[test]
fn p6_what_a_session_stays_with_is_not_told_by_the_waiter_besides() {
    let home = crate::home();
    let (runs, waiter, _speaker) = session(&home);
    let mut told = Vec::new();
    for words in [
        &["exec", "--json", "--"][..],
        &["run", "--wait", "--json", "--"],
        &["run", "--follow", "--json", "--"],
    ] {
        for _ in 0..3 {
            let stayed =
                home.command().env("HOMING_OWNER", OWNER).args(words).arg("true").output().expect("it runs");
            let task: Value = serde_json::from_slice(&stayed.stdout).expect("a task");
            assert_eq!(task["status"], "succeeded", "{task}");
            told.push(task["id"].clone());
        }
    }
    tells_only(&home, &runs, waiter, &told);
}

#[test]
fn p6_what_a_tool_call_waits_for_is_its_own_also_when_the_daemon_dies_meanwhile() {
    let home = crate::home();
    let (runs, waiter, mut speaker) = session(&home);
    let arguments =
        json!({ "command": gate("go"), "notify_on_complete": true, "wait_ms": 60_000, "name": "asked" });
    let asked = speaker.begin_to_ask("tools/call", json!({ "name": "run", "arguments": arguments }));
    wait_for("it to run", || (home.get("/v1/tasks/asked").json()["status"] == "running").then_some(()));
    for _ in 0..3 {
        let daemon = home.daemon_pid();
        home.kill(daemon);
        wait_for("the next daemon", || home.find_daemon().filter(|found| found.pid != daemon));
        let _ = home.daemon_pid();
        waits(&home);
    }
    let _ = home.cli(["daemon", "restart"]).ok();
    waits(&home);
    home.kill(home.daemon_pid());
    // It ends while nobody is there, and the waiter and the bridge are back in any order.
    std::fs::write(home.scratch().join("go"), "").expect("the gate opens");
    let answer = speaker.answer(asked);
    let ran = &answer["result"]["structuredContent"];
    assert_eq!(ran["ended"], true, "{answer}");
    tells_only(&home, &runs, waiter, &[ran["task"]["id"].clone()]);
}

#[test]
fn p6_what_a_tool_call_does_not_wait_for_any_more_is_told_by_the_waiter() {
    let home = crate::home();
    let (_, waiter, mut speaker) = session(&home);
    let arguments = json!({ "command": gate("go"), "notify_on_complete": true, "wait_ms": 1 });
    let ran = speaker.data("run", arguments);
    assert_eq!(ran["ended"], false, "{ran}");
    std::fs::write(home.scratch().join("go"), "").expect("the gate opens");
    let woken = waiter.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&woken.stderr).into_owned();
    assert!(said.contains(ran["task"]["id"].as_str().expect("an id")), "{said}");
    std::fs::write(home.scratch().join("last"), "").expect("the gate opens");
}

/// A wait for two of which one has ended, begun; and the hook in the background, which came later. Those two, and what else runs.
fn waits_for_two(home: &Home, speaker: &mut Speaker) -> (Vec<Value>, u64, String, Child) {
    let first = home.submit(&["--owner", OWNER], "true");
    let _ = home.ended(&first);
    let second = home.submit(&["--owner", OWNER], &gate("go"));
    let runs = home.submit(&["--owner", OWNER], &gate("last"));
    let arguments = json!({ "ids": [first, second], "wait_ms": 60_000 });
    let asked = speaker.begin_to_ask("tools/call", json!({ "name": "wait", "arguments": arguments }));
    wait_for("the question", || {
        let notices = home.get(&format!("/v1/tasks/{first}")).json()["notices"].clone();
        (notices[0]["inbox"] == "held").then_some(())
    });
    (vec![first.into(), second.into()], asked, runs, waiter(home))
}

#[test]
fn p6_of_several_that_a_tool_call_waits_for_the_waiter_tells_none() {
    let home = crate::home();
    let mut speaker = Speaker::legacy(home.command().env("HOMING_OWNER", OWNER));
    let (ids, asked, runs, waiter) = waits_for_two(&home, &mut speaker);
    std::fs::write(home.scratch().join("go"), "").expect("the gate opens");
    let answer = speaker.answer(asked);
    assert_eq!(answer["result"]["structuredContent"]["done"], true, "{answer}");
    tells_only(&home, &runs, waiter, &ids);
}

#[test]
fn p6_what_a_tool_call_waited_for_whose_asker_is_gone_is_told_by_the_waiter() {
    let home = crate::home();
    let mut speaker = Speaker::legacy(home.command().env("HOMING_OWNER", OWNER));
    let (ids, _, _, waiter) = waits_for_two(&home, &mut speaker);
    drop(speaker);
    let woken = waiter.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&woken.stderr).into_owned();
    assert!(said.contains(ids[0].as_str().expect("an id")), "{said}");
    for open in ["go", "last"] {
        std::fs::write(home.scratch().join(open), "").expect("the gate opens");
    }
}
