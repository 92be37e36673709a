//! The event log: every event once and in order, for whoever follows, across the death of the daemon.
#![expect(
    clippy::unwrap_used,
    reason = "in a test, a panic is the report; helpers outside of #[test] are tests too"
)]

use std::io::{BufRead, BufReader};
use std::process::Child;

use homing_testkit::Home;
use serde_json::Value;

/// `homing events -f`, ended with the test.
struct Follower {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Follower {
    fn new(home: &Home, options: &[&str]) -> Self {
        let mut child = home.spawn([&["events", "-f"], options].concat());
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    fn next(&mut self) -> Value {
        serde_json::from_str(&self.lines.next().unwrap().unwrap()).unwrap()
    }

    /// Everything up to the end of this task.
    fn until_end(&mut self, id: &str) -> Vec<Value> {
        let mut seen = Vec::new();
        loop {
            let event = self.next();
            let last = event["type"] == "task.completed" && event["task_id"] == *id;
            seen.push(event);
            if last {
                return seen;
            }
        }
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn log(home: &Home, options: &[&str]) -> Vec<Value> {
    let text = home.cli([&["events"], options].concat()).ok().text();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn seq(event: &Value) -> u64 {
    event["seq"].as_u64().unwrap()
}

fn kinds(events: &[Value], id: &str) -> Vec<String> {
    let of_task = events.iter().filter(|event| event["task_id"] == *id);
    of_task.map(|event| event["type"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_tasks_events_are_in_order_and_say_what_happened() {
    let home = super::home();
    let id = home.submit(&["--owner", "me"], "exit 3");
    let _ = home.ended(&id);
    let stopped = home.submit(&[], "sleep 1000");
    let _ = home.until_status(&stopped, "running");
    let _ = home.cli(["stop", &stopped]).ok();
    let _ = home.ended(&stopped);
    let events = log(&home, &[]);
    assert!(events.windows(2).all(|pair| seq(&pair[0]) < seq(&pair[1])));
    assert_eq!(events[0]["type"], "daemon.started");
    assert_eq!(kinds(&events, &id), ["task.queued", "task.started", "task.completed"]);
    assert_eq!(kinds(&events, &stopped), ["task.queued", "task.started", "task.stopping", "task.completed"]);
    let end = events.iter().rfind(|event| event["task_id"] == *id).unwrap();
    assert_eq!((&end["owner"], &end["data"]["status"]), (&"me".into(), &"failed".into()), "{end}");
    assert_eq!(end["data"]["outcome"]["exit_code"], 3, "{end}");
    assert!(events.iter().all(|event| event["at"].as_str().unwrap().ends_with('Z')));
    assert_eq!(log(&home, &["--owner", "me"]).len(), 3);
    let middle = seq(&events[2]).to_string();
    assert_eq!(log(&home, &["--after", &middle]), events[3..]);
    assert_eq!(log(&home, &["--after", "999999999"]), Vec::<Value>::new());
}

#[test]
fn p3_a_follower_of_events_misses_nothing_and_sees_nothing_twice_when_the_daemon_is_killed() {
    let home = super::home();
    let _ = home.daemon_pid();
    let mut follower = Follower::new(&home, &[]);
    let mut seen = Vec::new();
    for round in 0..3 {
        let id = home.submit(&["--stdin", "pipe"], "read line");
        let running = home.until_status(&id, "running");
        assert_eq!(running["status"], "running", "round {round}");
        let daemon = home.kill_daemon();
        let _ = home.next_daemon(daemon);
        let _ = home.cli(["input", &id, "go", "--enter"]).ok();
        seen.extend(follower.until_end(&id));
    }
    let all = log(&home, &[]);
    assert_eq!(seen, all[..seen.len()]);
    assert_eq!(all.iter().filter(|event| event["type"] == "daemon.started").count(), 4);
}

#[test]
fn the_stream_goes_on_after_the_last_event_seen() {
    let home = super::home();
    let id = home.submit(&[], "true");
    let _ = home.ended(&id);
    let events = log(&home, &[]);
    let last = [("last-event-id", events[1]["seq"].to_string())];
    let headers: Vec<_> = last.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let mut stream = home.http("GET", "/v1/events?after=0&types=task.completed,task.started", &headers, b"");
    assert_eq!(stream.status, 200);
    let rest: Vec<_> = events[2..].iter().collect();
    for event in rest {
        let got = stream.next().unwrap();
        assert_eq!((got.json(), got.id), (event.clone(), Some(event["seq"].to_string())));
        assert_eq!(got.event, event["type"].as_str().unwrap());
    }
    // Live from here: an event that is committed later comes by itself.
    let second = home.submit(&[], "true");
    assert_eq!(stream.next().unwrap().json()["task_id"], *second);
    let mut now = home.http("GET", "/v1/events?types=task.queued", &[], b"");
    let third = home.submit(&[], "true");
    assert_eq!(now.next().unwrap().json()["task_id"], *third, "without a cursor it begins now");
}
