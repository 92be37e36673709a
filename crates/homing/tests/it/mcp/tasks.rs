//! The tasks extension: an MCP task is homing's task, and its id is answered for ever.

use homing_testkit::{Home, gate, wait_for};
use serde_json::{Value, json};

use super::speaker::{Speaker, text};

fn speaker(home: &Home) -> Speaker {
    Speaker::modern(&mut home.command(), true)
}

/// Runs something that is to be told of: the task that was made of it.
fn begin(speaker: &mut Speaker, command: &str) -> Value {
    let answer = speaker.ask(
        "tools/call",
        json!({ "name": "run", "arguments": { "command": command, "notify_on_complete": true } }),
    );
    let task = answer["result"].clone();
    assert_eq!(task["resultType"], "task", "{answer}");
    task
}

fn get(speaker: &mut Speaker, id: &Value) -> Value {
    let answer = speaker.ask("tasks/get", json!({ "taskId": id }));
    assert!(answer["error"].is_null(), "{answer}");
    answer["result"].clone()
}

/// Polls to the end, as a client does.
fn poll(speaker: &mut Speaker, id: &Value) -> Value {
    wait_for("the task's end", || Some(get(speaker, id)).filter(|task| task["status"] != "working"))
}

#[test]
fn a_command_is_a_task_from_its_submit_to_its_result() {
    let home = crate::home();
    let mut speaker = speaker(&home);
    let task = begin(&mut speaker, &format!("{}; echo hello", gate("go")));
    assert_eq!((&task["status"], &task["ttlMs"]), (&json!("working"), &Value::Null), "{task}");
    assert!(task["pollIntervalMs"].is_u64());
    let id = &task["taskId"];
    assert_eq!(home.task(id.as_str().expect("an id"))["notify"]["targets"], json!(["inbox"]));
    assert_eq!(get(&mut speaker, id)["status"], "working");
    std::fs::write(home.scratch().join("go"), "").expect("the gate opens");
    let done = poll(&mut speaker, id);
    assert_eq!((&done["status"], &done["result"]["isError"]), (&json!("completed"), &json!(false)));
    assert!(text(&done["result"]).contains("hello"), "{done}");
    assert_eq!(done["result"]["structuredContent"]["task"]["id"], *id);
    let cancelled = speaker.ask("tasks/cancel", json!({ "taskId": id }));
    assert!(cancelled["error"].is_null(), "an end that is cancelled stays as it is: {cancelled}");
    assert_eq!(get(&mut speaker, id)["status"], "completed");
}

#[test]
fn a_command_that_fails_is_a_completed_task_and_one_that_is_cancelled_is_cancelled() {
    let home = crate::home();
    let mut speaker = speaker(&home);
    let failed = begin(&mut speaker, "exit 3");
    let done = poll(&mut speaker, &failed["taskId"]);
    assert_eq!((&done["status"], &done["result"]["isError"]), (&json!("completed"), &json!(true)), "{done}");
    let long = begin(&mut speaker, &gate("never"));
    let answer = speaker.ask("tasks/cancel", json!({ "taskId": long["taskId"] }));
    assert_eq!(answer["result"]["resultType"], "complete", "{answer}");
    let done = poll(&mut speaker, &long["taskId"]);
    assert_eq!(done["status"], "cancelled");
    assert!(done["statusMessage"].as_str().is_some_and(|said| said.contains("stopped")), "{done}");
    let update = speaker.ask("tasks/update", json!({ "taskId": long["taskId"], "inputResponses": {} }));
    assert!(update["error"].is_null(), "{update}");
}

#[test]
fn only_what_homing_itself_lost_is_failed() {
    let home = crate::home();
    let mut speaker = speaker(&home);
    let task = begin(&mut speaker, &gate("never"));
    let id = task["taskId"].as_str().expect("an id");
    let _ = home.until_status(id, "running");
    home.kill(home.shim_pid(id));
    let done = poll(&mut speaker, &task["taskId"]);
    assert_eq!(done["status"], "failed", "{done}");
    assert!(done["error"]["message"].as_str().is_some_and(|said| said.contains("lost")), "{done}");
}

