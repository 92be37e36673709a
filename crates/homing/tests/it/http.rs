//! The HTTP surface as any program meets it: every route, and every way to get it wrong.
#![expect(
    clippy::unwrap_used,
    reason = "in a test, a panic is the report; helpers outside of #[test] are tests too"
)]

use homing_testkit::{Home, Reply};
use serde_json::{Value, json};

fn submit(home: &Home, body: &Value) -> String {
    let _ = home.daemon_pid();
    let reply = home.post("/v1/tasks", body);
    assert_eq!(reply.status, 201, "{}", reply.json());
    let id = reply.json()["id"].as_str().unwrap().to_owned();
    assert_eq!(reply.header("location"), format!("/v1/tasks/{id}"));
    id
}

#[track_caller]
fn assert_problem(reply: &Reply, status: u16, code: &str, says: &str) {
    assert_eq!(reply.header("content-type"), "application/problem+json");
    let problem = reply.json();
    assert_eq!((reply.status, problem["code"].as_str()), (status, Some(code)), "{problem}");
    assert_eq!(problem["status"], status);
    assert!(problem["detail"].as_str().unwrap().contains(says), "{problem}");
    assert!(
        !problem["advice"].as_str().unwrap().is_empty() && !problem["title"].as_str().unwrap().is_empty()
    );
    assert!(problem["type"].as_str().unwrap().starts_with("urn:homing:problem:"));
}

#[test]
fn a_task_can_be_submitted_watched_fed_signalled_stopped_and_forgotten() {
    let home = super::home();
    let line = "trap 'echo usr' USR1; echo ready; while read line; do echo \"got $line\"; done";
    let id =
        submit(&home, &json!({ "shell": line, "stdin": "pipe", "name": "talk", "labels": { "k": "v" } }));
    let ready = home.get(&format!("/v1/tasks/{id}/output?wait_ms=20000"));
    assert_eq!((ready.body.as_slice(), ready.header("Homing-Complete")), (&b"ready\n"[..], "false"));
    assert_eq!(home.get("/v1/tasks/talk").json()["id"], *id, "a name stands for the id");
    assert_eq!(home.get("/v1/tasks/@last").json()["id"], *id);
    // What it prints is there before its start is in the ledger.
    let _ = home.until_status(&id, "running");
    let running = home.get(&format!("/v1/tasks/{id}/wait?timeout_ms=0"));
    assert_eq!((running.status, &running.json()["status"]), (202, &json!("running")));
    assert_eq!(home.post(&format!("/v1/tasks/{id}/input"), &json!({ "text": "one\n" })).json()["written"], 4);
    let octets = [("content-type", "application/octet-stream")];
    let raw = home.http("POST", &format!("/v1/tasks/{id}/input"), &octets, b"two\n").whole();
    assert_eq!((raw.status, &raw.json()["written"]), (200, &json!(4)));
    let signalled = home.post(&format!("/v1/tasks/{id}/signal"), &json!({ "signal": "USR1" }));
    assert_eq!(signalled.status, 200, "{}", signalled.json());
    let seen = homing_testkit::wait_for("all of its words", || {
        let output = home.get(&format!("/v1/tasks/{id}/output"));
        (output.body.len() >= 26).then(|| String::from_utf8(output.body).unwrap())
    });
    let mut words: Vec<_> = seen.lines().collect();
    words.sort_unstable();
    assert_eq!(words, ["got one", "got two", "ready", "usr"]);
    let list =
        |query: &str| home.get(&format!("/v1/tasks?{query}")).json()["items"].as_array().unwrap().len();
    assert_eq!(
        (list("label=k%3Dv"), list("label=k%3Dw"), list("status=running"), list("owner=nobody")),
        (1, 0, 1, 0)
    );
    let live = home.http("DELETE", &format!("/v1/tasks/{id}"), &[], b"").whole();
    assert_problem(&live, 409, "HM0005", &id);
    let stopped =
        home.post(&format!("/v1/tasks/{id}/stop"), &json!({ "signal": "KILL", "by": "me", "wait": true }));
    assert_eq!((stopped.status, &stopped.json()["stopping"]), (200, &json!(true)));
    let ended = home.get(&format!("/v1/tasks/{id}/wait"));
    assert_eq!((ended.status, &ended.json()["status"]), (200, &json!("stopped")));
    assert_eq!(
        (&ended.json()["outcome"]["signal"], &ended.json()["outcome"]["stopped_by"]),
        (&json!(9), &json!("me"))
    );
    assert_eq!(home.post(&format!("/v1/tasks/{id}/stop"), &json!({})).json()["stopping"], false);
    assert_problem(&home.post(&format!("/v1/tasks/{id}/input"), &json!({ "text": "x" })), 409, "HM0006", &id);
    // A shim that takes its time to leave is taken for children that live.
    homing_testkit::wait_for("the shim to leave", || home.processes("homing-shim").is_empty().then_some(()));
    assert_eq!(home.http("DELETE", &format!("/v1/tasks/{id}"), &[], b"").whole().json()["forgotten"], true);
    assert_problem(&home.get(&format!("/v1/tasks/{id}/output")), 410, "HM0009", &id);
}

