//! The event log: every event once and in order, for whoever follows, across the death of the daemon.
#![expect(
    clippy::unwrap_used,
    reason = "in a test, a panic is the report; helpers outside of #[test] are tests too"
)]

use std::io::{BufRead, BufReader};
use std::process::Child;

use homing_testkit::{Home, gate, wait_for};
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

#[test]
fn a_follower_that_comes_too_late_gets_the_tasks_as_they_are_in_one_line_and_goes_on() {
    let home = super::home();
    std::fs::create_dir_all(home.path()).unwrap();
    std::fs::set_permissions(home.path(), std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    std::fs::write(home.path().join("config.toml"), "[retention]\nage = \"1ms\"\n").unwrap();
    let live = home.submit(&["--name", "server"], &gate("go"));
    let _ = home.until_status(&live, "running");
    wait_for("the log to be trimmed", || {
        let _ = home.cli(["gc"]).ok();
        home.cli(["events", "--after", "1"]).stderr.contains("no longer kept").then_some(())
    });
    // From here on it is left alone: what is trimmed before a follower has read it is followed by another reset, or by nothing.
    let draft = home.path().join("config.draft");
    std::fs::write(&draft, "[retention]\nage = \"1d\"\n").unwrap();
    std::fs::rename(&draft, home.path().join("config.toml")).unwrap();
    home.does(["config", "reload"]);
    let mut follower = Follower::new(&home, &["--after", "1"]);
    let reset = follower.next();
    assert_eq!((&reset["type"], &reset["reason"]), (&"reset".into(), &"too_old".into()), "{reset}");
    assert_eq!(reset["tasks"]["items"][0]["id"], *live, "{reset}");
    std::fs::write(home.scratch().join("go"), b"").unwrap();
    let rest = follower.until_end(&live);
    assert!(rest.iter().all(|event| seq(event) > seq(&reset)), "{rest:?}");
    let mut all = Follower::new(&home, &[]);
    assert_ne!(all.next()["type"], "reset", "without a cursor there is nothing to be too old");
}

fn resident(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

#[test]
fn readers_who_do_not_read_hold_no_memory_and_miss_nothing() {
    const READERS: u64 = 24;
    const EVENTS: u64 = 1_500;
    let home = super::home();
    let id = home.submit(&[], &gate("go"));
    let _ = home.until_status(&id, "running");
    let mut readers: Vec<_> =
        (0..READERS).map(|_| home.http("GET", "/v1/events?types=task.progress", &[], b"")).collect();
    let text = "x".repeat(500);
    let say = |n: u64| {
        let said = home.post(
            &format!("/v1/tasks/{id}/progress"),
            &serde_json::json!({ "percent": n % 100, "text": text }),
        );
        assert_eq!(said.status, 200);
    };
    (0..50).for_each(say);
    let daemon = home.daemon_pid();
    let before = resident(daemon);
    (0..EVENTS).for_each(say);
    let grown = resident(daemon).saturating_sub(before);
    let held = READERS * EVENTS * 600;
    assert!(grown < held / 2, "{grown} bytes for {held} that nobody read");
    for reader in &mut readers[..2] {
        let mut last = 0;
        for _ in 0..EVENTS + 50 {
            let event = reader.next().unwrap().json();
            assert!(seq(&event) > last, "in order, each once");
            last = seq(&event);
        }
    }
    std::fs::write(home.scratch().join("go"), b"").unwrap();
}
