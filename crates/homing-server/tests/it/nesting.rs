//! Every route as a caller inside a task meets it (P11).

use std::collections::BTreeMap;

use homing_server::openapi_json;
use homing_testkit::{copy_program, wait_for};
use serde_json::{Value, json};

use crate::served::{Served, helper};

/// What each operation answers when it is asked for something foreign: served, or the rule that refuses it. One that is new has to be put here.
const EXPECTED: &[(&str, &str)] = &[
    ("submit", "201"),
    ("list", "200"),
    ("events", "200"),
    ("status", "200"),
    ("healthy", "200"),
    ("openapi", "200"),
    ("metrics", "200"),
    ("listener", "200"),
    ("session", "200"),
    ("bind_session", "HM0053"),
    ("show", "HM0053"),
    ("forget", "HM0053"),
    ("output", "HM0053"),
    ("output_file", "HM0053"),
    ("output_index", "HM0053"),
    ("follow", "HM0053"),
    ("wait_one", "HM0053"),
    ("wait", "HM0053"),
    ("stop", "HM0053"),
    ("pause", "HM0053"),
    ("resume", "HM0053"),
    ("signal", "HM0053"),
    ("input", "HM0053"),
    ("attach", "HM0053"),
    ("resize", "HM0053"),
    ("rerun", "HM0053"),
    ("progress", "HM0053"),
    ("complete", "HM0053"),
    ("heartbeat", "HM0053"),
    ("inbox_owners", "HM0053"),
    ("inbox", "HM0053"),
    ("take", "HM0053"),
    ("ack", "HM0053"),
    ("show_session", "HM0053"),
    ("unbind_session", "HM0053"),
    ("deliveries", "HM0053"),
    ("redeliver", "HM0054"),
    ("gc", "HM0054"),
    ("config_reload", "HM0054"),
    ("web", "HM0054"),
    ("daemon_stop", "HM0054"),
    ("listener_on", "HM0054"),
    ("listener_off", "HM0054"),
    ("token_rotate", "HM0054"),
];

/// Asks from inside a task that is submitted with these further fields: a line for each question, and one for each answer.
fn inside(served: &Served, more: &Value, questions: &str) -> String {
    inside_as(served, &[], more, questions)
}

/// The same, by a program that runs what its arguments end with.
fn inside_as(served: &Served, by: &[&str], more: &Value, questions: &str) -> String {
    let folder = served.home().parent().unwrap();
    let (asked, answered) = (folder.join("asked"), folder.join("answered"));
    std::fs::write(&asked, questions).unwrap();
    let argv = [helper(), "ask".into(), served.socket(), asked, answered.clone()];
    let argv: Vec<_> = by.iter().copied().chain(argv.iter().map(|word| word.to_str().unwrap())).collect();
    let mut spec = json!({ "argv": argv });
    spec.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap_or_default());
    assert_eq!(served.post("/v1/tasks", &spec.to_string()).status, 201);
    wait_for("the answers", || std::fs::read_to_string(&answered).ok())
}