#[test]
fn several_tasks_are_waited_for_together() {
    let home = super::home();
    let quick = submit(&home, &json!({ "shell": "exit 3" }));
    let slow = submit(&home, &json!({ "argv": ["sleep", "1000"] }));
    let any = home.get(&format!("/v1/wait?ids={slow},{quick}&mode=any"));
    assert_eq!((any.status, &any.json()["first"]), (200, &json!(quick)));
    let order: Vec<_> =
        any.json()["items"].as_array().unwrap().iter().map(|task| task["id"].clone()).collect();
    assert_eq!(order, [json!(slow), json!(quick)]);
    let all = home.get(&format!("/v1/wait?ids={slow},{quick}&timeout_ms=10"));
    assert_eq!((all.status, &all.json()["done"]), (202, &json!(false)));
    assert_problem(&home.get("/v1/wait?ids="), 422, "HM0003", "ids");
    assert_problem(&home.get(&format!("/v1/wait?ids={slow},t-2222222222")), 404, "HM0001", "t-2222222222");
}

#[test]
fn p7_a_follower_is_told_output_gap_and_end_and_can_go_on_from_an_id() {
    let home = super::home();
    let line = "head -c 200000 /dev/zero | tr '\\0' a; head -c 200000 /dev/zero | tr '\\0' b; printf '\\xff'";
    let id = submit(&home, &json!({ "shell": line, "max_output_bytes": 65536 }));
    let _ = home.ended(&id);
    let follow = |headers: &[(&str, &str)]| -> Vec<_> {
        home.http("GET", &format!("/v1/tasks/{id}/follow"), headers, b"").collect()
    };
    let events = follow(&[]);
    let (mut at, mut gaps) = (0, 0);
    for event in &events[..events.len() - 1] {
        let data = event.json();
        assert_eq!(data["offset"], at, "no byte is told twice and none is left out");
        at += data["bytes"].as_u64().unwrap();
        assert_eq!(event.id.as_deref(), Some(at.to_string().as_str()), "the id is where to go on");
        match event.event.as_str() {
            "gap" => gaps += 1,
            "output" => assert!(data["text"].is_string() != data["base64"].is_string(), "{data}"),
            other => panic!("{other}"),
        }
    }
    assert_eq!((at, gaps), (400_001, 1));
    let end = events.last().unwrap();
    assert_eq!((end.event.as_str(), &end.json()["status"]), ("end", &json!("succeeded")));
    assert!(events[events.len() - 2].json()["base64"].is_string(), "what is no text comes in base64");
    let late = follow(&[("last-event-id", "400000")]);
    let told: Vec<_> = late.iter().map(|event| event.event.as_str()).collect();
    assert_eq!(told, ["output", "end"]);
    assert_eq!(late[0].json(), json!({ "offset": 400_000, "bytes": 1, "base64": "/w==" }));
}

