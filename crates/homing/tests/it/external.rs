//! What somebody else runs: heard of, completed once, lost when nobody is heard, and nobody else's business.

use homing_store::store::{Queue, Upkeep};
use std::time::{Duration, Instant};

use homing_model::queue::StartPolicy;
use homing_model::{Kind, Notify, OnDuplicate, Spec, TaskId, Timestamp};
use homing_store::store::Submit;
use homing_store::{NewTask, SqliteStore, Tracking};
use homing_testkit::{Home, Receiver, Script, drift, freeze, thaw, wait_for};
use serde_json::{Value, json};

fn track(home: &Home, options: &[&str]) -> String {
    home.cli([&["track"], options].concat()).ok().text()
}

fn complete(home: &Home, id: &str, owner: &str, body: &Value) -> (u16, String) {
    let headers = [("content-type", "application/json"), ("homing-owner", owner)];
    let target = format!("/v1/tasks/{id}/complete");
    let reply = home.http("POST", &target, &headers, body.to_string().as_bytes()).whole();
    (reply.status, String::from_utf8_lossy(&reply.body).into_owned())
}

#[test]
fn an_inbox_that_is_cut_by_size_says_that_there_is_more() {
    let home = super::home();
    let answer = json!({ "answer": "a".repeat(250_000) });
    for _ in 0..20 {
        assert_eq!(complete(&home, &track(&home, &[]), "user", &answer).0, 200);
    }
    let look = |arguments: &[&str]| home.cli([&["inbox"], arguments].concat()).ok();
    let all = look(&["-n", "500", "--json"]);
    let shown = all.json()["items"].as_array().map_or(0, Vec::len);
    assert!((10..20).contains(&shown) && all.json()["more"] == true, "{shown}");
    assert!(
        all.stderr.contains(&format!("only the oldest {shown} are shown, and there are more")),
        "{all:?}"
    );
    let few = look(&["-n", "5", "--json"]);
    assert!(
        few.json()["more"] == true && few.stderr.contains("only the oldest 5 are shown; "),
        "{}",
        few.stderr
    );
    let taken = look(&["-n", "500", "--json", "--ack"]);
    assert!(taken.json()["more"] == true && taken.stderr.contains("there are more"), "{}", taken.stderr);
    let rest = look(&["-n", "500", "--json"]);
    assert!(rest.json()["more"] == false && rest.stderr.is_empty(), "{}", rest.stderr);
}

fn inbox(home: &Home, owner: &str) -> Vec<Value> {
    let answer = home.cli(["inbox", "--owner", owner, "--json"]).ok().json();
    answer["items"].as_array().cloned().unwrap_or_default()
}

/// Puts a task into the ledger of a home that nobody serves, as if an earlier daemon had accepted it then.
pub(super) fn plant(home: &Home, n: u64, tracking: Tracking, boot_id: String, then: Timestamp) -> String {
    let id = TaskId::from_entropy(n);
    let spec = Spec { kind: Kind::External, notify: Some(Notify::usual()), ..Spec::default() };
    let task = NewTask {
        id: id.clone(),
        kind: Kind::External,
        tracking: Some(tracking),
        agent: None,
        spec,
        owner: "user".into(),
        command: "external task".into(),
        env_names: Vec::new(),
        volatile_secrets: Vec::new(),
        masks: homing_model::Masks::default(),
        parent: None,
        depth: 0,
        network: false,
        node: "here".into(),
        boot_id,
    };
    let submit = Submit {
        task,
        on_duplicate: OnDuplicate::Join,
        children: u32::MAX,
        idempotency: None,
        policy: StartPolicy::default(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let store = SqliteStore::open(&home.path().join("homing.db")).expect("the ledger opens");
        store.submit(submit, then).await.expect("it is accepted");
        store.close().await.expect("it closes");
    });
    id.to_string()
}