#[test]
fn p11_every_route_is_judged_for_callers_inside_a_task() {
    let served = Served::start();
    let foreign = served.running("exec sleep 1000", &json!({}));
    let external =
        served.post("/v1/tasks", r#"{"kind":"external"}"#).json()["id"].as_str().unwrap().to_owned();
    let document: Value = serde_json::from_str(openapi_json()).unwrap();
    let mut questions = BTreeMap::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let name = operation["operationId"].as_str().unwrap();
            let (task, query, body) = match name {
                "submit" => ("", "", r#"{"argv":["true"]}"#.to_owned()),
                "complete" | "heartbeat" => (external.as_str(), "", String::new()),
                "signal" => (foreign.as_str(), "", r#"{"signal":"TERM"}"#.to_owned()),
                "input" | "progress" => (foreign.as_str(), "", r#"{"text":"x"}"#.to_owned()),
                "resize" => (foreign.as_str(), "", r#"{"cols":80,"rows":24}"#.to_owned()),
                "bind_session" => ("", "", r#"{"agent":"claude","session":"s"}"#.to_owned()),
                "ack" => (foreign.as_str(), "", json!({ "ids": [foreign] }).to_string()),
                "wait" => (foreign.as_str(), "?ids=", String::new()),
                "events" => ("", "?follow=false", String::new()),
                _ => (foreign.as_str(), "", String::new()),
            };
            let query = if name == "wait" { format!("{query}{foreign}") } else { query.to_owned() };
            let target = path.replace("{ref}", task).replace("{owner}", "user").replace("{id}", "dead");
            questions.insert(name, format!("{}\t{target}{query}\t{body}\n", method.to_uppercase()));
        }
    }
    let expected: BTreeMap<_, _> = EXPECTED.iter().copied().collect();
    assert_eq!(
        questions.keys().collect::<Vec<_>>(),
        expected.keys().collect::<Vec<_>>(),
        "say for every operation what a caller inside a task gets"
    );
    let asked = questions.values().map(String::as_str).collect::<String>();
    let answers = inside(&served, &json!({}), &asked);
    for ((name, answer), expected) in questions.keys().zip(answers.lines()).zip(expected.values()) {
        let status = answer.split(' ').nth(1).unwrap();
        let fits = if expected.starts_with("HM") {
            status == "403" && answer.contains(expected)
        } else {
            status == *expected
        };
        assert!(fits, "{name}: expected {expected}, got {answer}");
    }
    assert_eq!(answers.lines().count(), expected.len());
    assert_eq!(served.get(&format!("/v1/tasks/{foreign}")).json()["status"], "running");
    let within = answers.lines().zip(questions.keys()).find(|(_, name)| **name == "list").unwrap().0;
    assert!(!within.contains(&foreign) && !within.contains(&external), "{within}");
}

#[test]
fn p11_the_status_names_no_failure_of_others_inside_a_task() {
    let served = Served::start();
    let failed = served.run("exit 3", &json!({}));
    assert_eq!(served.get(&format!("/v1/tasks/{failed}/wait?timeout_ms=30000")).status, 200);
    assert!(served.get("/v1/status").json()["failures"].to_string().contains(&failed));
    let inside = inside(&served, &json!({}), "GET\t/v1/status\t\n");
    assert!(inside.contains(" 200 ") && !inside.contains(&failed), "{inside}");
}

#[test]
fn p11_what_is_acknowledged_inside_a_task_is_what_was_judged() {
    let served = Served::start();
    let foreign = served.run("true", &json!({ "owner": "claude:a" }));
    assert_eq!(served.get(&format!("/v1/tasks/{foreign}/wait?timeout_ms=30000")).status, 200);
    // Of its own tasks the last is one that it started; of the other owner's it is not.
    let questions =
        "POST\t/v1/tasks\t{\"argv\":[\"true\"]}\nPOST\t/v1/inbox/claude:a/ack\t{\"ids\":[\"@last\"]}\n";
    let answers = inside(&served, &json!({}), questions);
    assert!(answers.lines().next().unwrap().contains(" 201 "), "{answers}");
    let left = served.get("/v1/inbox/claude:a").json();
    assert_eq!(left["items"].as_array().unwrap().len(), 1, "{answers}");
}

#[test]
fn p11_an_agent_inside_a_task_has_its_own_session_woken_and_says_of_no_way_there() {
    let served = Served::start();
    let wake = |owner: &str, session: Value, target: &str| {
        let notify = json!({ "targets": [target] });
        let spec = json!({ "argv": ["true"], "owner": owner, "session": session, "notify": notify });
        format!("POST\t/v1/tasks\t{spec}\n")
    };
    let outer = json!({ "agent": "claude", "id": "outer" });
    let url = "http://127.0.0.1:9";
    let opencode = json!({ "agent": "opencode", "id": "own", "url": url });
    let address = format!("opencode:{url}#own");
    let pane =
        json!({ "server": "/tmp/tmux", "id": "%3", "program": { "pid": 2, "start": 1, "name": "vi" } });
    let typed = json!({ "argv": ["true"], "owner": "tmux:%3", "pane": pane, "notify": { "targets": ["wake:tmux:%3"] } });
    let refused = [
        wake("claude:outer", Value::Null, "wake"),
        wake("claude:outer", Value::Null, "wake:claude:outer"),
        wake("claude:own", outer, "wake"),
        wake(&address, Value::Null, &format!("wake:{address}")),
        format!("POST\t/v1/tasks\t{typed}\n"),
    ];
    let own = wake("claude:own", Value::Null, "wake");
    let questions = format!(
        "{own}POST\t/v1/sessions\t{}\n{}{own}{}",
        json!({ "agent": "claude", "session": "own" }),
        refused.concat(),
        wake("opencode:own", opencode, "wake")
    );
    let agent = served.home().parent().unwrap().join("claude");
    copy_program("/bin/sh".as_ref(), &agent);
    let by = [agent.to_str().unwrap(), "-c", "\"$@\"; exit $?", "claude"];
    let spec = json!({ "agent_session": true, "owner": "claude:outer" });
    let answers = inside_as(&served, &by, &spec, &questions);
    let mut answers: Vec<_> = answers.lines().collect();
    assert!(answers.remove(0).contains("HM0038"), "no hook has named it");
    assert!(answers.remove(0).contains(" 200 "), "its hook names it");
    for (answer, question) in answers.iter().zip(&refused) {
        assert!(answer.contains("HM0038"), "{question}{answer}");
    }
    // Nothing is delivered here, so all that can be seen is how far it came.
    let [own, unreachable] = answers[refused.len()..] else { panic!("{answers:?}") };
    assert!(own.contains("nothing here delivers to `wake:claude:own`"), "{own}");
    assert!(!unreachable.contains("nothing here delivers") && !unreachable.contains(url), "{unreachable}");
}

#[test]
fn p11_whoever_calls_itself_the_shim_of_another_task_is_still_in_its_own() {
    let served = Served::start();
    let trusted = served.run("exec sleep 1000", &json!({ "allow_nested_notify": true }));
    let held = served.home().join("tasks").join(&trusted);
    let forged = served.home().parent().unwrap().join("homing-shim");
    copy_program("/bin/sh".as_ref(), &forged);
    let by = [forged.to_str().unwrap(), "-c", "exec 9< \"$0\"; \"$@\"; exit $?", held.to_str().unwrap()];
    let answer = inside_as(&served, &by, &json!({}), "POST\t/v1/gc\t\n");
    assert!(answer.contains("HM0054"), "{answer}");
}
