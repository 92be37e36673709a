//! `rerun`: the same again, as a new task, with what is kept and what its caller gives.

use homing_testkit::Home;
use serde_json::{Value, json};

fn post(home: &Home, id: &str, body: &Value) -> (u16, Value) {
    let headers = [("content-type", "application/json")];
    let reply =
        home.http("POST", &format!("/v1/tasks/{id}/rerun"), &headers, body.to_string().as_bytes()).whole();
    (reply.status, reply.json())
}

#[test]
fn a_task_runs_again_as_it_was_with_the_environment_of_whoever_asks() {
    let home = super::home();
    let folder = home.scratch().join("below");
    std::fs::create_dir(&folder).unwrap();
    let options = [
        "--name",
        "n",
        "--label",
        "a=b",
        "--timeout",
        "1h",
        "--notify-on",
        "failure",
        "--cwd",
        "below",
        "--env",
        "WHO=first",
    ];
    let first = home.submit(&options, "echo $WHO in $PWD; pwd; exit 5");
    let _ = home.ended(&first);
    let second = home.cli(["rerun", &first, "--env", "WHO=second", "--owner", "another"]).ok();
    let id = second.text();
    assert_ne!(id, first);
    let (one, two) = (home.task(&first), home.ended(&id));
    for field in ["command", "cwd", "name", "labels", "timeout_ms", "notify", "kind"] {
        assert_eq!(one[field], two[field], "{field}");
    }
    assert_eq!(
        (&two["owner"], &two["status"], &two["outcome"]["exit_code"]),
        (&json!("another"), &json!("failed"), &json!(5))
    );
    let folder = folder.canonicalize().unwrap().display().to_string();
    assert_eq!(String::from_utf8(home.output(&id)).unwrap(), format!("second in {folder}\n{folder}\n"));
    let inbox = home.cli(["inbox", "--owner", "another", "--json"]).ok().json();
    assert_eq!(inbox["items"][0]["task"]["id"], json!(id), "its end is told to whoever asked");
}

#[test]
fn what_env_set_is_set_again_and_a_secret_of_it_is_asked_for() {
    let home = super::home();
    let first = home.submit(&["--env", "TARGET=staging", "--env", "COUNT=1"], "echo $TARGET $COUNT");
    let _ = home.ended(&first);
    let second = home.cli(["rerun", &first, "--env", "COUNT=2"]).ok().text();
    let third = home.cli(["rerun", &second]).ok().text();
    for (id, printed) in [(&first, "staging 1\n"), (&second, "staging 2\n"), (&third, "staging 2\n")] {
        let _ = home.ended(id);
        assert_eq!(String::from_utf8(home.output(id)).unwrap(), printed);
    }
    let secret = home.submit(&["--env", "API_TOKEN=hunter22", "--env", "A=b"], "echo $A");
    let _ = home.ended(&secret);
    let refused = home.cli(["rerun", &secret]);
    assert!(
        refused.code == 1 && refused.stderr.contains("HM0330") && refused.stderr.contains("API_TOKEN"),
        "{refused:?}"
    );
    let again = home.cli(["rerun", &secret, "--env", "API_TOKEN=hunter33"]).ok().text();
    assert_eq!(home.ended(&again)["status"], "succeeded");
    assert_eq!(home.output(&again), b"b\n");
}

#[test]
fn a_live_task_runs_again_beside_itself_and_several_at_once_are_several() {
    let home = super::home();
    let live = home.submit(&[], "echo ran >> runs; exec sleep 1000");
    let _ = home.until_status(&live, "running");
    let again = home.cli(["rerun", &live, &live, "--json"]).ok().json();
    let ids: Vec<_> =
        again["items"].as_array().unwrap().iter().map(|task| task["id"].as_str().unwrap()).collect();
    assert!(ids.len() == 2 && ids[0] != ids[1] && !ids.contains(&live.as_str()), "{again}");
    for id in &ids {
        let _ = home.until_status(id, "running");
    }
    homing_testkit::wait_for("three runs", || (home.truth("runs") == "ran\nran\nran\n").then_some(()));
    let keyed = home.submit(&["--key", "one"], "exec sleep 1000");
    let joined = home.cli(["rerun", &keyed]).ok();
    assert_eq!(joined.text(), keyed, "only one at a time");
    assert!(joined.stderr.contains("joined"), "{}", joined.stderr);
}