#[test]
fn p12_an_id_that_was_issued_is_answered_after_the_task_was_forgotten() {
    let home = crate::home();
    let mut speaker = speaker(&home);
    let task = begin(&mut speaker, "echo gone; exit 4");
    let id = task["taskId"].as_str().expect("an id");
    let _ = poll(&mut speaker, &task["taskId"]);
    // A shim that takes its time to leave is taken for children that live.
    wait_for("the shim to leave", || home.processes("homing-shim").is_empty().then_some(()));
    let _ = home.cli(["forget", id]).ok();
    let done = get(&mut speaker, &task["taskId"]);
    assert_eq!((&done["status"], &done["result"]["isError"]), (&json!("completed"), &json!(true)), "{done}");
    assert!(
        text(&done["result"]).contains("exit 4") && text(&done["result"]).contains("no longer kept"),
        "{done}"
    );
    let never = speaker.ask("tasks/get", json!({ "taskId": "t-2222222222" }));
    assert_eq!(never["error"]["code"], -32602, "{never}");
    let nonsense = speaker.ask("tasks/get", json!({ "taskId": "nonsense" }));
    assert_eq!(nonsense["error"]["code"], -32602, "{nonsense}");
}

/// Entries of an owner, held or not; asked by nobody in particular.
fn open_entries(home: &Home) -> u64 {
    let owners = home.get("/v1/inbox").json();
    owners["items"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|one| one["open"].as_u64().expect("a number"))
        .sum()
}

#[test]
fn p6_an_end_that_was_polled_is_told_and_the_next_call_says_that_it_was_heard() {
    let home = crate::home();
    let mut speaker = speaker(&home);
    let task = begin(&mut speaker, "true");
    let _ = poll(&mut speaker, &task["taskId"]);
    assert_eq!(open_entries(&home), 1, "held, not gone: the answer may not have come through");
    let peeked = home.get("/v1/inbox/user").json();
    assert_eq!(peeked["items"], json!([]), "nobody is told of it meanwhile");
    let _ = speaker.tool("list", json!({}));
    assert_eq!(open_entries(&home), 0);
}

#[test]
fn p11_another_owners_task_is_answered_for_and_not_cancelled() {
    let home = crate::home();
    let mut ann = Speaker::modern(home.command().env("HOMING_OWNER", "ann"), true);
    let mut bob = Speaker::modern(home.command().env("HOMING_OWNER", "bob"), true);
    let task = begin(&mut ann, &gate("never"));
    assert_eq!(get(&mut bob, &task["taskId"])["status"], "working");
    let refused = bob.ask("tasks/cancel", json!({ "taskId": task["taskId"] }));
    assert!(refused["error"]["message"].as_str().is_some_and(|said| said.contains("HM0055")), "{refused}");
    assert_eq!(get(&mut ann, &task["taskId"])["status"], "working");
}

#[test]
fn whoever_cannot_have_a_task_gets_a_plain_result() {
    let home = crate::home();
    let arguments = json!({ "command": "true", "background": true, "notify_on_complete": true });
    // It declares the extension, on a protocol that has no tasks.
    let mut legacy = Speaker::of(&home);
    let result = legacy.tool("run", arguments.clone());
    assert!(
        result["resultType"].is_null() && result["structuredContent"]["task"]["id"].is_string(),
        "{result}"
    );
    let mut plain = Speaker::modern(&mut home.command(), false);
    let result = plain.tool("run", arguments);
    assert_eq!(result["resultType"], "complete");
    let refused = plain.ask("tasks/get", json!({ "taskId": "t-2222222222" }));
    assert_eq!(refused["error"]["code"], -32021, "{refused}");
    // One that does not want to be told wants no task either.
    let mut modern = Speaker::modern(&mut home.command(), true);
    assert_eq!(modern.tool("run", json!({ "command": "true" }))["resultType"], "complete");
}
