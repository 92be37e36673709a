//! Pauses at random moments of short lives: whatever happens, the truth is told, and told in order.

use std::time::Duration;

use homing_shim::cgroup;
use homing_testkit::{Home, Random, drift, survivors_go, wait_for};
use serde_json::{Value, json};

use super::home;

const ROUNDS: u64 = 200;
/// The length of a task at first, and of the times between what is asked of it, in milliseconds.
const TASK_MS: u64 = 30;

/// Asks; once more where the machine had no time to start the task while it was asked.
fn ask(home: &Home, id: &str, what: &str) -> (u16, Value) {
    wait_for("the start", || {
        let answer = home.http("POST", &format!("/v1/tasks/{id}/{what}"), &[], b"").whole();
        Some((answer.status, answer.json())).filter(|(_, answer)| answer["code"] != "HM0300")
    })
}

#[test]
fn p1_pauses_that_race_with_the_end_leave_one_true_end() {
    let home = home();
    let _ = home.daemon_pid();
    let mut random = Random::new(7);
    let (mut paused, mut late) = (0, 0);
    // The length moves towards the edge between both, wherever that is on a machine that has other things to do.
    let mut longest = TASK_MS;
    for round in 0..ROUNDS {
        let nap = Duration::from_millis(random.below(longest)).as_secs_f64();
        let line = format!("sleep {nap}; exit 7");
        let task = home.post("/v1/tasks", &json!({ "shell": line })).json();
        let id = task["id"].as_str().expect("an id").to_owned();
        for _ in 0..random.below(3) + 1 {
            drift(Duration::from_millis(random.below(TASK_MS)));
            let (status, answer) = ask(&home, &id, "pause");
            assert_eq!(status, 200, "round {round}: {answer}");
            let standing = answer["task"]["status"].as_str().expect("a status").to_owned();
            match (answer["changed"] == true, standing.as_str()) {
                (true, "paused") => (paused, longest) = (paused + 1, (longest * 7 / 8).max(1)),
                (false, "failed") => (late, longest) = (late + 1, longest * 8 / 7 + 1),
                (changed, status) => panic!("round {round}: changed {changed}, {status}"),
            }
            drift(Duration::from_millis(random.below(TASK_MS)));
            let (status, answer) = ask(&home, &id, "resume");
            assert_eq!(
                (status, answer["changed"] == true),
                (200, standing == "paused"),
                "round {round}: {answer}"
            );
        }
        let ended = home.get(&format!("/v1/tasks/{id}/wait?timeout_ms=30000")).json();
        assert_eq!(
            (&ended["status"], &ended["outcome"]["exit_code"]),
            (&json!("failed"), &json!(7)),
            "{ended}"
        );
        let log = home.get("/v1/events?after=0&follow=false").body;
        let log = String::from_utf8_lossy(&log).into_owned();
        let told: Vec<_> = log
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).expect("JSON"))
            .filter(|event| event["task_id"] == id.as_str())
            .map(|event| event["type"].as_str().unwrap_or_default().to_owned())
            .collect();
        let middle = &told[2..told.len() - 1];
        assert_eq!((told[0].as_str(), told[1].as_str()), ("task.queued", "task.started"), "{told:?}");
        assert_eq!(told.last().map(String::as_str), Some("task.completed"), "{told:?}");
        assert!(middle.chunks(2).all(|pair| pair == ["task.paused", "task.resumed"]), "{told:?}");
    }
    assert!(paused > 20 && late > 20, "{paused} paused in time, {late} too late");
    home.nothing_left();
}

/// A tree of three that ignores the polite signal and forks all the time.
const STUBBORN: &str = "trap '' TERM; (while :; do sleep 0.002; done) & setsid sh -c 'trap \"\" TERM; while :; do sleep 0.002; done' &
while :; do sleep 0.002; done";