#[test]
fn what_makes_no_sense_is_a_problem_with_a_code_and_a_next_step() {
    let home = super::home();
    let id = submit(&home, &json!({ "argv": ["sleep", "1000"] }));
    let kind = [("content-type", "application/json")];
    let body = |bytes: &[u8]| home.http("POST", "/v1/tasks", &kind, bytes).whole();
    assert_problem(&body(b"{"), 400, "HM0004", "");
    assert_problem(&body(b""), 400, "HM0004", "");
    assert_problem(&body(b"\xff\xfe"), 400, "HM0004", "");
    for (wrong, says) in [
        (json!({ "argv": ["true"], "nonsense": 1 }), "nonsense"),
        (json!({ "argv": "true" }), "expected a sequence"),
        (json!({}), "no command"),
        (json!({ "argv": ["true"], "shell": "true" }), "choose one"),
        (json!({ "argv": ["true"], "cwd": "tmp" }), "cwd"),
        (json!({ "argv": ["true"], "umask": 4096 }), "umask"),
        (json!({ "argv": ["a\0b"] }), "NUL"),
        (json!({ "argv": ["true"], "env": { "A=B": "" } }), "A=B"),
        (json!({ "argv": ["true"], "name": "a\u{1b}[2J" }), "control"),
    ] {
        assert_problem(&home.post("/v1/tasks", &wrong), 422, "HM0003", says);
    }
    let too_large = json!({ "shell": "true", "description": "x".repeat(9 << 20) });
    assert_problem(&home.post("/v1/tasks", &too_large), 413, "HM0027", "");
    assert_problem(&home.get("/v1/tasks/t-2222222222"), 404, "HM0001", "t-2222222222");
    assert_problem(&home.get("/v1/tasks/..%2f..%2fetc%2fpasswd"), 404, "HM0001", "passwd");
    assert_problem(&home.get("/v2/tasks"), 404, "HM0026", "/v2/tasks");
    assert_problem(&home.http("PUT", "/v1/tasks", &[], b"").whole(), 405, "HM0026", "PUT");
    for (query, says) in
        [("limit=0", "limit"), ("limit=x", "limit"), ("staus=running", "staus"), ("status=done", "done")]
    {
        assert_problem(&home.get(&format!("/v1/tasks?{query}")), 422, "HM0003", says);
    }
    assert_problem(&home.get("/v1/tasks?cursor=zzz"), 422, "HM0003", "cursor");
    assert_problem(&home.get("/v1/tasks?owner="), 422, "HM0003", "`owner` is empty");
    assert_problem(&home.get(&format!("/v1/tasks/{id}/output?offset=1&tail=1")), 422, "HM0003", "choose one");
    assert_problem(&home.post(&format!("/v1/tasks/{id}/input"), &json!({ "text": "x" })), 409, "HM0007", &id);
    assert_problem(
        &home.post(&format!("/v1/tasks/{id}/signal"), &json!({ "signal": "NONSENSE" })),
        422,
        "HM0003",
        "NONSENSE",
    );
    assert_problem(
        &home.post(&format!("/v1/tasks/{id}/stop"), &json!({ "grace": 1 })),
        422,
        "HM0003",
        "grace",
    );
    assert_eq!(home.get("/healthz").status, 200, "and it lives");
}

#[test]
fn a_list_comes_in_pages_live_tasks_first() {
    let home = super::home();
    let live = submit(&home, &json!({ "argv": ["sleep", "1000"] }));
    let ended: Vec<_> = (0..5).map(|_| submit(&home, &json!({ "argv": ["true"] }))).collect();
    for id in &ended {
        let _ = home.ended(id);
    }
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = home.get(&format!("/v1/tasks?limit=2{cursor}")).json();
        seen.extend(
            page["items"].as_array().unwrap().iter().map(|task| task["id"].as_str().unwrap().to_owned()),
        );
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    let newest_first: Vec<_> = std::iter::once(live).chain(ended.into_iter().rev()).collect();
    assert_eq!(seen, newest_first);
}

#[test]
fn the_daemon_says_how_it_is_and_what_it_serves() {
    let home = super::home();
    let id = submit(&home, &json!({ "argv": ["true"] }));
    let _ = home.ended(&id);
    let status = home.get("/v1/status").json();
    assert_eq!(status["daemon"]["home"], home.path().to_str().unwrap());
    assert_eq!(status["tasks"], json!({ "queued": 0, "running": 0, "finished": 1 }));
    assert_eq!(
        (&status["reconcile"]["interval_ms"], &status["reconcile"]["errors"]),
        (&json!(10_000), &json!([]))
    );
    assert_eq!(status["deliveries"], json!({ "pending": 0, "dead": 0, "superseded": 0 }));
    assert_eq!(home.post("/v1/gc", &json!(null)).json()["forgotten"], 0);
    let lines = String::from_utf8(home.get("/v1/events?follow=false").body).unwrap();
    assert_eq!(lines.lines().count(), 4, "{lines}");
    let written = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/openapi.json");
    let written: Value = serde_json::from_slice(&std::fs::read(written).unwrap()).unwrap();
    assert_eq!(home.get("/openapi.json").json(), written, "run `cargo xtask openapi`");
    let stopping = home.post("/v1/daemon/stop", &json!(null));
    assert_eq!(stopping.status, 202);
    homing_testkit::wait_for("the daemon to leave", || home.find_daemon().is_none().then_some(()));
}

#[test]
fn every_documented_route_is_there() {
    let home = super::home();
    let id = submit(&home, &json!({ "argv": ["true"] }));
    let _ = home.ended(&id);
    let document = home.get("/openapi.json").json();
    let mut routes = 0;
    for (path, verbs) in document["paths"].as_object().unwrap() {
        for verb in verbs.as_object().unwrap().keys().filter(|verb| *verb != "parameters") {
            routes += 1;
            // Asked in a way that must be understood and refused, so that nothing happens.
            let target = format!("{}?no-such-parameter=1", path.replace("{ref}", &id));
            let reply = home.http(&verb.to_uppercase(), &target, &[], b"").whole();
            assert_problem(&reply, 422, "HM0003", "no-such-parameter");
        }
    }
    assert!(routes >= 18, "{routes}");
}
