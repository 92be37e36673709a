//! `/v1/events`.

use std::time::Duration;

use homing_engine::Config;
use homing_engine::config::Period;
use serde_json::{Value, json};

use crate::served::Served;

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn the_log_so_far_is_json_lines() {
    let served = Served::start();
    let id = served.run_to_end("true");
    let log = served.get("/v1/events?follow=false");
    assert_eq!(log.header("content-type"), "application/x-ndjson");
    let events: Vec<_> =
        lines(&log.text()).into_iter().filter(|event| event["task_id"] == id.as_str()).collect();
    let types: Vec<_> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(types, ["task.queued", "task.started", "task.completed"]);
    let after = events[1]["seq"].as_u64().unwrap();
    let rest = lines(&served.get(&format!("/v1/events?follow=false&after={after}")).text());
    assert_eq!(rest, events[2..]);
    let some = lines(&served.get("/v1/events?follow=false&types=task.completed&owner=user").text());
    assert_eq!(some.len(), 1);
    assert!(served.get("/v1/events?follow=false&owner=nobody").text().is_empty());
    assert_eq!(served.get("/v1/events?types=task.eaten").problem(), (422, "HM0003".into()));
    assert_eq!(served.get("/v1/events?after=x").problem(), (422, "HM0003".into()));
}

#[test]
fn a_list_says_after_which_event_whoever_follows_misses_nothing() {
    let served = Served::start();
    let before = served.run_to_end("true");
    let list = served.get("/v1/tasks?limit=1");
    assert_eq!(list.json()["items"][0]["id"], before.as_str());
    let as_of = list.header("homing-as-of");
    let after = served.run_to_end("true");
    let log = lines(&served.get(&format!("/v1/events?follow=false&after={as_of}")).text());
    let tasks: Vec<_> = log.iter().filter_map(|event| event["task_id"].as_str()).collect();
    assert_eq!(tasks, [after.as_str(); 3], "all of the later task, nothing of the earlier one");
}

#[test]
fn a_follower_sees_everything_once_and_in_order() {
    let served = Served::start();
    let before = served.run_to_end("true");
    let mut stream = served.open("GET", "/v1/events?after=0&types=task.queued,task.completed", &[], b"");
    let mut now_on = served.open("GET", "/v1/events", &[], b"");
    let ids: Vec<_> = (0..200).map(|_| served.run("true", &json!({}))).collect();
    let mut seen = Vec::new();
    while seen.len() < 402 {
        let event = stream.event().unwrap();
        assert_eq!(event.id.as_deref(), Some(event.data["seq"].to_string().as_str()));
        assert_eq!(event.name, event.data["type"].as_str().unwrap());
        seen.push(event.data);
    }
    assert!(seen.windows(2).all(|pair| pair[0]["seq"].as_u64() < pair[1]["seq"].as_u64()));
    for id in ids.iter().chain([&before]) {
        assert_eq!(seen.iter().filter(|event| event["task_id"] == id.as_str()).count(), 2, "{id}");
    }
    let first = now_on.event().unwrap();
    assert_eq!((first.name.as_str(), &first.data["task_id"]), ("task.queued", &json!(ids[0])));
    let cursor = seen[10]["seq"].to_string();
    let headers = [("last-event-id", cursor.as_str())];
    let mut resumed =
        served.open("GET", "/v1/events?after=0&types=task.queued,task.completed", &headers, b"");
    assert_eq!(resumed.event().unwrap().data, seen[11]);
}

#[test]
fn the_end_of_the_server_ends_a_stream() {
    let served = Served::start();
    let stream = served.open("GET", "/v1/events", &[], b"");
    served.end();
    assert!(stream.events().is_empty());
}

/// A server whose log forgets at once, with one task that lives and a log that was trimmed.
fn forgetful() -> (Served, String) {
    let mut config = Config::default();
    config.retention.age = Period(Duration::from_millis(1));
    // It forgets when it is told to, and not what has just been logged besides.
    config.reconcile.interval = Period(Duration::from_secs(3_600));
    let served = Served::with(config);
    let live = served.running("sleep 1000", &json!({ "owner": "ann" }));
    let _ = served.run_to_end("true");
    // An event is past its time a millisecond after it; each of these takes longer.
    for _ in 0..10_000 {
        assert_eq!(served.post("/v1/gc", "").status, 200);
        if !served.get("/v1/events?follow=false&after=1").header("homing-trimmed-to").is_empty() {
            return (served, live);
        }
    }
    panic!("the log is not trimmed")
}

#[test]
fn too_old_a_cursor_gets_the_tasks_as_they_are_and_all_that_follows() {
    let (served, live) = forgetful();
    for headers in [&[][..], &[("last-event-id", "1")][..]] {
        let mut stream = served.open("GET", "/v1/events?after=1&owner=ann", headers, b"");
        let reset = stream.event().unwrap();
        assert_eq!((reset.name.as_str(), &reset.data["reason"]), ("reset", &json!("too_old")));
        assert_eq!(reset.id, Some(reset.data["seq"].to_string()));
        assert_eq!(reset.data["type"], "reset");
        assert!(reset.data["trimmed_to"].as_u64().unwrap() >= 1, "{}", reset.data);
        let tasks = reset.data["tasks"]["items"].as_array().unwrap();
        assert_eq!(tasks[0], served.get("/v1/tasks?owner=ann").json()["items"][0]);
        assert_eq!((&tasks[0]["id"], &tasks[0]["status"]), (&json!(live), &json!("running")));
        let next = served.run("true", &json!({ "owner": "ann" }));
        let event = stream.event().unwrap();
        assert_eq!((event.name.as_str(), &event.data["task_id"]), ("task.queued", &json!(next)));
        assert!(event.data["seq"].as_u64() > reset.data["seq"].as_u64());
        let _ = served.get(&format!("/v1/tasks/{next}/wait?timeout_ms=30000"));
    }
}

#[test]
fn a_cursor_of_another_log_is_told_and_the_stream_goes_on() {
    let served = Served::start();
    let id = served.run_to_end("true");
    let mut stream = served.open("GET", "/v1/events?after=1000000", &[], b"");
    let reset = stream.event().unwrap();
    assert_eq!((reset.name.as_str(), &reset.data["reason"]), ("reset", &json!("unknown")));
    assert_eq!(reset.data["tasks"]["items"][0]["id"], json!(id));
    let next = served.run("true", &json!({}));
    assert_eq!(stream.event().unwrap().data["task_id"], json!(next));
    let newest = reset.data["seq"].to_string();
    let mut resumed = served.open("GET", "/v1/events", &[("last-event-id", newest.as_str())], b"");
    assert_eq!(resumed.event().unwrap().name, "task.queued", "the newest is no stranger");
}

#[test]
fn whoever_has_no_cursor_begins_with_the_oldest_that_is_kept_or_now() {
    let (served, _) = forgetful();
    let id = served.run("true", &json!({}));
    let mut stream = served.open("GET", "/v1/events?from=oldest&types=task.queued", &[], b"");
    let first = stream.event().unwrap();
    assert_eq!((first.name.as_str(), &first.data["task_id"]), ("task.queued", &json!(id)));
    assert_eq!(served.get("/v1/events?from=elsewhere").problem(), (422, "HM0003".into()));
}