#[test]
fn p8_a_stop_that_meets_a_pause_under_way_ends_the_tree_and_everybody_is_answered() {
    let home = home();
    let _ = home.daemon_pid();
    let mut random = Random::new(11);
    for round in 0..40 {
        let task = home.post("/v1/tasks", &json!({ "shell": STUBBORN, "grace_ms": 50 })).json();
        let id = task["id"].as_str().expect("an id").to_owned();
        let _ = home.until_status(&id, "running");
        let after: Vec<_> = (0..3).map(|_| Duration::from_millis(random.below(12))).collect();
        std::thread::scope(|scope| {
            for (what, after) in ["pause", "resume", "pause"].into_iter().zip(&after) {
                let (home, id) = (&home, &id);
                scope.spawn(move || {
                    drift(*after);
                    let (status, answer) = ask(home, id, what);
                    let refused =
                        answer["detail"].as_str().is_some_and(|why| why.contains("is being stopped"));
                    assert!(status == 200 || (status == 409 && refused), "round {round}: {status} {answer}");
                });
            }
            drift(Duration::from_millis(random.below(12)));
            assert_eq!(home.post(&format!("/v1/tasks/{id}/stop"), &json!({ "wait": true })).status, 200);
            // It has a time of its own to answer in.
            let stopped = home.ended(&id);
            assert_eq!(stopped["status"], "stopped", "round {round}: {stopped}");
            survivors_go(&stopped);
        });
    }
    home.nothing_left();
}

#[test]
fn p2_a_shim_killed_while_it_freezes_its_tree_is_lost_and_nobody_stays_frozen() {
    let home = home();
    let _ = home.daemon_pid();
    let mut random = Random::new(13);
    for round in 0..15 {
        let id = home.submit(&[], STUBBORN);
        let shim = home.shim_pid(&id);
        std::thread::scope(|scope| {
            let asked = scope.spawn(|| ask(&home, &id, "pause"));
            drift(Duration::from_millis(random.below(6)));
            home.kill_at_once(&[shim]);
            let (status, answer) = asked.join().expect("an answer");
            assert_eq!(status, 200, "round {round}: {answer}");
        });
        assert_eq!(home.ended(&id)["status"], "lost", "round {round}");
        home.nothing_left();
    }
}

/// Two chains whose links count, fork the next one and end, for ever; each link is an orphan as soon as it is born. What is between them is the nap in seconds.
const CHAINS: &str = r#"exec python3 -c '
import os, time
count = os.open("links", os.O_CREAT | os.O_APPEND | os.O_WRONLY)
for _ in range(2):
    if os.fork() == 0:
        while True:
            if os.fork() > 0:
                os._exit(0)
            os.write(count, b"x")
            time.sleep(NAP)
while True:
    time.sleep(1)
'"#;

#[test]
fn p8_a_chain_whose_links_fork_and_end_stands_still_when_that_is_said() {
    let home = home();
    let _ = home.daemon_pid();
    // Out of its cgroup, where there is one: only signals reach it.
    let outside = cgroup::base(home.path()).and_then(|base| Some(base.parent()?.join("cgroup.procs")));
    let out = outside.map(|procs| format!("echo 0 > {}; ", procs.display())).unwrap_or_default();
    let counted = || std::fs::metadata(home.scratch().join("links")).map_or(0, |file| file.len());
    for nap in ["0.001", "0.00002"] {
        let line = format!("{out}{}", CHAINS.replace("NAP", nap));
        let id = home.submit(&[], &line);
        let _ = home.until_status(&id, "running");
        let mut stood = 0;
        for round in 0..15 {
            let before = counted();
            wait_for("the chains to go on", || (counted() > before + 20).then_some(()));
            let (status, answer) = ask(&home, &id, "pause");
            if status == 200 {
                let then = counted();
                drift(Duration::from_millis(60));
                assert_eq!(counted(), then, "round {round}: a link ran on");
                stood += 1;
            } else {
                // On a machine that has no time nobody may be fast enough; then somebody is named, and nothing stands still.
                assert_eq!((status, &answer["code"]), (409, &json!("HM0302")), "round {round}: {answer}");
            }
            assert_eq!(ask(&home, &id, "resume").0, 200, "round {round}");
        }
        assert!(stood > 0, "it was never caught");
        home.does(["stop", "--grace", "0s", &id]);
        home.nothing_left();
    }
}