#[test]
fn p5_a_completion_after_a_poll_reaches_the_owner() {
    let home = super::home();
    let id = track(&home, &["--owner", "ann", "--name", "review", "--label", "k=v"]);
    let task = home.task(&id);
    assert_eq!((&task["kind"], &task["status"]), (&"external".into(), &"running".into()));
    assert_eq!((&task["pid"], &task["output"]["path"]), (&Value::Null, &Value::Null));
    assert_eq!((&task["answer"], &task["labels"]["k"]), (&Value::Null, &"v".into()));
    assert!(!home.path().join("tasks").join(&id).exists(), "it needs no folder");
    for _ in 0..3 {
        assert!(inbox(&home, "ann").is_empty(), "a poll before the end finds nothing and breaks nothing");
    }
    let done = home.cli(["complete", "review", "--owner", "ann", "--answer", "- two\nfindings"]).ok();
    assert_eq!(done.text(), format!("{id} succeeded"));
    let task = home.task(&id);
    assert_eq!((&task["answer"], &task["answer_state"]), (&"- two\nfindings".into(), &"ok".into()));
    assert_eq!((&task["status"], &task["outcome"]["exit_code"]), (&"succeeded".into(), &Value::Null));
    let notices = inbox(&home, "ann");
    assert_eq!((&notices[0]["task"]["id"], &notices[0]["answer"]), (&id.as_str().into(), &task["answer"]));
    assert_eq!(home.cli(["wait", &id]).code, 0);
    let events = home.cli(["events"]).ok().text();
    let types = ["task.queued", "task.started", "task.completed"];
    let places = types.map(|word| events.find(word).expect("it is in the log"));
    assert!(places.is_sorted(), "{events}");
    let _ = home.cli(["forget", &id]).ok();
    let gone = home.task(&id);
    assert_eq!((&gone["forgotten"], &gone["status"]), (&true.into(), &"succeeded".into()));
}

#[test]
fn p6_two_tasks_of_one_owner_each_give_their_own_answer() {
    let home = super::home();
    let (first, second, third) = (track(&home, &[]), track(&home, &[]), track(&home, &[]));
    let _ = home.cli(["complete", &second, "--answer", "two"]).ok();
    let _ = home.cli(["complete", &first, "--answer", "one"]).ok();
    for (id, answer) in [(&first, "one"), (&second, "two"), (&first, "one")] {
        let waited = home.get(&format!("/v1/tasks/{id}/wait")).json();
        assert_eq!(waited["answer"], answer);
    }
    let answers: Vec<_> = inbox(&home, "user").iter().map(|notice| notice["answer"].clone()).collect();
    assert_eq!(answers, ["two", "one"]);
    assert_eq!(home.task(&third)["status"], "running");
    let _ = home.cli(["ack", &first]).ok();
    assert_eq!(inbox(&home, "user").len(), 1, "taking one leaves the other");
}

#[test]
fn p1_the_first_completion_wins_and_a_later_one_says_so() {
    let home = super::home();
    let id = track(&home, &[]);
    let _ = home.cli(["complete", &id, "--failed", "--answer", "no disk"]).ok();
    let task = home.task(&id);
    assert_eq!((&task["status"], &task["outcome"]["reason"]), (&"failed".into(), &"no disk".into()));
    assert_eq!(task["answer"], "(background task failed: no disk)");
    assert_eq!((&task["answer_state"], &task["outcome"]["exit_code"]), (&"failed".into(), &Value::Null));
    let late = home.cli(["complete", &id, "--answer", "all is well"]).ok();
    assert!(late.stderr.contains("changed nothing"), "{}", late.stderr);
    assert_eq!(late.text(), format!("{id} had already ended: failed: no disk"));
    let (status, body) = complete(&home, &id, "user", &json!({}));
    let body: Value = serde_json::from_str(&body).expect("JSON");
    assert_eq!((status, &body["completed"], &body["task"]["status"]), (200, &false.into(), &"failed".into()));
    assert_eq!(home.task(&id), task);
    assert_eq!(inbox(&home, "user").len(), 1);
}

#[test]
fn p1_of_fifty_completions_at_once_one_counts() {
    let home = super::home();
    let id = track(&home, &[]);
    let answers: Vec<(usize, Value)> = std::thread::scope(|scope| {
        let rivals: Vec<_> = (0..50)
            .map(|n| {
                let (home, id) = (&home, &id);
                scope.spawn(move || {
                    (n, complete(home, id, "user", &json!({ "answer": format!("answer {n}") })))
                })
            })
            .collect();
        let answers = rivals.into_iter().map(|rival| rival.join().expect("it answers"));
        answers.map(|(n, (_, body))| (n, serde_json::from_str(&body).expect("JSON"))).collect()
    });
    let won: Vec<_> = answers.iter().filter(|(_, answer)| answer["completed"] == true).collect();
    let [(winner, _)] = won.as_slice() else { panic!("{} of them won", won.len()) };
    let answer = Value::from(format!("answer {winner}"));
    assert!(answers.iter().all(|(_, told)| told["task"]["answer"] == answer));
    let notices = inbox(&home, "user");
    assert_eq!((notices.len(), &notices[0]["answer"]), (1, &answer));
}

