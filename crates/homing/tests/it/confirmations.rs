//! A result is delivered once: its confirmation removes it, and without one it returns to the inbox.

use std::sync::Arc;
use std::time::Duration;

use homing_api::TakeRequest;
use homing_engine::{Caller, Engine, WaitMode};
use homing_model::Spec;
use homing_store::SqliteStore;
use homing_testkit::{Home, gate};
use serde_json::Value;

fn items(home: &Home, owner: &str) -> Vec<Value> {
    let answer = home.cli(["inbox", "--owner", owner, "--json"]).ok().json();
    answer["items"].as_array().cloned().unwrap_or_default()
}

/// How many entries an owner has, held or not; asked by nobody in particular.
fn open_entries(home: &Home, owner: &str) -> u64 {
    let owners = home.get("/v1/inbox").json();
    let found = owners["items"].as_array().expect("a list").iter().find(|one| one["owner"] == owner);
    found.map_or(0, |one| one["open"].as_u64().expect("a number"))
}

/// Runs it where nobody reads what it prints.
fn unread(home: &Home, arguments: &[&str]) {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let done = home.command().args(arguments).stdout(writer).status().expect("it runs");
    assert!(done.success(), "{arguments:?}: its code is the task's");
}

#[test]
fn p6_output_that_nothing_read_is_not_delivered() {
    let home = super::home();
    unread(&home, &["exec", "--", "echo", "hello"]);
    unread(&home, &["exec", "--json", "--", "true"]);
    unread(&home, &["run", "--follow", "-c", "echo hello"]);
    unread(&home, &["run", "--wait", "--", "true"]);
    let id = home.submit(&[], "true");
    unread(&home, &["wait", "--ack", &id]);
    unread(&home, &["wait", "--ack", "--json", &id]);
    assert_eq!(items(&home, "user").len(), 5);
}

#[test]
fn p5_an_end_that_was_not_printed_is_not_delivered() {
    let home = super::home();
    let owner = "claude:s1";
    let id = home.submit(&["--owner", owner], "true");
    let _ = home.ended(&id);
    let wait = |stdout: std::fs::File| {
        let mut command = home.command();
        command.args(["wait", &id]).env("HOMING_OWNER", owner).stdout(stdout);
        command.output().expect("it runs").status.code()
    };
    let full = std::fs::File::options().write(true).open("/dev/full").expect("a full device");
    assert_eq!(wait(full), Some(125));
    let _ = home.command().arg("list").env("HOMING_OWNER", owner).output().expect("it runs");
    assert_eq!(open_entries(&home, owner), 1, "the next call has heard nothing");
    let read = std::fs::File::options().write(true).open("/dev/null").expect("a device");
    assert_eq!(wait(read), Some(0));
    let _ = home.command().arg("list").env("HOMING_OWNER", owner).output().expect("it runs");
    assert_eq!(open_entries(&home, owner), 0, "told, and heard");
}

