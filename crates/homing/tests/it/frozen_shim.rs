//! A shim is stopped with SIGSTOP: a stop of its task ends all the same, in bounded time, and tells the truth.

use std::time::Instant;

use homing_testkit::{Freezer, PATIENCE, alive, freeze, gate, thaw, wait_for};

use serde_json::json;

use super::home;

const LINE: &str =
    "trap 'echo polite; exit 4' TERM; sleep 300 & echo $! > child; while :; do sleep 0.01; done";

#[test]
#[expect(clippy::disallowed_methods, reason = "how long it took is what is tested")]
fn p8_a_stop_continues_a_frozen_shim_and_is_carried_out() {
    let home = home();
    let id = home.submit(&["--grace", "60s"], LINE);
    let child = home.told_pid("child");
    freeze(home.shim_pid(&id));
    let began = Instant::now();
    home.does(["stop", &id]);
    assert!(began.elapsed() < PATIENCE, "{:?}", began.elapsed());
    let task = home.task(&id);
    assert_eq!((&task["status"], &task["outcome"]["exit_code"]), (&"stopped".into(), &4.into()), "{task}");
    assert!(!alive(child));
    assert!(String::from_utf8_lossy(&home.output(&id)).contains("polite\n"));
}

#[test]
fn p8_a_stop_reaches_a_shim_that_was_frozen_when_the_daemon_started() {
    let home = home();
    let id = home.submit(&["--grace", "2s"], LINE);
    let child = home.told_pid("child");
    let shim = home.shim_pid(&id);
    freeze(shim);
    let daemon = home.kill_daemon();
    let _ = home.next_daemon(daemon);
    home.does(["stop", &id]);
    assert_eq!(home.task(&id)["status"], "stopped");
    assert!(!alive(child));
}

#[test]
#[expect(clippy::disallowed_methods, reason = "how long it took is what is tested")]
fn p8_a_shim_that_is_kept_frozen_is_killed_and_its_tree_ended_and_the_task_is_lost() {
    let home = home();
    // A stop continues the shim; what keeps it where it is may be too slow for once, and then it does its work.
    for round in 0..20 {
        let id = home.submit(&[], &LINE.replace("child", &format!("child{round}")));
        let (child, shim) = (home.told_pid(&format!("child{round}")), home.shim_pid(&id));
        let frozen = Freezer::new(shim);
        let began = Instant::now();
        home.does(["stop", &id, "--grace", "200ms"]);
        let took = began.elapsed();
        drop(frozen);
        assert!(took < PATIENCE, "{took:?}");
        assert!(!alive(child));
        let task = home.task(&id);
        if task["status"] == "stopped" {
            continue;
        }
        assert_eq!((&task["status"], alive(shim)), (&"lost".into(), false), "{task}");
        let outcome = &task["outcome"];
        assert!(outcome["exit_code"].is_null() && outcome["signal"].is_null(), "{task}");
        assert!(outcome["reason"].as_str().unwrap().contains("supervisor killed"), "{task}");
        home.nothing_left();
        return;
    }
    panic!("the shim could not be kept frozen");
}

#[test]
fn p8_stop_ends_what_a_finished_task_left_with_a_frozen_shim() {
    let home = home();
    let line = format!("({}; sleep 300) & echo $! > server", gate("never"));
    let id = home.submit(&[], &line);
    let server = home.told_pid("server");
    assert_eq!(home.ended(&id)["status"], "succeeded");
    freeze(homing_sys::process::stat(server).unwrap().parent);
    home.does(["stop", &id]);
    assert!(!alive(server));
}

#[test]
fn p2_a_task_whose_shim_is_not_heard_is_not_said_to_have_ended() {
    let home = home();
    let id = home.submit(&["--stdin", "pipe"], "read line; exit 7");
    let _ = home.until_status(&id, "running");
    let shim = home.shim_pid(&id);
    freeze(shim);
    let daemon = home.kill_daemon();
    let _ = home.next_daemon(daemon);
    let refused = home.cli(["input", &id, "go", "--enter"]);
    assert!(refused.code != 0 && refused.stderr.contains("HM0303"), "{refused:?}");
    let refused = home.post(&format!("/v1/tasks/{id}/signal"), &json!({ "signal": "USR1" }));
    assert_eq!((refused.status, &refused.json()["code"]), (503, &"HM0303".into()), "{refused:?}");
    thaw(shim);
    wait_for("a shim that is heard", || (home.cli(["input", &id, "go", "--enter"]).code == 0).then_some(()));
    assert_eq!(home.ended(&id)["outcome"]["exit_code"], 7);
}

#[test]
fn a_signal_for_a_task_whose_shim_stands_still_is_answered_and_sent_when_that_goes_on() {
    let home = home();
    let id = home.submit(&[], "trap 'exit 9' USR1; echo ready; while :; do sleep 0.01; done");
    wait_for("the trap", || (home.output(&id) == b"ready\n").then_some(()));
    let shim = home.shim_pid(&id);
    freeze(shim);
    let refused = home.post(&format!("/v1/tasks/{id}/signal"), &json!({ "signal": "USR1" }));
    assert_eq!((refused.status, &refused.json()["code"]), (503, &"HM0303".into()), "{refused:?}");
    assert_eq!(home.task(&id)["status"], "running");
    thaw(shim);
    assert_eq!(home.ended(&id)["outcome"]["exit_code"], 9);
}
