//! Forgetting: what was dropped is gone from disk, and its id is still answered.
#![expect(
    clippy::unwrap_used,
    reason = "in a test, a panic is the report; helpers outside of #[test] are tests too"
)]

use homing_testkit::{Home, PATIENCE, wait_for, wait_until};
use serde_json::json;

/// A home whose daemon keeps what these lines say, and looks every 200 ms.
fn keeping(retention: &str) -> Home {
    let home = super::home();
    std::fs::create_dir(home.path()).unwrap();
    std::fs::set_permissions(home.path(), std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    let text = format!("[reconcile]\ninterval = \"200ms\"\n[retention]\n{retention}\n");
    std::fs::write(home.path().join("config.toml"), text).unwrap();
    home
}

fn kept(home: &Home) -> Vec<String> {
    let list = home.cli(["list", "--all", "--json"]).ok().json();
    list["items"].as_array().unwrap().iter().map(|task| task["id"].as_str().unwrap().to_owned()).collect()
}

/// Every surface still knows the task and how it ended.
fn assert_remembered(home: &Home, id: &str, code: i32) {
    let task = home.task(id);
    assert_eq!((&task["forgotten"], &task["outcome"]["exit_code"]), (&json!(true), &json!(code)), "{task}");
    assert_eq!(home.cli(["wait", id]).code, code);
    assert_eq!(home.cli(["show", &id[..7]]).code, 0, "its start is enough");
    assert_eq!(home.get(&format!("/v1/tasks/{id}")).status, 200);
    assert_eq!(home.get(&format!("/v1/tasks/{id}/wait?timeout_ms=0")).status, 200);
    let output = home.get(&format!("/v1/tasks/{id}/output"));
    assert_eq!((output.status, output.json()["code"].as_str()), (410, Some("HM0009")));
    let follow: Vec<_> = home.http("GET", &format!("/v1/tasks/{id}/follow"), &[], b"").whole().body;
    assert!(String::from_utf8_lossy(&follow).contains("HM0009"), "{}", String::from_utf8_lossy(&follow));
    assert!(home.cli(["output", id]).stderr.contains("HM0009"));
    assert!(home.cli(["stop", id]).code == 0, "one that has ended is no error");
    // It is its shim's until that has left.
    wait_for("its folder to go", || (!home.path().join("tasks").join(id).exists()).then_some(()));
}

#[test]
fn p12_a_forgotten_task_is_answered_by_every_surface() {
    let home = super::home();
    let id = home.submit(&["--name", "job"], "echo words; exit 3");
    let _ = home.ended(&id);
    let other = home.submit(&[], "true");
    let _ = home.ended(&other);
    assert_eq!(home.cli(["forget", &id]).ok().text(), format!("{id} forgotten"));
    assert_eq!(kept(&home), [other]);
    assert_remembered(&home, &id, 3);
    assert_eq!(home.cli(["forget", &id]).code, 0, "twice is once");
    let _ = home.kill_daemon();
    assert_remembered(&home, &id, 3);
    assert_eq!(home.cli(["status", "--json"]).ok().json()["tasks"]["finished"], 1);
}

#[test]
fn p12_an_id_past_even_its_tombstone_is_told_as_expired_and_not_as_unknown() {
    let home = keeping("age = \"0s\"\ntombstones = \"0s\"");
    let id = home.submit(&[], "true");
    let _ = home.ended(&id);
    home.does(["ack", &id]);
    let show = wait_for("its record to go", || {
        let show = home.cli(["show", &id]);
        (show.code != 0).then_some(show)
    });
    assert!(show.code == 4 && show.stderr.contains("HM0037"), "{show:?}");
    for arguments in [vec!["show", &id[..8]], vec!["output", &id], vec!["stop", &id], vec!["forget", &id]] {
        let answer = home.cli(&arguments);
        assert!(answer.code == 4 && answer.stderr.contains("HM0037"), "{arguments:?}: {answer:?}");
    }
    assert_eq!(home.cli(["wait", &id]).code, 125);
    for address in [format!("/v1/tasks/{id}"), format!("/v1/tasks/{id}/output"), format!("/v1/wait?ids={id}")]
    {
        let answer = home.get(&address);
        assert_eq!((answer.status, answer.json()["code"].as_str()), (410, Some("HM0037")), "{address}");
    }
}

#[test]
fn a_live_task_is_not_forgotten_and_one_never_issued_is_unknown() {
    let home = super::home();
    let id = home.submit(&[], "sleep 1000");
    let refused = home.cli(["forget", &id]);
    assert!(refused.code == 1 && refused.stderr.contains("HM0005"), "{refused:?}");
    assert_eq!(home.http("DELETE", &format!("/v1/tasks/{id}"), &[], b"").whole().status, 409);
    for never in ["t-2222222222", "nonsense", "@last2"] {
        let unknown = home.cli(["show", never]);
        assert!(unknown.code == 4 && unknown.stderr.contains("HM0001"), "{unknown:?}");
    }
}

#[test]
fn p12_past_the_count_the_oldest_are_forgotten_by_themselves_and_their_ids_stay_theirs() {
    let home = keeping("count = 3");
    let ids: Vec<_> = (1..=6).map(|code| home.submit(&[], &format!("exit {code}"))).collect();
    for id in &ids {
        let _ = home.ended(id);
    }
    wait_for("three to be left", || (kept(&home).len() == 3).then_some(()));
    let left = kept(&home);
    let ended = |id: &String| home.task(id)["ended_at"].to_string();
    let mut times: Vec<_> = ids.iter().map(ended).collect();
    times.sort();
    assert!(left.iter().all(|id| ended(id) >= times[3]), "{left:?} of {ids:?}: {times:?}");
    for (id, code) in ids.iter().zip(1..).filter(|(id, _)| !left.contains(id)) {
        assert_remembered(&home, id, code);
    }
    let distinct: std::collections::BTreeSet<_> = ids.iter().collect();
    assert_eq!(distinct.len(), ids.len());
}

#[test]
fn p12_one_pass_forgets_all_that_is_past_however_much_it_is() {
    let home = keeping("age = \"30d\"");
    let headers = [("content-type", "application/json"), ("homing-owner", "ann")];
    let post = |target: &str, body: &str| {
        let reply = home.http("POST", target, &headers, body.as_bytes()).whole();
        serde_json::from_slice::<serde_json::Value>(&reply.body).unwrap()
    };
    let all = std::fs::read(home.path().join("config.toml")).unwrap();
    // Whoever looks too late sees the second pass as well, and looks again with more time between them.
    let first = [2, 8, 25].into_iter().any(|seconds| {
        let _ = home.daemon_pid();
        for _ in 0..200 {
            let task = post("/v1/tasks", r#"{"kind":"external","lease_ms":600000}"#);
            let done = post(&format!("/v1/tasks/{}/complete", task["id"].as_str().unwrap()), "{}");
            assert_eq!(done["completed"], true, "{task} {done}");
        }
        // A daemon that runs would begin at once.
        home.stop_daemon();
        let few = format!("[reconcile]\ninterval = \"{seconds}s\"\n[retention]\ncount = 3\n");
        std::fs::write(home.path().join("config.toml"), few).unwrap();
        home.does(["daemon", "start"]);
        let status = wait_until("the first pass", 2 * PATIENCE, || {
            let status = home.get("/v1/status").json();
            if status["reconcile"]["passes"] == 0 { Err(status) } else { Ok(status) }
        });
        assert_eq!(status["tasks"]["finished"], 3, "{status}");
        home.stop_daemon();
        std::fs::write(home.path().join("config.toml"), &all).unwrap();
        status["reconcile"]["passes"] == 1
    });
    assert!(first);
}

#[test]
fn p12_past_the_age_all_are_forgotten_and_live_ones_are_not() {
    let home = keeping("age = \"300ms\"");
    let live = home.submit(&[], "sleep 1000");
    let id = home.submit(&[], "echo words; exit 4");
    assert_eq!(home.cli(["wait", &id]).code, 4);
    home.does(["ack", &id]);
    wait_for("it to be forgotten", || (kept(&home) == [live.clone()]).then_some(()));
    assert_remembered(&home, &id, 4);
    let _ = home.until_status(&live, "running");
}

#[test]
fn p5_the_output_of_an_unread_task_outlives_its_age() {
    let home = keeping("age = \"1ms\"");
    let (unread, read) = (home.submit(&[], "echo words"), home.submit(&[], "true"));
    for id in [&unread, &read] {
        let _ = home.ended(id);
    }
    home.does(["ack", &read]);
    wait_for("what was read to be forgotten", || (kept(&home) == [unread.clone()]).then_some(()));
    let _ = home.cli(["gc"]).ok();
    assert_eq!(home.output(&unread), b"words\n");
    home.does(["ack", &unread]);
    wait_for("the rest to be forgotten", || kept(&home).is_empty().then_some(()));
}

#[test]
fn p12_past_the_bytes_the_oldest_output_goes_when_asked() {
    let home = super::home();
    let ids: Vec<_> = (0..3).map(|_| home.submit(&[], "head -c 300000 /dev/zero; exit 5")).collect();
    for id in &ids {
        let _ = home.ended(id);
    }
    std::fs::write(home.path().join("config.toml"), "[retention]\nbytes = 700000\n").unwrap();
    let _ = home.cli(["daemon", "restart"]).ok();
    let dropped = home.cli(["gc", "--json"]).ok().json();
    // The daemon may have done it by itself already.
    assert!(dropped["forgotten"].as_u64().unwrap() <= 1, "{dropped}");
    let left = kept(&home);
    assert_eq!(left.len(), 2);
    let gone = ids.iter().find(|id| !left.contains(id)).unwrap();
    assert_remembered(&home, gone, 5);
}
