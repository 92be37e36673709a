//! Who looks on: observers of states, readers of events, takers of the inbox, and those who ask for an end or for another try.

use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::atomic::Ordering;

use homing_model::Status;
use homing_testkit::Random;
use serde_json::{Value, json};

use super::field::Field;
use super::load::OWNERS;
use super::story::{Asked, Sighting, now};

/// What bodies are.
const JSON: &[(&str, &str)] = &[("content-type", "application/json")];

/// What one observer saw; the same twice in a row is noted once.
#[derive(Debug, Default)]
struct Seen {
    sightings: Vec<Sighting>,
    last: HashMap<String, Status>,
}

impl Seen {
    fn note(&mut self, task: &str, status: Option<&str>) {
        let status = status.and_then(|text| Status::ALL.into_iter().find(|status| status.as_str() == text));
        let Some(status) = status else { return };
        if self.last.insert(task.to_owned(), status) != Some(status) {
            self.sightings.push(Sighting { task: task.to_owned(), status });
        }
    }

    fn note_task(&mut self, task: &Value) {
        if let Some(id) = task["id"].as_str() {
            self.note(id, task["status"].as_str());
        }
    }
}

/// Looks at the newest tasks again and again.
pub(crate) fn list(field: &Field, seed: u64) -> Vec<Sighting> {
    let (mut random, mut seen) = (Random::new(seed), Seen::default());
    while !field.is_over() {
        let page = field.ask("GET", "/v1/tasks?limit=40", None).unwrap_or_default();
        page["items"].as_array().into_iter().flatten().for_each(|task| seen.note_task(task));
        field.pause(&mut random, 100);
    }
    seen.sightings
}

/// Waits for the end of one task after the other.
pub(crate) fn wait(field: &Field, seed: u64) -> Vec<Sighting> {
    let (mut random, mut seen) = (Random::new(seed), Seen::default());
    while !field.is_over() {
        if let Some(id) = field.some_task(&mut random) {
            let task =
                field.ask("GET", &format!("/v1/tasks/{id}/wait?timeout_ms={}", random.below(400)), None);
            task.iter().for_each(|task| seen.note_task(task));
        }
        field.pause(&mut random, 50);
    }
    seen.sightings
}

/// The state that an event tells of.
fn told(event: &Value) -> Option<&str> {
    match event["type"].as_str()? {
        "task.queued" => Some("queued"),
        "task.started" => Some("running"),
        "task.stopping" => Some("stopping"),
        "task.completed" => event["data"]["status"].as_str(),
        _ => None,
    }
}

/// Whether an event tells of a start that was reported after the task was asked to stop: no state, which stays `stopping`.
fn is_late_start(event: &Value, stopping: &mut HashSet<String>) -> bool {
    let Some(task) = event["task_id"].as_str() else { return false };
    match event["type"].as_str() {
        Some("task.stopping") => {
            stopping.insert(task.to_owned());
            false
        }
        Some("task.started") => stopping.contains(task),
        _ => false,
    }
}

/// Follows the events, by as many connections as chance wants, until the last one.
pub(crate) fn follow(field: &Field, seed: u64) -> (Vec<u64>, Vec<Sighting>) {
    let (mut random, mut seen, mut ids) = (Random::new(seed), Seen::default(), Vec::new());
    let mut stopping = HashSet::new();
    loop {
        let cursor = ids.last().copied().unwrap_or(0_u64).to_string();
        let headers = [("last-event-id", cursor.as_str())];
        if let Ok(stream) = field.home.try_http("GET", "/v1/events?after=0", &headers, b"") {
            let many = usize::try_from(1 + random.below(300)).unwrap_or(1);
            for event in stream.take(many) {
                ids.extend(event.id.as_ref().and_then(|id| id.parse::<u64>().ok()));
                if let Ok(event) = serde_json::from_str::<Value>(&event.data)
                    && let Some(task) = event["task_id"].as_str()
                    && !is_late_start(&event, &mut stopping)
                {
                    seen.note(task, told(&event));
                }
                let last = field.last_event.load(Ordering::Relaxed);
                if last > 0 && ids.last().is_some_and(|id| *id >= last) {
                    return (ids, seen.sightings);
                }
            }
        }
        field.pause(&mut random, 20);
    }
}

/// Takes what is in the inboxes, and dies with it as often as not.
pub(crate) fn take(field: &Field, seed: u64) {
    let mut random = Random::new(seed);
    while !field.is_over() {
        let owner = random.pick(&OWNERS).copied().unwrap_or("ann");
        let _ = field.ask("GET", &format!("/v1/inbox/{owner}?limit=20"), None);
        let body = json!({ "max": 1 + random.below(8), "lease_ms": 200 + random.below(400), "wait_ms": random.below(300) });
        let taken = field.ask("POST", &format!("/v1/inbox/{owner}/take"), Some(&body)).unwrap_or_default();
        let items = taken["items"].as_array().cloned().unwrap_or_default();
        let others = items.iter().filter(|item| item["task"]["owner"] != owner);
        let astray = others.map(|item| format!("{owner} was given {}", item["id"])).collect::<Vec<_>>();
        field.story().inbox.astray.extend(astray);
        if !items.is_empty() && random.below(2) == 0 {
            acknowledge(field, owner, &items);
        }
        field.pause(&mut random, 60);
    }
}

fn acknowledge(field: &Field, owner: &str, items: &[Value]) {
    let ids: Vec<String> = items.iter().filter_map(|item| Some(item["id"].as_str()?.to_owned())).collect();
    // Before it is asked: who dies in between has perhaps done it.
    field.story().inbox.perhaps.extend(ids.iter().cloned());
    let answer = field.ask("POST", &format!("/v1/inbox/{owner}/ack"), Some(&json!({ "ids": ids })));
    if answer.is_some() {
        field.story().inbox.acknowledged.extend(ids);
    }
}

/// Asks now and then for the end of a task, and for another try of all that waits.
pub(crate) fn meddle(field: &Field, seed: u64) {
    let mut random = Random::new(seed);
    while !field.is_over() {
        if random.below(4) > 0 {
            if let Some(id) = field.some_task(&mut random) {
                field.story().stopped.insert(id.clone());
                let _ = field.ask("POST", &format!("/v1/tasks/{id}/stop"), Some(&json!({ "wait": false })));
            }
        } else {
            redeliver(field);
        }
        field.pause(&mut random, 2_000);
    }
}

/// Everything that waits is tried now. What would wake a session is told again if it was told before, because somebody asks for it.
pub(crate) fn redeliver(field: &Field) {
    let waiting = field.all_with("/v1/deliveries", "&state=pending").unwrap_or_default();
    for row in waiting {
        let text = |name: &str| row[name].as_str().unwrap_or_default();
        // A session that is only told by its hooks is never open: asked for again, that would wait for ever.
        if text("target").starts_with("wake:claude:s") {
            continue;
        }
        let at = now();
        let answer =
            field.home.try_http("POST", &format!("/v1/deliveries/{}/redeliver", text("id")), JSON, b"{}");
        // Without an answer it may have been done, by the daemon that was killed meanwhile; not where nobody was there to be asked.
        let may_be_done = answer.map_or_else(|error| !is_unreached(&error), |answer| answer.status < 300);
        if may_be_done && text("target").starts_with("wake:") {
            field.story().again.entry(text("notice_id").to_owned()).or_default().push(Asked { at });
        }
    }
}

/// Whether there was nobody to connect to.
fn is_unreached(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused)
}