#[test]
fn secrets_have_to_be_given_again_and_nothing_else_gets_into_the_command_line() {
    let home = super::home();
    let first = home.submit(&["--secret", "TOKEN=hunter22"], "echo $TOKEN hunter22 | tr a-z A-Z");
    let _ = home.ended(&first);
    let refused = home.cli(["rerun", &first]);
    assert_eq!(refused.code, 1);
    assert!(
        refused.stderr.contains("HM0330") && refused.stderr.contains("--secret NAME=VALUE"),
        "{}",
        refused.stderr
    );
    let again = home.cli(["rerun", &first, "--secret", "TOKEN=another1"]).ok().text();
    let task = home.ended(&again);
    assert_eq!(home.output(&again), b"ANOTHER1 ANOTHER1\n");
    assert!(!task.to_string().contains("another1"), "{task}");
    let unnamed = home.submit(&[], "echo --password=correcthorse | wc -c");
    let _ = home.ended(&unnamed);
    let refused = home.cli(["rerun", &unnamed]);
    assert!(refused.code == 1 && refused.stderr.contains("which is not kept"), "{}", refused.stderr);
}

#[test]
fn what_is_not_there_any_more_or_never_was_ours_is_refused() {
    let home = super::home();
    let gone = home.submit(&[], "true");
    let _ = home.ended(&gone);
    let _ = home.cli(["forget", &gone]).ok();
    let refused = home.cli(["rerun", &gone]);
    assert!(refused.code == 1 && refused.stderr.contains("only its outcome is kept"), "{}", refused.stderr);
    let foreign = home.cli(["track", "--name", "review"]).ok().text();
    let refused = home.cli(["rerun", &foreign]);
    assert!(refused.code == 1 && refused.stderr.contains("somebody else ran it"), "{}", refused.stderr);
    let alive = home.submit(&[], "true");
    let both = home.cli(["rerun", "t-2222222222", &alive]);
    assert_eq!(both.code, 4);
    assert_eq!(both.text().lines().count(), 1, "one that cannot be does not keep the other");
}

#[test]
fn over_http_a_key_makes_it_one_and_a_task_reaches_only_its_own() {
    let home = super::home();
    let first = home.submit(&[], "echo $A; true");
    let _ = home.ended(&first);
    let (status, task) = post(&home, &first, &json!({ "env": { "A": "x" }, "owner": "me" }));
    assert_eq!((status, &task["owner"]), (201, &json!("me")));
    let id = task["id"].as_str().unwrap().to_owned();
    let _ = home.ended(&id);
    assert_eq!(home.output(&id), b"x\n");
    let headers = [("content-type", "application/json"), ("idempotency-key", "k")];
    let twice: Vec<_> = (0..2)
        .map(|_| {
            let reply = home.http("POST", &format!("/v1/tasks/{first}/rerun"), &headers, b"{}").whole();
            (reply.status, reply.json()["id"].clone())
        })
        .collect();
    assert_eq!((twice[0].0, twice[1].0), (201, 201));
    assert_eq!(twice[0].1, twice[1].1);
    let (status, problem) = post(&home, &first, &json!({ "argv": ["evil"] }));
    assert_eq!((status, problem["code"].as_str()), (422, Some("HM0003")), "{problem}");
    let program = home.program().display().to_string();
    let inside = home.submit(
        &[],
        &format!("'{program}' rerun {first} 2>&1; '{program}' rerun $('{program}' run -- true)"),
    );
    let _ = home.ended(&inside);
    let said = String::from_utf8(home.output(&inside)).unwrap();
    assert!(said.contains("HM0053") && said.lines().last().unwrap().starts_with("t-"), "{said}");
}

#[test]
fn p10_a_rerun_that_is_repeated_is_the_same_task_though_last_is_another_by_now() {
    let home = super::home();
    let secret = home.scratch().join("secret");
    std::fs::write(&secret, "hunter22").unwrap();
    let from = format!("TOKEN=@{}", secret.display());
    let first = home.submit(&["--secret", &from], "echo \"$TOKEN\"");
    let _ = home.ended(&first);
    let rerun = |which: &str, key: &str| {
        let headers = [("content-type", "application/json"), ("idempotency-key", key)];
        let body = b"{\"owner\":\"user\"}";
        let reply = home.http("POST", &format!("/v1/tasks/{which}/rerun"), &headers, body).whole();
        (reply.status, reply.json())
    };
    let (status, task) = rerun("@last", "a");
    assert_eq!(status, 201, "{task}");
    assert_eq!(home.get("/v1/tasks/@last").json()["id"], task["id"]);
    let (status, named) = rerun(&first, "b");
    assert_eq!(status, 201, "{named}");
    for task in [&task, &named] {
        let _ = home.ended(task["id"].as_str().unwrap());
    }
    std::fs::remove_file(&secret).unwrap();
    let _ = home.cli(["forget", &first]).ok();
    for (which, key, made) in [("@last", "a", &task), (&first, "b", &named)] {
        let (status, again) = rerun(which, key);
        assert_eq!((status, &again["id"]), (201, &made["id"]), "{again}");
        let (status, fresh) = rerun(which, &format!("{key}2"));
        assert!(matches!(status, 409 | 422), "{fresh}");
    }
    let (status, other) = rerun(&first, "a");
    assert!(matches!(status, 409 | 422), "another word is another request: {other}");
}
