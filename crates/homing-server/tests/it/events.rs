//! `/v1/events`.

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