#[test]
fn p5_a_stop_that_was_not_printed_is_not_delivered() {
    let home = super::home();
    let owner = "claude:s1";
    let heard = |expected: u64, why: &str| {
        let _ = home.command().arg("list").env("HOMING_OWNER", owner).output().expect("it runs");
        assert_eq!(open_entries(&home, owner), expected, "{why}");
    };
    let running = || {
        let id = home.submit(&["--owner", owner], &gate("never"));
        let _ = home.until_status(&id, "running");
        id
    };
    let id = running();
    let full = std::fs::File::options().write(true).open("/dev/full").expect("a full device");
    let mut stop = home.command();
    let stopped = stop.args(["stop", &id]).env("HOMING_OWNER", owner).stdout(full).output().expect("it runs");
    assert_eq!(stopped.status.code(), Some(1));
    assert_eq!(home.get(&format!("/v1/tasks/{id}")).json()["status"], "stopped");
    heard(1, "it could not be printed");
    // As a client does that is killed before it prints.
    let (id, body) = (running(), br#"{"wait":true}"#);
    let answer =
        home.http("POST", &format!("/v1/tasks/{id}/stop?reserve=true"), &[("Homing-Owner", owner)], body);
    assert_eq!(answer.whole().json()["task"]["status"], "stopped");
    heard(2, "it was not printed");
    // Of one that has ended it is printed again.
    let mut stop = home.command();
    let stopped = stop.args(["stop", &id]).env("HOMING_OWNER", owner).output().expect("it runs");
    assert!(stopped.status.success());
    heard(1, "told, and heard");
}

#[test]
fn p6_a_repeated_wait_confirms_nothing() {
    let home = super::home();
    let owner = "claude:s1";
    let (long, short) =
        (home.submit(&["--owner", owner], &gate("never")), home.submit(&["--owner", owner], "true"));
    let _ = home.ended(&short);
    let call = |address: &str| home.http("GET", address, &[("Homing-Owner", owner)], b"").whole();
    assert_eq!(call(&format!("/v1/wait?ids={short}&confirm=call")).status, 200);
    assert_eq!(call(&format!("/v1/wait?ids={long}&confirm=call&timeout_ms=0&reserve=true")).status, 202);
    assert_eq!(open_entries(&home, owner), 1, "held, not gone");
    assert_eq!(call(&format!("/v1/wait?ids={long}&confirm=call&timeout_ms=0")).status, 202);
    assert_eq!(open_entries(&home, owner), 0);
}

#[test]
fn p6_following_a_task_delivers_its_end_alone() {
    let home = super::home();
    let _ = home.cli(["run", "--follow", "--watch", "hello", "-c", "echo hello"]).ok();
    assert_eq!(open_entries(&home, "user"), 2, "held, not gone");
    let left = items(&home, "user");
    assert_eq!(left.iter().map(|one| one["type"].clone()).collect::<Vec<_>>(), ["task.matched"]);
    assert_eq!(open_entries(&home, "user"), 1);
}

#[test]
fn p6_wait_ack_acknowledges_own_ends_alone() {
    let home = super::home();
    let theirs = home.submit(&["--owner", "ann"], "true");
    let mine = home.submit(&["--watch", "hello"], "echo hello");
    let waited = home.cli(["wait", "--ack", &theirs, &mine]).ok();
    let advice = format!("homing ack --owner ann {theirs}");
    assert!(waited.stderr.contains(&advice), "{}", waited.stderr);
    assert_eq!(items(&home, "ann")[0]["task"]["id"], theirs.as_str());
    let left = items(&home, "user");
    assert_eq!(left.iter().map(|one| one["type"].clone()).collect::<Vec<_>>(), ["task.matched"]);
}

#[test]
fn p6_a_stop_delivers_to_an_agent_and_not_to_a_person() {
    let home = super::home();
    for (owner, stopper, held) in
        [("claude:s1", "claude:s1", true), ("claude:s2", "claude:s3", false), ("ann", "ann", false)]
    {
        let id = home.submit(&["--owner", owner], &gate("never"));
        let _ = home.until_status(&id, "running");
        let stop = home.command().env("HOMING_OWNER", stopper).args(["stop", &id]).output().expect("it runs");
        assert!(stop.status.success());
        let seen = home.get(&format!("/v1/inbox/{owner}")).json();
        assert_eq!(seen["items"].as_array().map(Vec::len), Some(usize::from(!held)), "{owner} by {stopper}");
        assert_eq!(open_entries(&home, owner), 1, "held, not gone");
    }
    let next = home.command().env("HOMING_OWNER", "claude:s1").args(["list"]).output().expect("it runs");
    assert!(next.status.success());
    assert_eq!(open_entries(&home, "claude:s1"), 0);
}

#[test]
fn p6_a_delivery_is_confirmed_after_a_daemon_crash() {
    let home = super::home();
    let owners = ["claude:s1", "claude:s2", "claude:s3", "claude:s4"];
    for owner in owners {
        let id = home.submit(&["--owner", owner], "true");
        let wait = home.command().env("HOMING_OWNER", owner).args(["wait", &id]).output().expect("it runs");
        assert!(wait.status.success());
    }
    let daemon = home.kill_daemon();
    let _ = home.next_daemon(daemon);
    let _ = home.cli(["list"]).ok();
    assert!(owners.iter().all(|owner| open_entries(&home, owner) == 1), "held, not gone");
    let header = [("Homing-Owner", owners[0])];
    assert_eq!(home.http("GET", "/v1/status", &header, b"").whole().status, 200);
    // Who takes or acknowledges what is an owner's, or submits for it, speaks for it.
    let taken = home.post("/v1/inbox/claude:s2/take", &serde_json::json!({})).json();
    assert_eq!(taken["items"], Value::Array(Vec::new()));
    let _ = home.post("/v1/inbox/claude:s3/ack", &serde_json::json!({ "ids": [] }));
    let spec = serde_json::json!({ "shell": "true", "owner": owners[3], "notify": { "on": "never" } });
    assert!(home.post("/v1/tasks", &spec).json()["id"].is_string());
    for owner in owners {
        assert_eq!(open_entries(&home, owner), 0, "{owner}");
    }
}

#[tokio::test]
async fn waits_for_an_inbox_write_nothing() {
    let home = super::home();
    let store = Arc::new(SqliteStore::open(&home.scratch().join("ledger.db")).expect("a ledger"));
    let engine = Engine::builder(home.path()).helper(home.program().to_owned()).store(store.clone());
    let engine = engine.open().await.expect("an engine");
    let commits = async |takers: usize| {
        let mut waiting = tokio::task::JoinSet::new();
        for _ in 0..takers {
            let engine = engine.clone();
            let request = TakeRequest { wait_ms: Some(60_000), ..TakeRequest::default() };
            waiting.spawn(async move { engine.take("ann", request).await });
        }
        let before = store.commits();
        for _ in 0..3 {
            let spec = Spec { shell: Some("true".into()), ..Spec::default() };
            let id = engine.submit(spec, Caller::default(), None).await.expect("taken").task.id;
            let _ = engine.wait(&[id], WaitMode::All, None).await.expect("it ends");
        }
        // A look of ours comes after those of the takers.
        let _ = engine.inbox("bob", None, Duration::from_millis(50)).await.expect("readable");
        assert_eq!(waiting.len(), takers);
        assert!(waiting.try_join_next().is_none(), "they wait");
        waiting.abort_all();
        store.commits() - before
    };
    let (alone, watched) = (commits(0).await, commits(20).await);
    assert!(
        watched <= alone + 6,
        "{alone} commits for three tasks, {watched} with twenty takers of somebody else"
    );
}

#[test]
fn p6_an_answer_that_is_not_done_delivers_nothing() {
    let home = super::home();
    let ended = home.submit(&["--owner", "claude:1"], "true");
    let _ = home.ended(&ended);
    let runs = home.submit(&["--owner", "claude:1"], &gate("go"));
    let wait = |ids: &str| {
        let target = format!("/v1/wait?ids={ids}&timeout_ms=10&confirm=call");
        home.http("GET", &target, &[("homing-owner", "claude:1")], b"").whole().json()["done"].clone()
    };
    assert_eq!(wait(&format!("{ended},{runs}")), false);
    assert_eq!(items(&home, "claude:1").len(), 1, "the next call confirms nothing");
    assert_eq!(wait(&ended), true);
    assert_eq!(items(&home, "claude:1").len(), 0);
    home.open("go");
}
