//! Asking twice for the same: one task, whoever asks and however often.

use std::collections::BTreeSet;

use homing_testkit::Home;
use serde_json::{Value, json};

fn post(home: &Home, key: &str, body: &Value) -> (u16, Value) {
    let headers = [("content-type", "application/json"), ("idempotency-key", key)];
    let reply = home.http("POST", "/v1/tasks", &headers, body.to_string().as_bytes()).whole();
    (reply.status, reply.json())
}

#[test]
fn p10_a_key_gives_one_task_while_it_lives_and_a_new_one_after_its_end() {
    let home = super::home();
    let line = "echo ran >> runs; exec sleep 1000";
    let first = home.submit(&["--key", "nightly"], line);
    let second = home.cli(["run", "--key", "nightly", "-c", "echo other >> runs"]).ok();
    assert_eq!(second.text(), first);
    assert!(second.stderr.contains("joined"), "{}", second.stderr);
    let other_owner = home.submit(&["--key", "nightly", "--owner", "another"], "true");
    assert_ne!(other_owner, first, "keys are the owner's");
    assert_eq!(home.told("runs"), "ran");
    let _ = home.cli(["stop", &first]).ok();
    let _ = home.ended(&first);
    let third = home.submit(&["--key", "nightly"], "true");
    assert_ne!(third, first);
    assert_eq!(home.truth("runs"), "ran\n");
}

#[test]
fn joining_a_task_that_does_something_else_is_told() {
    let home = super::home();
    let first = home.submit(&["--key", "k"], "exec sleep 1000");
    let same = home.cli(["run", "--key", "k", "-c", "exec sleep 1000"]).ok();
    assert_eq!(same.stderr, format!("homing: joined {first}, which is live with this key\n"));
    let joined = format!("homing: joined {first}, which is live with this key; its ");
    let other = home.cli(["run", "--key", "k", "--", "true"]).ok();
    assert_eq!(other.text(), first);
    assert!(other.stderr.starts_with(&format!("{joined}command differs: exec sleep 1000\n  next: ")));
    let elsewhere = home.cli(["run", "--key", "k", "--cwd", "/", "-c", "exec sleep 1000"]).ok();
    assert!(elsewhere.stderr.starts_with(&format!("{joined}folder differs: /")), "{}", elsewhere.stderr);
    let named = home.cli(["run", "--key", "k", "--name", "n", "-c", "exec sleep 1000"]).ok();
    assert!(named.stderr.starts_with(&format!("{joined}name differs: none\n  next: ")), "{}", named.stderr);
}

#[test]
fn p10_many_at_once_with_one_key_are_one_task() {
    let home = super::home();
    let _ = home.daemon_pid();
    let calls: Vec<_> = (0..12)
        .map(|_| home.spawn(["run", "--key", "k", "-c", "echo ran >> runs; exec sleep 1000"]))
        .collect();
    let answers = calls.into_iter().map(|call| call.wait_with_output().unwrap());
    let ids: BTreeSet<_> = answers
        .map(|answer| {
            assert!(answer.status.success());
            String::from_utf8(answer.stdout).unwrap()
        })
        .collect();
    assert_eq!(ids.len(), 1, "{ids:?}");
    assert_eq!(home.told("runs"), "ran");
    assert_eq!(home.cli(["list", "--all", "--json"]).ok().json()["items"].as_array().unwrap().len(), 1);
    let folders = std::fs::read_dir(home.path().join("tasks")).unwrap().count();
    assert_eq!(folders, 1, "those that joined left no folder behind");
}

#[test]
fn a_duplicate_can_be_refused_and_the_refusal_names_the_live_one() {
    let home = super::home();
    let first = home.submit(&["--key", "k"], "sleep 1000");
    let refused = home.cli(["run", "--key", "k", "--on-duplicate", "refuse", "--", "true"]);
    assert_eq!(refused.code, 1);
    assert!(refused.stderr.contains("HM0011") && refused.stderr.contains(&first), "{}", refused.stderr);
    let needless = home.cli(["run", "--on-duplicate", "refuse", "--", "true"]);
    assert_eq!(needless.code, 2, "it means nothing without a key");
}

#[test]
fn p10_a_request_sent_again_with_its_idempotency_key_is_the_same_task_also_after_its_end() {
    let home = super::home();
    let _ = home.daemon_pid();
    let body = json!({ "shell": "echo ran >> runs; exit 3", "cwd": home.scratch() });
    let (status, task) = post(&home, "abc", &body);
    assert_eq!(status, 201);
    let id = task["id"].as_str().unwrap().to_owned();
    let (status, again) = post(&home, "abc", &body);
    assert_eq!((status, &again["id"]), (201, &task["id"]));
    let _ = home.ended(&id);
    let _ = home.kill_daemon();
    let _ = home.daemon_pid();
    let (status, again) = post(&home, "abc", &body);
    assert_eq!((status, &again["id"], &again["outcome"]["exit_code"]), (201, &task["id"], &json!(3)));
    let (status, other) =
        post(&home, "abc", &json!({ "shell": "echo other >> runs", "cwd": home.scratch() }));
    assert_eq!((status, other["code"].as_str()), (422, Some("HM0010")));
    let (status, new) = post(&home, "abd", &body);
    assert_eq!(status, 201);
    let _ = home.ended(new["id"].as_str().unwrap());
    assert_eq!(home.truth("runs"), "ran\nran\n");
    let (status, long) = post(&home, &"k".repeat(256), &body);
    assert_eq!((status, long["code"].as_str()), (422, Some("HM0003")));
}

#[test]
fn p10_a_request_sent_again_is_the_same_task_whatever_is_gone_since() {
    let home = super::home();
    let _ = home.daemon_pid();
    super::ask::fake(&home, "claude", "true");
    let bin = home.scratch().join("bin");
    let secret = home.scratch().join("secret");
    std::fs::write(&secret, "hunter22").unwrap();
    let path = format!("{}:/usr/bin:/bin", bin.display());
    let asked = json!({ "kind": "agent", "agent": "claude", "prompt": "why?", "env": { "PATH": path, "HOME": home.scratch() } });
    let reading = json!({ "shell": "true", "secrets": { "TOKEN": { "file": secret } } });
    let told = json!({ "shell": "true", "notify": { "on": "always", "targets": ["exec:true"] } });
    let bodies = [("a", asked), ("b", reading), ("c", told)];
    let first: Vec<_> = bodies.iter().map(|(key, body)| post(&home, key, body)).collect();
    for (status, task) in &first {
        assert_eq!(*status, 201, "{task}");
        let _ = home.ended(task["id"].as_str().unwrap());
    }
    std::fs::remove_dir_all(&bin).unwrap();
    std::fs::remove_file(&secret).unwrap();
    std::fs::write(home.path().join("config.toml"), "[notify]\nallow = [\"inbox\"]\n").unwrap();
    assert_eq!(home.post("/v1/config/reload", &json!({})).status, 200);
    for ((key, body), (_, task)) in bodies.iter().zip(&first) {
        let (status, again) = post(&home, key, body);
        assert_eq!((status, &again["id"]), (201, &task["id"]), "{again}");
        let (status, fresh) = post(&home, &format!("{key}2"), body);
        assert_eq!(status, 422, "{fresh}");
        let mut other = body.clone();
        other["name"] = "another".into();
        let (status, refused) = post(&home, key, &other);
        assert_eq!(status, 422, "{refused}");
    }
    let count = home.cli(["list", "--all", "--json"]).ok().json()["items"].as_array().unwrap().len();
    assert_eq!(count, bodies.len());
}