#[test]
fn p11_another_owners_task_looks_like_one_that_is_not_there() {
    let home = super::home();
    let id = track(&home, &["--owner", "ann", "--name", "secret"]);
    let command = home.submit(&["--owner", "ann", "--name", "mine"], "exec sleep 1000");
    let unknown = "t-2222222222";
    for what in ["complete", "heartbeat"] {
        let ask = |name: &str| {
            let headers = [("homing-owner", "bob")];
            let reply = home.http("POST", &format!("/v1/tasks/{name}/{what}"), &headers, b"").whole();
            (reply.status, String::from_utf8_lossy(&reply.body).replace(name, "NAME"))
        };
        let nothing = ask(unknown);
        assert_eq!(nothing.0, 404);
        for name in [id.as_str(), &id[..6], "secret", &command, "mine", "@last"] {
            assert_eq!(ask(name), nothing, "{what} {name}");
        }
        let typed = |name: &str| {
            let said = home.cli([what, name, "--owner", "bob"]);
            (said.code, said.stdout, said.stderr.replace(name, "NAME"))
        };
        assert_eq!(typed(&id), typed(unknown));
        assert_eq!(typed(&command).0, 4);
        let own = home.cli([what, &command, "--owner", "ann"]);
        assert_eq!(own.code, 1);
        assert!(own.stderr.contains("HM0025"), "{}", own.stderr);
    }
    assert_eq!(home.task(&id)["status"], "running");
    let named = json!({ "owner": "ann", "answer": "x" });
    assert_eq!(complete(&home, &id, "bob", &named).0, 200, "the field names the owner too");
}

#[test]
fn a_name_that_others_use_too_is_ones_own() {
    let home = super::home();
    let (ann, bob) =
        (track(&home, &["--owner", "ann", "--name", "n"]), track(&home, &["--owner", "bob", "--name", "n"]));
    let _ = home.cli(["complete", "n", "--owner", "ann"]).ok();
    let (ann, bob) = (home.task(&ann), home.task(&bob));
    assert_eq!((&ann["status"], &bob["status"]), (&"succeeded".into(), &"running".into()));
    assert_eq!((&ann["answer"], &ann["answer_state"]), (&"(no answer produced)".into(), &"none".into()));
}

#[test]
fn p2_a_missed_lease_is_lost_with_words_for_an_answer() {
    let home = super::home();
    let id = track(&home, &["--lease", "300ms", "--owner", "ann"]);
    let waited = home.cli(["wait", &id, "--timeout", "60s"]);
    assert_eq!(waited.code, 121, "{}", waited.text());
    let task = home.task(&id);
    assert_eq!((&task["status"], &task["answer_state"]), (&"lost".into(), &"failed".into()));
    assert_eq!(task["answer"], "(background task failed: nothing was heard of it for 300ms)");
    assert_eq!((&task["lease_ms"], &task["lease_until"]), (&300.into(), &Value::Null));
    assert_eq!(inbox(&home, "ann")[0]["answer"], task["answer"]);
    let late = home.cli(["complete", &id, "--owner", "ann", "--answer", "x"]).ok();
    assert!(late.text().contains("had already ended: lost"), "{}", late.text());
    let heard = home.cli(["heartbeat", &id, "--owner", "ann"]);
    assert_eq!(heard.code, 1);
    assert!(heard.stderr.contains("HM0006"), "{}", heard.stderr);
}

#[test]
fn a_task_that_is_heard_of_goes_on() {
    let home = super::home();
    let id = track(&home, &["--lease", "60s"]);
    let until = |task: &Value| task["lease_until"].as_str().map(str::to_owned).expect("it has a lease");
    let begin = until(&home.task(&id));
    let heard = home.cli(["heartbeat", &id, "--json"]).ok().json();
    assert!(until(&heard) > begin, "{heard}");
    assert!(home.cli(["heartbeat", &id]).ok().text().contains("holds until 2"));
    let task = home.task(&id);
    let _ = home.cli(["progress", "--task", &id, "40", "reading"]).ok();
    let after = home.task(&id);
    assert!(until(&after) > until(&task) && after["heard_at"].as_str() > task["heard_at"].as_str());
    assert_eq!(after["progress"]["percent"], 40.0);

    // Many short leases, of which only those that are renewed hold.
    let (kept, left) = (track(&home, &["--lease", "5s"]), track(&home, &["--lease", "5s"]));
    let waiting = home.spawn(["wait", &left]);
    wait_for("the other to be lost", || {
        let _ = home.cli(["heartbeat", &kept]).ok();
        (home.task(&left)["status"] == "lost").then_some(())
    });
    assert_eq!(waiting.wait_with_output().expect("it ends").status.code(), Some(121));
    let _ = home.cli(["heartbeat", &kept]).ok();
}

