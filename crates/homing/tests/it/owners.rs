//! Whose a result is: fixed when the task is submitted, and nobody else's to take.

use homing_testkit::{Home, gate, wait_for};
use serde_json::{Value, json};

fn items(home: &Home, owner: &str) -> Vec<Value> {
    let answer = home.get(&format!("/v1/inbox/{owner}")).json();
    answer["items"].as_array().cloned().unwrap_or_default()
}

fn tasks(home: &Home, owner: &str) -> Vec<String> {
    let of = |item: &Value| item["task"]["id"].as_str().map(str::to_owned);
    items(home, owner).iter().filter_map(of).collect()
}

#[test]
fn p6_two_readers_of_one_owner_each_find_their_own_result() {
    let home = super::home();
    let ids =
        ["one", "two"].map(|word| home.submit(&["--owner", "ann"], &format!("{}; echo {word}", gate("go"))));
    for id in &ids {
        assert_eq!(home.until_status(id, "running")["owner"], "ann");
    }
    let readers = ids.clone().map(|id| home.spawn(["wait", &id, "--timeout", "60s", "--json"]));
    assert_eq!(tasks(&home, "ann"), Vec::<String>::new(), "they looked, and nothing had ended");
    home.open("go");
    for (reader, id) in readers.into_iter().zip(&ids) {
        let output = reader.wait_with_output().expect("the reader ends");
        assert!(String::from_utf8_lossy(&output.stdout).contains(id.as_str()));
    }
    // Each takes its own, by acknowledging it; the other's is still there, with its answer.
    let told = wait_for("both entries", || Some(items(&home, "ann")).filter(|items| items.len() == 2));
    let _ = home.cli(["ack", "--owner", "ann", &ids[0]]).ok();
    assert_eq!(tasks(&home, "ann"), [ids[1].clone()]);
    let second = told.iter().find(|item| item["task"]["id"] == *ids[1]).expect("it was there before");
    assert_eq!(items(&home, "ann")[0], *second);
}

#[test]
fn p5_a_route_is_that_of_the_submit_whatever_the_environment_says_later() {
    let home = super::home();
    let mut submit = home.command();
    submit.env("HOMING_OWNER", "ann").args(["run", "-c", &gate("go")]);
    let id = String::from_utf8(submit.output().expect("it runs").stdout).expect("an id").trim().to_owned();
    let _ = home.until_status(&id, "running");
    home.stop_daemon();
    let mut start = home.command();
    start.env("HOMING_OWNER", "bob").env("CLAUDE_CODE_SESSION_ID", "s9").args(["daemon", "start"]);
    assert!(start.status().expect("it runs").success());
    home.open("go");
    assert_eq!(home.ended(&id)["owner"], "ann");
    assert_eq!(tasks(&home, "ann"), [id]);
    let owners = home.get("/v1/inbox").json();
    assert_eq!(owners["items"].as_array().map(Vec::len), Some(1), "{owners}");
}

#[test]
fn p6_an_acknowledgement_in_another_owners_name_changes_nothing() {
    let home = super::home();
    let id = home.submit(&["--owner", "ann"], "true");
    let _ = home.ended(&id);
    let notice = items(&home, "ann")[0]["id"].clone();
    for body in [json!({ "ids": [notice] }), json!({ "ids": [id] })] {
        let answer = home.post("/v1/inbox/bob/ack", &body);
        assert!(answer.status != 200 || answer.json()["acknowledged"] == json!([]), "{}", answer.json());
    }
    let taken = home.post("/v1/inbox/bob/take", &json!({})).json();
    assert_eq!(taken["items"], json!([]));
    assert_eq!(tasks(&home, "ann"), [id]);
}

#[test]
fn p5_what_a_task_submits_outlives_it_and_is_told_to_its_owner() {
    let home = super::home();
    let line = format!("\"$HOMING\" run -c '{}; exit 5' > child", gate("go"));
    let mut submit = home.command();
    submit.env("HOMING", home.program()).args(["run", "--owner", "ann", "-c", &line]);
    let parent =
        String::from_utf8(submit.output().expect("it runs").stdout).expect("an id").trim().to_owned();
    assert_eq!(home.ended(&parent)["status"], "succeeded");
    let child = home.told("child");
    home.kill(home.daemon_pid());
    home.open("go");
    let task = home.ended(&child);
    assert_eq!((&task["parent"], &task["owner"]), (&parent.as_str().into(), &"ann".into()));
    assert_eq!(task["outcome"]["exit_code"], 5);
    assert_eq!(tasks(&home, "ann"), [parent, child]);
}

#[test]
fn p5_a_task_that_was_lost_is_told_with_the_reason() {
    let home = super::home();
    let id = home.submit(&["--owner", "ann", "--notify-on", "failure"], "sleep 1000");
    let _ = home.until_status(&id, "running");
    home.kill(home.shim_pid(&id));
    assert_eq!(home.ended(&id)["status"], "lost");
    let told = &items(&home, "ann")[0];
    assert_eq!((&told["task"]["id"], &told["status"]), (&id.as_str().into(), &"lost".into()));
    assert!(told["outcome"]["reason"].is_string() && told["outcome"]["exit_code"].is_null(), "{told}");
}

#[test]
fn p6_an_agent_inside_another_speaks_for_its_own_session() {
    let home = super::home();
    let (claude, codex) = ("CLAUDE_CODE_SESSION_ID", "CODEX_THREAD_ID");
    for (outer, inner, owner) in [(claude, codex, "codex:inner"), (codex, claude, "claude:inner")] {
        let mut agent = std::process::Command::new("sh");
        let line = format!("{inner}=inner \"$0\" run -- true; :");
        agent.args(["-c", &line]).arg(home.program()).env("HOMING_HOME", home.path()).env(outer, "outer");
        let id = Home::finish(&mut agent).ok().text();
        assert_eq!(home.task(id.trim())["owner"], owner);
    }
}

#[test]
fn whoever_has_no_last_task_is_told_whose_was_looked_for() {
    let home = super::home();
    let _ = home.ended(&home.submit(&["--owner", "ann"], "true"));
    for (command, owner) in [("show", "user"), ("output", "bob")] {
        let mut asked = home.command();
        if owner != "user" {
            asked.env("HOMING_OWNER", owner);
        }
        let refused = Home::finish(asked.args([command, "@last"]));
        assert_eq!(refused.code, 4, "{refused:?}");
        let said =
            format!("`@last`: it is the last one of its owner that is kept, and `{owner}` has none (HM0001)");
        assert!(refused.stderr.contains(&said), "{refused:?}");
        assert!(refused.stderr.contains("`homing list --all` shows the tasks of all owners"), "{refused:?}");
    }
    let mut asked = home.command();
    let shown = Home::finish(asked.env("HOMING_OWNER", "ann").args(["show", "@last"]));
    assert_eq!(shown.code, 0, "{shown:?}");
}
