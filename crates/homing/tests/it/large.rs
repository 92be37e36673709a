//! Submits and answers have bounds, and the daemon is as small afterwards as before.
#![expect(
    clippy::unwrap_used,
    reason = "in a test, a panic is the report; helpers outside of #[test] are tests too"
)]

use homing_testkit::{Home, PATIENCE, Reply, wait_until};
use serde_json::{Value, json};

fn submit(home: &Home, spec: &Value) -> Reply {
    let headers = [("content-type", "application/json")];
    home.http("POST", "/v1/tasks", &headers, spec.to_string().as_bytes()).whole()
}

/// Resident memory of a process, in bytes.
fn resident(pid: u32) -> u64 {
    memory(pid, "VmRSS:")
}

fn memory(pid: u32, field: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(field)).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

#[test]
fn what_a_submit_carries_has_bounds_that_are_named() {
    let home = super::home();
    let _ = home.daemon_pid();
    let words = |count: usize| vec!["x".repeat(1_000); count];
    let many: Value =
        (0..200_000).map(|n| (format!("V{n}"), json!("x"))).collect::<serde_json::Map<_, _>>().into();
    for (spec, field) in [
        (json!({ "argv": words(7_000) }), "`argv` is larger than 2 MiB"),
        (json!({ "argv": ["true"], "env": many }), "`env` is larger than 2 MiB"),
        (json!({ "argv": ["true"], "labels": many }), "`labels` has more than 100"),
        (
            json!({ "argv": ["true"], "notify": { "targets": ["inbox"], "secret": "s".repeat(7 << 20) } }),
            "`notify.secret` is longer than 200 bytes",
        ),
    ] {
        let refused = submit(&home, &spec);
        assert_eq!((refused.status, refused.json()["code"].as_str()), (422, Some("HM0003")));
        assert!(refused.json()["detail"].as_str().unwrap().contains(field), "{field}");
    }
    for (route, ids) in [("ack", vec!["t-22"; 1_001]), ("take", vec!["n-2222222222"; 1_001])] {
        let (path, body) = (format!("/v1/inbox/user/{route}"), json!({ "ids": ids }).to_string());
        let refused =
            home.http("POST", &path, &[("content-type", "application/json")], body.as_bytes()).whole();
        assert_eq!(refused.status, 422, "{route}");
        assert!(refused.json()["detail"].as_str().unwrap().contains("`ids` has 1001 ids"), "{route}");
    }
    // As much as a shell may have, with a limit of the kernel that is seldom reached.
    let real: Value = (0..1_500)
        .map(|n| (format!("V{n}"), json!("x".repeat(1_000))))
        .collect::<serde_json::Map<_, _>>()
        .into();
    let taken = submit(&home, &json!({ "argv": ["true"], "env": real }));
    assert_eq!(taken.status, 201);
    assert_eq!(home.ended(taken.json()["id"].as_str().unwrap())["status"], "succeeded");
}

#[test]
fn pages_and_memory_stay_small_however_large_the_tasks_are() {
    let home = super::home();
    let daemon = home.daemon_pid();
    let _ = home.ended(&home.submit(&[], "true"));
    let before = resident(daemon);
    let argv: Vec<_> = ["true".to_owned()].into_iter().chain(vec!["x".repeat(1_000); 1_900]).collect();
    let spec = json!({ "argv": argv });
    let ids: Vec<_> = (0..40)
        .map(|_| {
            let taken = submit(&home, &spec);
            assert_eq!(taken.status, 201);
            taken.json()["id"].as_str().unwrap().to_owned()
        })
        .collect();
    for id in &ids {
        assert_eq!(home.ended(id)["status"], "succeeded");
    }
    let (mut seen, mut cursor, mut pages) = (Vec::new(), String::new(), 0);
    loop {
        let answer = home.get(&format!("/v1/tasks?limit=1000{cursor}"));
        assert!(answer.status == 200 && answer.body.len() < 1 << 20, "a page of {} bytes", answer.body.len());
        let page = answer.json();
        pages += 1;
        seen.extend(
            page["items"].as_array().unwrap().iter().map(|task| task["id"].as_str().unwrap().to_owned()),
        );
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert!(pages > 1 && ids.iter().all(|id| seen.contains(id)), "{} tasks on {pages} pages", seen.len());
    assert_eq!(home.task(&ids[0])["argv"].as_array().unwrap().len(), argv.len(), "one task is shown whole");
    for address in ["/v1/events?follow=false", "/v1/inbox/user?limit=1000", "/v1/deliveries?limit=1000"] {
        let answer = home.get(address);
        assert!(
            answer.status == 200 && answer.body.len() < 2 << 20,
            "{address}: {} bytes",
            answer.body.len()
        );
    }
    // The highest from here on.
    std::fs::write(format!("/proc/{daemon}/clear_refs"), "5").unwrap();
    let settled = resident(daemon);
    let answer = home.get(&format!("/v1/wait?ids={}", ids.join(",")));
    assert!(answer.status == 200 && answer.body.len() < 4 << 20, "{} bytes of a wait", answer.body.len());
    let waited = answer.json();
    assert!(waited["items"].as_array().unwrap().iter().map(|task| &task["id"]).eq(&ids));
    let peak = memory(daemon, "VmHWM:");
    assert!(peak < settled + (40 << 20), "{settled} bytes before a wait, {peak} in it");
    let enough = before + (24 << 20);
    wait_until("memory to be given back", 2 * PATIENCE, || {
        let now = resident(daemon);
        if now <= enough { Ok(()) } else { Err(format!("{before} bytes before, {now} after")) }
    });
}

#[test]
fn a_wait_for_many_long_answers_is_bounded() {
    let home = super::home();
    let _ = home.daemon_pid();
    let labels: Value = (0..15)
        .map(|n| (format!("l{n}"), json!("v".repeat(1_000))))
        .collect::<serde_json::Map<_, _>>()
        .into();
    let ids: Vec<_> = (0..200)
        .map(|_| {
            let taken = submit(&home, &json!({ "kind": "external", "labels": labels }));
            taken.json()["id"].as_str().unwrap().to_owned()
        })
        .collect();
    let answer = "a".repeat(250_000);
    for id in &ids {
        assert_eq!(home.post(&format!("/v1/tasks/{id}/complete"), &json!({ "answer": answer })).status, 200);
    }
    let waited = home.get(&format!("/v1/wait?ids={}", ids.join(",")));
    assert!(waited.status == 200 && waited.body.len() < 3 << 20, "{} bytes", waited.body.len());
    let tasks = waited.json()["items"].as_array().unwrap().clone();
    assert!(tasks.len() == 200 && tasks.iter().all(|task| task["status"] == "succeeded"));
    assert!(tasks.iter().all(|task| task["answer"].as_str().unwrap().ends_with("a…")));
    assert_eq!((tasks[0]["labels"] == labels, tasks[199]["labels"] == json!({})), (true, true));
    let alone = home.get(&format!("/v1/wait?ids={}", ids[0])).json();
    assert_eq!(alone["items"][0]["answer"], answer, "one task is shown whole");
}
