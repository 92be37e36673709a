//! `/mcp` of the daemon: the same tools, without sessions, guarded.

use homing_testkit::{Answer, Home, gate, wait_for};
use serde_json::{Value, json};

use super::speaker::{MODERN, meta};

/// One request to `/mcp`, and its answer.
fn post(home: &Home, headers: &[(&str, &str)], body: &Value) -> (u16, Value) {
    heard(begin(home, headers, body))
}

/// One request to `/mcp`, whose answer begins.
fn begin(home: &Home, headers: &[(&str, &str)], body: &Value) -> Answer {
    let mut given =
        vec![("Content-Type", "application/json"), ("Accept", "application/json, text/event-stream")];
    given.extend(headers);
    if !headers.iter().any(|(name, _)| *name == "Host") {
        given.push(("Host", "localhost"));
    }
    home.http("POST", "/mcp", &given, body.to_string().as_bytes())
}

/// All of an answer.
fn heard(answer: Answer) -> (u16, Value) {
    let reply = answer.whole();
    let text = String::from_utf8_lossy(&reply.body).into_owned();
    let data = text.lines().filter_map(|line| line.strip_prefix("data: ")).rfind(|data| !data.is_empty());
    let value = serde_json::from_str(data.unwrap_or(&text)).unwrap_or(Value::String(text));
    (reply.status, value)
}

fn legacy(home: &Home, owner: &str, name: &str, arguments: &Value) -> Value {
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": name, "arguments": arguments } });
    let headers = [("MCP-Protocol-Version", "2025-06-18"), ("Homing-Owner", owner)];
    let (status, answer) = post(home, &headers, &call);
    assert_eq!(status, 200, "{answer}");
    answer["result"].clone()
}

fn modern(home: &Home, method: &str, name: &str, mut params: Value) -> Value {
    params["_meta"] = meta(true);
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let headers = [
        ("MCP-Protocol-Version", MODERN),
        ("Mcp-Method", method),
        ("Mcp-Name", name),
        ("Homing-Owner", "ann"),
    ];
    let (status, answer) = post(home, &headers, &call);
    assert_eq!(status, 200, "{answer}");
    answer["result"].clone()
}

#[test]
fn the_same_tools_in_the_name_that_the_header_gives() {
    let home = crate::home();
    let _ = home.daemon_pid();
    let ran = legacy(&home, "ann", "run", &json!({ "command": "echo hello; echo $HOMING_OWNER" }));
    assert_eq!(ran["structuredContent"]["output"]["text"], "hello\nann\n", "{ran}");
    let listed = legacy(&home, "bob", "list", &json!({}));
    assert_eq!(listed["structuredContent"]["tasks"], json!([]));
    let relative = legacy(&home, "ann", "run", &json!({ "command": "pwd", "cwd": "here" }));
    assert_eq!(relative["isError"], true, "there is no folder that it could begin at");
}

#[test]
fn p6_over_http_a_call_of_opencode_belongs_to_its_session() {
    let home = crate::home();
    let _ = home.daemon_pid();
    let run = |headers: &[(&str, &str)]| {
        let arguments = json!({ "command": gate("never"), "background": true, "opencode_session": "ses_1" });
        let params = json!({ "name": "run", "arguments": arguments });
        let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
        let (status, answer) =
            post(&home, &[&[("MCP-Protocol-Version", "2025-06-18")], headers].concat(), &call);
        assert_eq!(status, 200, "{answer}");
        let id = answer["result"]["structuredContent"]["task"]["id"].as_str().map(str::to_owned);
        id.map(|id| home.task(&id)).ok_or(answer)
    };
    let opencode = ("User-Agent", "opencode/1.18.33");
    let task = run(&[opencode]).expect("a task");
    assert_eq!(
        (&task["owner"], &task["notify"]["targets"]),
        (&json!("opencode:ses_1"), &json!(["inbox", "wake"]))
    );
    let task = run(&[opencode, ("Homing-Owner", "ann")]).expect("a task");
    assert_eq!(task["owner"], "ann", "the header names the owner");
    let refused = run(&[]).expect_err("another client names no session by it");
    assert!(refused.to_string().contains("unknown field"), "{refused}");
}