#[test]
fn p4_an_external_task_outlives_the_daemon_and_its_lease_begins_anew() {
    let home = super::home();
    let id = track(&home, &["--lease", "60s", "--name", "n"]);
    let before = home.task(&id);
    home.kill_at_once(&[home.daemon_pid()]);
    let after = home.task(&id);
    assert!(after["lease_until"].as_str() > before["lease_until"].as_str(), "{before} {after}");
    for field in ["status", "started_at", "heard_at", "kind", "lease_ms", "attempt"] {
        assert_eq!(after[field], before[field], "{field}");
    }
    let _ = home.cli(["heartbeat", &id]).ok();
    let events = home.cli(["events"]).ok().text();
    assert_eq!(events.matches("task.started").count(), 1, "{events}");
    home.kill_at_once(&[home.daemon_pid()]);
    let _ = home.cli(["complete", "n", "--answer", "after the crash"]).ok();
    home.kill_at_once(&[home.daemon_pid()]);
    assert_eq!(home.task(&id)["answer"], "after the crash");
    assert_eq!(inbox(&home, "user")[0]["answer"], "after the crash");
}

#[test]
fn p4_a_daemon_that_was_away_for_a_week_loses_nobody() {
    let home = super::home();
    let running = track(&home, &["--lease", "60s"]);
    home.stop_daemon();
    wait_for("everybody to leave", || home.all_processes().is_empty().then_some(()));
    let created = home_clock().plus_millis(-7 * 24 * 3_600 * 1_000);
    let old = plant(&home, 7, Tracking::Lease { ms: 60_000 }, "another boot".into(), created);
    for id in [&running, &old] {
        let task = home.task(id);
        assert_eq!(task["status"], "running");
        assert!(task["lease_until"].as_str().is_some_and(|until| until > home_clock().to_string().as_str()));
        let _ = home.cli(["complete", id]).ok();
    }
}

#[test]
fn p4_a_task_that_nobody_tracks_is_found_by_the_pass() {
    let home = super::home();
    let _ = home.command().env("HOMING_RECONCILE_INTERVAL", "100ms").args(["daemon", "start"]).output();
    // Into the ledger behind the daemon's back: as if it had forgotten it.
    let id = plant(&home, 7, Tracking::Lease { ms: 300 }, "this".into(), home_clock());
    let task = home.ended(&id);
    assert_eq!((&task["status"], &task["answer_state"]), (&"lost".into(), &"failed".into()));
    wait_for("the repair to be told", || {
        (home.get("/v1/status").json()["reconcile"]["repaired"] == 1).then_some(())
    });
}