#[test]
fn p12_a_task_of_one_daemon_is_answered_by_the_next_and_no_session_is_missed() {
    let home = crate::home();
    let _ = home.daemon_pid();
    let line = format!("{}; echo done", gate("go"));
    let arguments = json!({ "command": line, "cwd": home.scratch(), "notify_on_complete": true });
    let task = modern(&home, "tools/call", "run", json!({ "name": "run", "arguments": arguments }));
    assert_eq!(task["resultType"], "task", "{task}");
    let id = task["taskId"].as_str().expect("an id");
    home.kill(home.daemon_pid());
    let _ = home.daemon_pid();
    std::fs::write(home.scratch().join("go"), "").expect("the gate opens");
    let _ = home.ended(id);
    let done = modern(&home, "tasks/get", id, json!({ "taskId": id }));
    assert_eq!((&done["status"], &done["result"]["isError"]), (&json!("completed"), &json!(false)), "{done}");
    // A client of an earlier protocol goes on without greeting the new daemon.
    assert_eq!(
        legacy(&home, "ann", "list", &json!({}))["structuredContent"]["tasks"].as_array().map(Vec::len),
        Some(1)
    );
}

#[test]
fn a_daemon_that_leaves_says_so_to_whoever_waits_and_what_was_begun_by_a_call_has_its_id_told() {
    let home = crate::home();
    let _ = home.daemon_pid();
    let line = gate("go");
    let begun =
        legacy(&home, "ann", "run", &json!({ "command": line, "cwd": home.scratch(), "background": true }));
    let id = begun["structuredContent"]["task"]["id"].as_str().expect("an id").to_owned();
    let call = |name: &str, arguments: Value| {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": name, "arguments": arguments } });
        begin(&home, &[("MCP-Protocol-Version", "2025-06-18"), ("Homing-Owner", "ann")], &body)
    };
    let waits = call("wait", json!({ "ids": [id], "wait_ms": 600_000 }));
    let runs = call("run", json!({ "command": line, "cwd": home.scratch(), "wait_ms": 600_000 }));
    let second = wait_for("the second task", || {
        let running = home.get("/v1/tasks?status=running").json();
        let ids = running["items"].as_array()?.iter().filter_map(|task| task["id"].as_str());
        ids.map(str::to_owned).find(|one| *one != id)
    });
    let _ = home.cli(["daemon", "stop"]).ok();
    let (_, waited) = heard(waits);
    let text = waited["result"]["content"][0]["text"].as_str().unwrap_or_default().to_owned();
    assert!(waited["result"]["isError"] == true && text.contains("HM0019"), "a whole answer: {waited}");
    let (_, ran) = heard(runs);
    assert_eq!(ran["result"]["structuredContent"]["task"]["id"], json!(second), "{ran}");
    assert_eq!(ran["result"]["structuredContent"]["ended"], false, "{ran}");
    home.open("go");
    for id in [&id, &second] {
        assert_eq!(home.ended(id)["status"], "succeeded");
    }
}

#[test]
fn p11_foreign_hosts_and_origins_are_refused() {
    let home = crate::home();
    let _ = home.daemon_pid();
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {} });
    for headers in [
        [("Host", "evil.example"), ("X", "y")],
        [("Host", "localhost.evil.example"), ("X", "y")],
        [("Host", "localhost"), ("Origin", "http://evil.example")],
        [("Host", "localhost"), ("Origin", "null")],
        [("Host", "localhost"), ("Origin", "https://localhost")],
    ] {
        let (status, answer) = post(&home, &headers, &call);
        assert_eq!(status, 403, "{headers:?}: {answer}");
    }
    assert_eq!(post(&home, &[], &call).0, 200);
    assert_eq!(post(&home, &[("Origin", "http://localhost:8080")], &call).0, 200);
}

#[test]
fn what_the_transport_refuses_is_told_as_every_other_route_tells_it() {
    let home = crate::home();
    let _ = home.daemon_pid();
    let both = ("Accept", "application/json, text/event-stream");
    let host = ("Host", "localhost");
    let json = ("Content-Type", "application/json");
    for (method, headers, body, status, code, said) in [
        ("GET", vec![host], &b""[..], 405, "HM0230", "/mcp does not take GET"),
        ("DELETE", vec![host], b"", 405, "HM0230", "/mcp does not take DELETE"),
        ("POST", vec![host, json], b"{}", 406, "HM0230", "text/event-stream"),
        ("POST", vec![host, both, ("Content-Type", "text/plain")], b"{}", 415, "HM0230", "application/json"),
        ("POST", vec![("Host", "evil.example"), both, json], b"{}", 403, "HM0051", ""),
    ] {
        let reply = home.http(method, "/mcp", &headers, body).whole();
        let told: Value = serde_json::from_slice(&reply.body).expect("JSON, as everywhere");
        assert_eq!(
            (reply.status, &told["status"], &told["code"]),
            (status, &json!(status), &json!(code)),
            "{told}"
        );
        assert!(told["detail"].as_str().is_some_and(|detail| detail.contains(said)), "{told}");
        assert!(told["advice"].as_str().is_some_and(|advice| !advice.is_empty()), "{told}");
    }
    assert_eq!(home.http("GET", "/mcp", &[host], b"").whole().header("allow"), "POST");
}