fn home_clock() -> Timestamp {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
    Timestamp::from_millis(time.tv_sec * 1_000)
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a lease is by the real clock")]
fn p4_time_in_which_the_daemon_stood_still_does_not_count() {
    let home = super::home();
    let daemon = home.daemon_pid();
    // Begun and stopped within the lease.
    let id = wait_for("a daemon that stands still in time", || {
        let began = Instant::now();
        let id = track(&home, &["--lease", "2s"]);
        freeze(daemon);
        if began.elapsed() < Duration::from_secs(1) {
            return Some(id);
        }
        thaw(daemon);
        None
    });
    let heartbeat = home.spawn(["heartbeat", &id]);
    drift(Duration::from_secs(4));
    thaw(daemon);
    let heard = heartbeat.wait_with_output().expect("it ends");
    assert!(heard.status.success(), "{}", String::from_utf8_lossy(&heard.stderr));
}

#[test]
fn one_that_is_tracked_inside_a_task_is_its_child() {
    let home = super::home();
    let line = format!("{} track > id; exec sleep 1000", home.program().display());
    let parent = home.submit(&["--owner", "ann"], &line);
    let task = home.task(&home.told("id"));
    assert_eq!((&task["parent"], &task["depth"]), (&parent.as_str().into(), &1.into()));
    assert_eq!(task["owner"], "ann");
    let _ = home.cli(["stop", &parent]).ok();
    assert_eq!(home.task(&home.told("id"))["status"], "running", "who runs it is somebody else");
}

#[test]
fn a_stop_ends_it_at_once_and_says_that_nothing_was_signalled() {
    let home = super::home();
    let id = track(&home, &["--notify-on", "always"]);
    let stopped = home.cli(["stop", &id]).ok();
    let said = format!("{}{}", stopped.text(), stopped.stderr);
    assert_eq!(said.matches("nothing was signalled").count(), 1, "{said}");
    assert!(stopped.stderr.contains("told so at the next heartbeat"), "{}", stopped.stderr);
    let task = home.task(&id);
    assert_eq!((&task["status"], &task["outcome"]["stopped_by"]), (&"stopped".into(), &"user".into()));
    assert!(
        task["outcome"]["reason"].as_str().is_some_and(|reason| reason.contains("nothing was signalled"))
    );
    assert_eq!(task["answer"], "(background task failed: stopped by user)");
    assert!(home.cli(["stop", &id]).ok().text().contains("had already ended"));
    assert_eq!(home.cli(["wait", &id]).code, 122);
    assert_eq!(inbox(&home, "user").len(), 1);
}

#[test]
fn what_it_does_not_have_is_told() {
    let home = super::home();
    let id = track(&home, &[]);
    for line in [&["output", &id][..], &["output", "-f", &id], &["input", &id, "x"]] {
        let said = home.cli(line);
        assert_eq!(said.code, 1, "{line:?}");
        assert!(said.stderr.contains("run by somebody else"), "{line:?}: {}", said.stderr);
    }
    let signal = home.post(&format!("/v1/tasks/{id}/signal"), &json!({ "signal": "TERM" }));
    assert_eq!((signal.status, &signal.json()["code"]), (409, &"HM0025".into()));
    let _ = home.cli(["forget", &id]).code;
    assert_eq!(home.task(&id)["status"], "running", "a live one is not forgotten");
    let list = home.cli(["list", "--json"]).ok().json();
    assert_eq!(list["items"][0]["kind"], "external");
    for (body, word) in [
        (json!({ "kind": "external", "argv": ["true"] }), "argv"),
        (json!({ "kind": "external", "timeout_ms": 5 }), "timeout_ms"),
        (json!({ "kind": "external", "lease_ms": 0 }), "lease_ms"),
        (json!({ "kind": "external", "lease_ms": 5, "pid": 1 }), "pid"),
        (json!({ "kind": "hook", "argv": ["true"] }), "kind"),
        (json!({ "kind": "nonsense" }), "nonsense"),
        (json!({ "argv": ["true"], "lease_ms": 5 }), "lease_ms"),
    ] {
        let refused = home.post("/v1/tasks", &body);
        assert_eq!((refused.status, &refused.json()["code"]), (422, &"HM0003".into()), "{body}");
        assert!(refused.json()["detail"].as_str().is_some_and(|detail| detail.contains(word)), "{body}");
    }
    let long = complete(&home, &id, "user", &json!({ "answer": "x".repeat(256 * 1024 + 1) }));
    assert_eq!(long.0, 422);
    assert_eq!(home.task(&id)["status"], "running");
    let most = "ä".repeat(128 * 1024);
    assert_eq!(complete(&home, &id, "user", &json!({ "answer": most })).0, 200);
    assert_eq!(home.task(&id)["answer"].as_str().map(str::len), Some(256 * 1024));
}

#[test]
fn p5_a_webhook_and_a_hook_carry_the_answer() {
    let home = super::home();
    let receiver = Receiver::new([Script::status(204)]);
    let url = format!("http://127.0.0.1:{}/hook", receiver.port());
    let hook = format!("exec:cat > {}/got", home.scratch().display());
    let id = track(&home, &["--notify", &url, "--notify", &hook]);
    let _ = home.cli(["complete", &id, "--answer", "home at last"]).ok();
    let body: Value = serde_json::from_slice(&receiver.wait_for(1)[0].body).expect("JSON");
    assert_eq!(
        (&body["data"]["task"]["id"], &body["data"]["answer"]),
        (&id.as_str().into(), &"home at last".into())
    );
    let got: Value = serde_json::from_str(&home.told("got")).expect("JSON");
    assert_eq!(got["notices"][0], body["data"]);
}

#[test]
fn p10_a_key_and_a_repeated_request_give_one_external_task() {
    let home = super::home();
    let first = track(&home, &["--key", "k"]);
    let second = home.cli(["track", "--key", "k"]).ok();
    assert_eq!(second.text(), first);
    assert!(second.stderr.contains("joined"), "{}", second.stderr);
    assert_eq!(home.cli(["track", "--key", "k", "--on-duplicate", "refuse"]).code, 1);
    let _ = home.cli(["complete", &first]).ok();
    assert_ne!(track(&home, &["--key", "k"]), first);
    let headers = [("content-type", "application/json"), ("idempotency-key", "once")];
    let post =
        || home.http("POST", "/v1/tasks", &headers, br#"{"kind":"external","lease_ms":60000}"#).whole();
    let (created, again) = (post(), post());
    assert_eq!((created.status, again.status), (201, 201));
    assert_eq!(created.json()["id"], again.json()["id"]);
}
