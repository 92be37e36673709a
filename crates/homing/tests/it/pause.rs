//! Pause and resume: the whole tree stands still, for certain, and goes on where it stood.

use std::time::Duration;

use homing_engine::Engine;
use homing_model::{Spec, Status, Timestamp};
use homing_shim::cgroup;
use homing_sys::process;
use homing_testkit::{Home, alive, drift, freeze, gate, left_out, survivors_go, thaw, wait_for};
use serde_json::{Value, json};

use super::home;

/// Those who count, each in its own manner of getting away.
const COUNTERS: [&str; 5] = ["main", "session", "orphan", "double", "bare"];

/// A tree whose every branch counts, by the length of a file, and forks all the time.
const TREE: &str = "tick() { while :; do printf x >> \"$1\"; sleep 0.003; done; }
export -f tick
setsid bash -c 'tick session' &
(setsid bash -c 'tick orphan' & ) &
( ( tick double & ) & )
setsid env -i PATH=\"$PATH\" bash -c 'while :; do printf x >> bare; sleep 0.003; done' &
tick main";

/// What comes before a line: nothing; and, where tasks have cgroups, the way out of it, so that only signals reach the tree.
fn grounds(home: &Home) -> Vec<String> {
    let outside = cgroup::base(home.path()).and_then(|base| Some(base.parent()?.join("cgroup.procs")));
    let out = outside.map(|procs| format!("echo 0 > {}; ", procs.display()));
    std::iter::once(String::new()).chain(out).collect()
}

/// How far each has counted.
fn counts(home: &Home) -> [usize; 5] {
    COUNTERS.map(|name| home.truth(name).len())
}

/// Starts the tree; returns when everybody counts and the daemon has heard of the start.
fn plant(home: &Home, before: &str, options: &[&str]) -> String {
    for name in COUNTERS {
        let _ = std::fs::remove_file(home.scratch().join(name));
    }
    let id = begun(home, options, &format!("{before}{TREE}"));
    goes_on(home);
    id
}

/// Submits a shell line; returns when it runs. A pause waits for a start, but not for one of a machine that has no time.
fn begun(home: &Home, options: &[&str], line: &str) -> String {
    let id = home.submit(options, line);
    let _ = home.until_status(&id, "running");
    id
}

#[track_caller]
fn goes_on(home: &Home) {
    let before = counts(home);
    wait_for("everybody to count on", || {
        counts(home).iter().zip(before).all(|(now, then)| *now > then).then_some(())
    });
}

#[track_caller]
fn stands_still(home: &Home) {
    let before = counts(home);
    drift(Duration::from_millis(150));
    assert_eq!(counts(home), before, "somebody counted on");
}

/// The kinds of a task's events, in order, without `task.`.
fn history(home: &Home, id: &str) -> Vec<String> {
    let log = home.cli(["events"]).ok().text();
    let events = log.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let of_it = events.filter(|event| event["task_id"] == id);
    of_it
        .map(|event| event["type"].as_str().expect("a type").trim_start_matches("task.").to_owned())
        .collect()
}

#[test]
fn p8_a_paused_tree_stands_still_and_goes_on_where_it_stood() {
    let home = home();
    for before in grounds(&home) {
        let id = plant(&home, &before, &[]);
        for _ in 0..3 {
            assert_eq!(home.cli(["pause", &id]).ok().text(), format!("{id} paused"));
            stands_still(&home);
            assert_eq!(home.task(&id)["status"], "paused");
            let listed = home.cli(["list", "--status", "paused", "--json"]).ok().json();
            assert_eq!(listed["items"][0]["id"], id.as_str());
            assert_eq!(home.cli(["resume", &id]).ok().text(), format!("{id} goes on"));
            assert_eq!(home.task(&id)["status"], "running");
            goes_on(&home);
        }
        home.does(["stop", "--grace", "300ms", &id]);
        let mut expected = vec!["queued", "started"];
        expected.extend(["paused", "resumed"].repeat(3));
        expected.extend(["stopping", "completed"]);
        assert_eq!(history(&home, &id), expected);
        home.nothing_left();
    }
}

/// Its first thread ends; another one counts.
const HEADLESS: &str = r#"exec python3 -c '
import ctypes, platform, threading, time
def tick():
    while True:
        open("main", "a").write("x")
        time.sleep(0.003)
threading.Thread(target=tick).start()
ctypes.CDLL(None).syscall(93 if platform.machine() == "aarch64" else 60, 0)
'"#;

#[test]
fn p8_a_process_whose_first_thread_has_ended_stands_still_and_is_stopped_like_any_other() {
    let home = home();
    let counted = || home.truth("main").len();
    let goes_on = || {
        let before = counted();
        wait_for("it to count on", || (counted() > before).then_some(()));
    };
    for before in grounds(&home) {
        let id = begun(&home, &["--grace", "300ms"], &format!("{before}{HEADLESS}"));
        goes_on();
        let pid = home.task(&id)["pid"].as_u64().expect("a pid");
        wait_for("its first thread to end", || {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("it lives");
            stat.contains(") Z ").then_some(())
        });
        home.does(["pause", &id]);
        let before = counted();
        drift(Duration::from_millis(150));
        assert_eq!(counted(), before, "it counted on");
        home.does(["resume", &id]);
        goes_on();
        home.does(["stop", &id]);
        home.nothing_left();
    }
}

#[test]
fn asking_twice_is_asking_once_and_what_has_ended_is_not_changed() {
    let home = home();
    let id = begun(&home, &["--name", "job"], &gate("go"));
    assert_eq!(home.cli(["resume", &id]).ok().text(), format!("{id} was not paused"));
    assert_eq!(home.cli(["pause", "job"]).ok().text(), format!("{id} paused"));
    assert_eq!(home.cli(["pause", "@last"]).ok().text(), format!("{id} was paused before"));
    let again = home.cli(["pause", &id, "--json"]).ok().json();
    assert_eq!(
        (&again["items"][0]["changed"], &again["items"][0]["task"]["status"]),
        (&json!(false), &json!("paused"))
    );
    let shown = home.cli(["show", &id]).ok().text();
    assert!(shown.contains("paused"), "{shown}");
    let resumed = home.cli(["resume", &id, "--json"]).ok().json();
    assert_eq!(
        (&resumed["items"][0]["changed"], &resumed["items"][0]["task"]["status"]),
        (&json!(true), &json!("running"))
    );
    home.open("go");
    let before = home.ended(&id);
    for command in ["pause", "resume"] {
        let asked = home.cli([command, &id]).ok().text();
        assert!(asked.contains("had already ended: succeeded"), "{asked}");
    }
    assert_eq!(home.task(&id), before);
    assert_eq!(history(&home, &id), ["queued", "started", "paused", "resumed", "completed"]);
    let unknown = home.cli(["pause", "t-zzzzzzzzzz", &id]);
    assert_eq!((unknown.code, unknown.text().contains("had already ended")), (4, true), "{}", unknown.stderr);
}

#[test]
fn several_are_paused_at_once_and_each_is_answered() {
    let home = home();
    let ids: Vec<_> = (0..4).map(|_| begun(&home, &[], "sleep 300")).collect();
    for (command, status) in [("pause", "paused"), ("resume", "running")] {
        let arguments = [command].into_iter().chain(ids.iter().map(String::as_str));
        assert_eq!(home.cli(arguments).ok().text().lines().count(), 4);
        assert!(ids.iter().all(|id| home.task(id)["status"] == status));
    }
}

#[test]
fn what_cannot_be_paused_says_why_and_what_to_do() {
    let home = home();
    let external = home.cli(["track", "--lease", "10m"]).ok().text();
    let refused = home.cli(["pause", &external]);
    assert!(refused.code == 1 && refused.stderr.contains("HM0025"), "{}", refused.stderr);
    let keeper = home.keeper_pid();
    freeze(keeper);
    let early = home.submit(&[], &gate("go"));
    let refused = home.cli(["pause", &early]);
    thaw(keeper);
    assert!(refused.code == 1 && refused.stderr.contains("HM0300"), "{}", refused.stderr);
    // One that is about to start is waited for; on a machine that has no time, more than once.
    let paused = wait_for("the start", || {
        Some(home.cli(["pause", &early])).filter(|asked| !asked.stderr.contains("HM0300"))
    });
    assert_eq!(paused.ok().text(), format!("{early} paused"));
    let stubborn =
        home.submit(&["--grace", "60s"], "trap '' TERM; echo up > up; while :; do sleep 0.01; done");
    let _ = home.told("up");
    let mut stopping = home.spawn(["stop", &stubborn]);
    let _ = home.until_status(&stubborn, "stopping");
    for command in ["pause", "resume"] {
        let refused = home.cli([command, &stubborn]);
        assert!(refused.code == 1 && refused.stderr.contains("is being stopped"), "{}", refused.stderr);
    }
    home.does(["stop", "--grace", "0s", &stubborn]);
    stopping.wait().unwrap();
}

#[test]
fn p3_a_paused_task_is_paused_for_whoever_comes_after_the_daemon_and_the_keeper() {
    let home = home();
    for before in grounds(&home) {
        let id = plant(&home, &before, &[]);
        home.does(["pause", &id]);
        let old = home.kill_daemon();
        let _ = home.next_daemon(old);
        assert_eq!(home.task(&id)["status"], "paused");
        stands_still(&home);
        let (daemon, keeper) = (home.daemon_pid(), home.keeper_pid());
        home.kill_at_once(&[keeper, daemon]);
        let _ = home.next_daemon(daemon);
        assert_eq!(home.task(&id)["status"], "paused");
        stands_still(&home);
        assert_eq!(home.cli(["pause", &id]).ok().text(), format!("{id} was paused before"));
        home.does(["resume", &id]);
        goes_on(&home);
        assert_eq!(history(&home, &id), ["queued", "started", "paused", "resumed"]);
        home.does(["stop", "--grace", "0s", &id]);
    }
}

#[test]
fn p3_a_pause_that_the_daemon_did_not_survive_is_carried_on_and_told_once() {
    let home = home();
    let id = plant(&home, "", &[]);
    for round in 0..12 {
        for (command, status) in [("pause", "paused"), ("resume", "running")] {
            let asking = home.spawn([command, &id]);
            drift(Duration::from_millis(round * 2));
            let old = home.kill_daemon();
            let asked = asking.wait_with_output().unwrap();
            assert!(asked.status.success(), "{}", String::from_utf8_lossy(&asked.stderr));
            let _ = home.next_daemon(old);
            assert_eq!(home.task(&id)["status"], status, "round {round}");
            if command == "pause" { stands_still(&home) } else { goes_on(&home) }
        }
    }
    let told = history(&home, &id).split_off(2);
    assert_eq!(told, ["paused", "resumed"].repeat(12));
    home.does(["stop", "--grace", "0s", &id]);
}

#[test]
fn time_that_a_task_stands_still_does_not_count_against_its_limit() {
    let home = home();
    // A machine that has no time may use the limit up before the pause or after it: then the next one has more of it.
    let within = [2, 8, 25].into_iter().any(|seconds: u64| {
        let id = home.submit(&["--timeout", &format!("{seconds}s")], &gate(&format!("go{seconds}")));
        let _ = home.cli(["pause", &id]);
        drift(Duration::from_millis(seconds * 1_000 + 500));
        let paused = home.task(&id)["status"] == "paused";
        home.open(&format!("go{seconds}"));
        let _ = home.cli(["resume", &id]);
        let task = home.ended(&id);
        let stood = task["duration_ms"].as_u64().unwrap() >= seconds * 1_000 + 500;
        paused && stood && task["status"] == "succeeded" && task["outcome"]["exit_code"] == 0
    });
    assert!(within, "{}", home.cli(["events"]).ok().text());
    // And what was left of it counts from there.
    let id = home.submit(&["--timeout", "1s"], "sleep 300");
    let _ = home.cli(["pause", &id]);
    drift(Duration::from_millis(1_200));
    let _ = home.cli(["resume", &id]);
    assert_eq!(home.ended(&id)["status"], "timed_out");
}

/// From the word of a stop to the end, by the ledger: how long it takes to start a command is nothing to it.
fn took_to_stop(home: &Home, id: &str) -> i64 {
    let log = home.cli(["events"]).ok().text();
    let events = log.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let of_it: Vec<_> = events.filter(|event| event["task_id"] == id).collect();
    let at = |kind: &str| {
        let event = of_it.iter().find(|event| event["type"] == kind).expect("it is in the log");
        serde_json::from_value::<Timestamp>(event["at"].clone()).expect("a time").as_millis()
    };
    at("task.completed") - at("task.stopping")
}

#[test]
fn p8_a_stop_of_a_paused_task_is_heard_and_keeps_its_time() {
    let home = home();
    for before in grounds(&home) {
        let polite = "trap 'echo bye; exit 21' TERM; echo up > up; while :; do sleep 0.01; done";
        let _ = std::fs::remove_file(home.scratch().join("up"));
        let id = begun(&home, &["--grace", "60s"], &format!("{before}{polite}"));
        let _ = home.told("up");
        home.does(["pause", &id]);
        home.does(["stop", &id]);
        let task = home.task(&id);
        assert_eq!(
            (&task["status"], &task["outcome"]["exit_code"]),
            (&"stopped".into(), &21.into()),
            "{task}"
        );
        assert!(String::from_utf8_lossy(&home.output(&id)).contains("bye\n"));
        assert_eq!(history(&home, &id), ["queued", "started", "paused", "stopping", "completed"]);

        // Nobody would wait for the task's own grace.
        for (grace, least) in [("300ms", 300), ("0s", 0)] {
            let id = plant(&home, &format!("{before}trap '' TERM; "), &["--grace", "1h"]);
            home.does(["pause", &id]);
            home.does(["stop", "--grace", grace, &id]);
            let task = home.ended(&id);
            let took = took_to_stop(&home, &id);
            assert!(took >= least, "{took} ms");
            assert_eq!(
                (&task["status"], &task["outcome"]["signal"]),
                (&"stopped".into(), &9.into()),
                "{task}"
            );
            survivors_go(&task);
            home.nothing_left();
        }
    }
}

#[test]
fn p2_a_paused_task_whose_shim_is_killed_is_lost_and_its_tree_is_gone() {
    let home = home();
    for before in grounds(&home) {
        let id = plant(&home, &before, &[]);
        home.does(["pause", &id]);
        let main = u32::try_from(home.task(&id)["pid"].as_u64().unwrap()).unwrap();
        home.kill_at_once(&[home.shim_pid(&id)]);
        let task = home.ended(&id);
        assert_eq!(task["status"], "lost", "{task}");
        survivors_go(&task);
        assert!(!alive(main));
        home.nothing_left();
        stands_still(&home);
        if let Some(base) = cgroup::base(home.path()) {
            assert!(!base.join(format!("{id}.1")).exists(), "its cgroup was left behind");
        }
    }
}

#[test]
fn p2_a_paused_task_that_somebody_kills_tells_the_signal_and_lets_go_of_who_outlives_it() {
    let home = home();
    for before in grounds(&home) {
        let id = plant(&home, &before, &[]);
        home.does(["pause", &id]);
        home.kill(u32::try_from(home.task(&id)["pid"].as_u64().unwrap()).unwrap());
        let task = home.ended(&id);
        assert_eq!((&task["status"], &task["outcome"]["signal"]), (&"failed".into(), &9.into()), "{task}");
        let before = counts(&home);
        wait_for("those who outlived it to count on", || {
            let now = counts(&home);
            (1..COUNTERS.len()).all(|at| now[at] > before[at]).then_some(())
        });
        home.does(["stop", "--grace", "0s", &id]);
        home.nothing_left();
    }
}

#[test]
fn a_task_that_somebody_else_stopped_is_not_paused_and_stays_as_it_was() {
    let home = home();
    for before in grounds(&home) {
        let _ = std::fs::remove_file(home.scratch().join("child"));
        let line = format!("{before}(echo $BASHPID > child; {}) & wait", gate("never"));
        let id = begun(&home, &[], &line);
        let child = home.told_pid("child");
        freeze(child);
        // A signal that it has not taken note of yet would be taken for the pause's own.
        wait_for("it to stand still", || process::stat(child)?.frozen.then_some(()));
        assert_eq!(home.task(&id)["status"], "running");
        assert_eq!(home.cli(["resume", &id]).ok().text(), format!("{id} was not paused"));
        home.does(["pause", &id]);
        home.does(["resume", &id]);
        assert!(process::stat(child).unwrap().frozen, "it was not ours to continue");
        home.does(["stop", "--grace", "0s", &id]);
    }
}

#[test]
fn p8_whoever_is_continued_by_somebody_else_is_held_again() {
    let home = home();
    let Some(out) = grounds(&home).pop() else { return };
    let id = plant(&home, &out, &[]);
    home.does(["pause", &id]);
    let main = u32::try_from(home.task(&id)["pid"].as_u64().unwrap()).unwrap();
    thaw(main);
    wait_for("it to be held again", || process::stat(main)?.frozen.then_some(()));
    stands_still(&home);
    assert_eq!(home.task(&id)["status"], "paused");
    home.does(["resume", &id]);
    goes_on(&home);
    home.does(["stop", "--grace", "0s", &id]);
}

#[test]
fn p8_a_grandchild_that_somebody_continues_is_held_again_whether_it_prints_or_not() {
    let home = home();
    let Some(out) = grounds(&home).pop() else { return };
    for what in ["printf x >> main", "printf x"] {
        let _ = std::fs::remove_file(home.scratch().join("child"));
        let line = format!(
            "{out}bash -c 'bash -c \"echo \\$\\$ > child; while :; do {what}; sleep 0.003; done\"; :'; :"
        );
        let id = begun(&home, &[], &line);
        let child = home.told_pid("child");
        home.does(["pause", &id]);
        let stands = || process::stat(child).is_some_and(|child| child.frozen);
        assert!(stands());
        thaw(child);
        wait_for("it to be held again", || stands().then_some(()));
        let counted = || (home.truth("main").len(), home.output(&id).len());
        let before = counted();
        drift(Duration::from_millis(150));
        assert_eq!(counted(), before, "it counted on");
        assert_eq!(home.task(&id)["status"], "paused");
        home.does(["resume", &id]);
        wait_for("it to count on", || (counted() > before).then_some(()));
        home.does(["stop", "--grace", "0s", &id]);
    }
}

#[test]
fn p8_a_cgroup_that_somebody_thawed_is_frozen_again_though_nobody_asks() {
    let home = home();
    let Some(base) = cgroup::base(home.path()) else { return left_out("no cgroup can be made here") };
    let id = plant(&home, "", &[]);
    home.does(["pause", &id]);
    let group = base.join(format!("{id}.1"));
    std::fs::write(group.join("cgroup.freeze"), "0").unwrap();
    wait_for("the tree to be held again", || {
        let events = std::fs::read_to_string(group.join("cgroup.events")).unwrap();
        let asked = std::fs::read_to_string(group.join("cgroup.freeze")).unwrap();
        (events.contains("frozen 1") && asked == "1\n").then_some(())
    });
    stands_still(&home);
    home.does(["resume", &id]);
    goes_on(&home);
    home.does(["stop", "--grace", "0s", &id]);
}

#[test]
fn p8_a_cgroup_that_somebody_thawed_is_frozen_again_when_it_is_asked_for_or_adopted() {
    let home = home();
    let Some(base) = cgroup::base(home.path()) else { return left_out("no cgroup can be made here") };
    let id = plant(&home, "", &[]);
    home.does(["pause", &id]);
    let group = base.join(format!("{id}.1"));
    for asked in [true, false] {
        let before = counts(&home);
        // More than once, where its shim comes to look only now whether it stands still.
        wait_for("everybody to count on", || {
            std::fs::write(group.join("cgroup.freeze"), "0").unwrap();
            counts(&home).iter().zip(before).all(|(now, then)| *now > then).then_some(())
        });
        if asked {
            assert_eq!(home.cli(["pause", &id]).ok().text(), format!("{id} was paused before"));
        } else {
            let old = home.kill_daemon();
            let _ = home.next_daemon(old);
        }
        wait_for("the tree to be held again", || {
            let events = std::fs::read_to_string(group.join("cgroup.events")).unwrap();
            events.contains("frozen 1").then_some(())
        });
        stands_still(&home);
        assert_eq!(home.task(&id)["status"], "paused");
    }
    home.does(["resume", &id]);
    goes_on(&home);
    home.does(["stop", "--grace", "0s", &id]);
}

#[test]
fn a_terminal_stands_still_and_its_foreground_job_still_has_it_afterwards() {
    let home = home();
    for before in grounds(&home) {
        let id = home.submit(&["--pty"], &format!("{before}exec bash --norc -i"));
        // What is typed before nobody echoes it any more is on the screen whether somebody has read it or not.
        home.does(["input", &id, "PS1=; stty -echo; echo up'on'; cat", "--enter"]);
        let until = |part: &str| {
            wait_for(&format!("{part:?} in the output"), || {
                String::from_utf8_lossy(&home.output(&id)).contains(part).then_some(())
            });
        };
        until("upon\r\n");
        home.does(["input", &id, "one", "--enter"]);
        until("one\r\n");
        home.does(["pause", &id]);
        // What is typed meanwhile is read afterwards.
        home.does(["input", &id, "two", "--enter"]);
        let printed = home.output(&id).len();
        drift(Duration::from_millis(150));
        assert_eq!(home.output(&id).len(), printed);
        home.does(["resume", &id]);
        until("two\r\n");
        home.does(["input", &id, "three", "--enter"]);
        until("three\r\n");
        assert!(!String::from_utf8_lossy(&home.output(&id)).contains("Stopped"));
        home.does(["pause", &id]);
        home.does(["stop", "--grace", "300ms", &id]);
        assert_eq!(home.task(&id)["status"], "stopped");
    }
}

/// A shell in a shell in a terminal, with this job in the foreground, which says `ready`.
fn in_a_shell(home: &Home, before: &str, job: &str) -> String {
    let id = home.submit(&["--pty"], &format!("{before}exec bash --norc -i"));
    let job = format!("echo rea'dy'; {job}");
    for (line, said) in [
        ("PS1=; echo out'er'", "outer\r\n"),
        ("bash --norc -i", ""),
        ("PS1=; stty -echo; echo inn'er'", "inner\r\n"),
        (&job, "ready\r\n"),
    ] {
        home.does(["input", &id, line, "--enter"]);
        wait_for(&format!("{said:?} in the output"), || {
            String::from_utf8_lossy(&home.output(&id)).contains(said).then_some(())
        });
    }
    id
}

#[test]
fn p8_a_stop_of_a_paused_shell_leaves_the_terminal_to_its_job() {
    let home = home();
    for before in grounds(&home) {
        for round in 0..4 {
            let id = in_a_shell(
                &home,
                &before,
                "sh -c 'trap \"\" TERM; echo up > up; while :; do sleep 0.01; done'",
            );
            let _ = home.told("up");
            home.does(["pause", &id]);
            home.does(["stop", "--grace", "300ms", &id]);
            let said = String::from_utf8_lossy(&home.output(&id)).into_owned();
            assert!(!said.contains("Stopped"), "round {round}: {said}");
            std::fs::remove_file(home.scratch().join("up")).unwrap();
        }
        for round in 0..4 {
            let tidy = "stty sane < /dev/tty; echo clean > clean; exit 0";
            let job = format!("sh -c 'trap \"{tidy}\" TERM; echo up > up; while :; do sleep 0.01; done'");
            let id = in_a_shell(&home, &before, &job);
            let _ = home.told("up");
            home.does(["pause", &id]);
            let stopping = home.spawn(["stop", "--grace", "60s", &id]);
            wait_for(&format!("the job to tidy up, round {round}"), || {
                (home.truth("clean") == "clean\n").then_some(())
            });
            home.does(["stop", "--grace", "0s", &id]);
            assert!(stopping.wait_with_output().unwrap().status.success());
            for name in ["up", "clean"] {
                std::fs::remove_file(home.scratch().join(name)).unwrap();
            }
        }
    }
    home.nothing_left();
}

#[test]
fn a_shell_that_gets_hardly_any_time_does_not_see_its_job_stop() {
    let home = home();
    let busy = "for n in $(seq $(nproc)); do nice -n 5 sh -c 'while :; do :; done' & done; wait";
    let load = begun(&home, &[], busy);
    for before in grounds(&home) {
        let id = home.submit(&["--pty"], &format!("{before}exec bash --norc -i"));
        let until = |part: &str| {
            wait_for(&format!("{part:?} in the output"), || {
                String::from_utf8_lossy(&home.output(&id)).contains(part).then_some(())
            });
        };
        // The shell runs when nobody else wants to, its job like any other.
        let line = "PS1=; stty -echo; echo up'on'; chrt -i -p 0 $$; chrt -o 0 cat";
        home.does(["input", &id, line, "--enter"]);
        until("upon\r\n");
        for word in ["one", "two", "three"] {
            home.does(["input", &id, word, "--enter"]);
            until(&format!("{word}\r\n"));
            // Whoever gets no time at all is said to be beyond a pause, and goes on.
            wait_for("the pause", || (home.cli(["pause", &id]).code == 0).then_some(()));
            home.does(["resume", &id]);
        }
        home.does(["input", &id, "--keys", "ctrl-d"]);
        home.does(["input", &id, "echo on'wards'; exit", "--enter"]);
        until("onwards\r\n");
        assert!(!String::from_utf8_lossy(&home.output(&id)).contains("Stopped"));
    }
    home.does(["stop", "--grace", "0s", &load]);
}

#[test]
fn ctrl_c_typed_into_a_paused_terminal_is_heard_when_it_goes_on_and_takes_what_was_typed_before() {
    let home = home();
    for before in grounds(&home) {
        let line = "trap 'echo caught' INT; stty -echo; echo up; while :; do read -r x && echo got $x; done";
        let id = home.submit(&["--pty"], &format!("{before}{line}"));
        let until = |part: &str| {
            wait_for(&format!("{part:?} in the output"), || {
                String::from_utf8_lossy(&home.output(&id)).contains(part).then_some(())
            });
        };
        until("up\r\n");
        home.does(["pause", &id]);
        home.does(["input", &id, "before", "--enter"]);
        home.does(["input", &id, "--keys", "ctrl-c"]);
        assert_eq!(home.output(&id), b"up\r\n", "nobody hears it yet");
        home.does(["resume", &id]);
        until("caught\r\n");
        home.does(["input", &id, "after", "--enter"]);
        until("got after\r\n");
        assert!(!String::from_utf8_lossy(&home.output(&id)).contains("got before"));
        home.does(["stop", "--grace", "0s", &id]);
    }
}

#[test]
fn a_silence_that_was_asked_for_is_not_told_and_no_heart_beats() {
    let home = home();
    let line = format!("{}; while :; do echo x; sleep 0.01; done", gate("speak"));
    let id = home.submit(&["--quiet-after", "600ms", "--heartbeat", "500ms"], &line);
    let _ = home.until_status(&id, "running");
    home.does(["pause", &id]);
    let old = home.kill_daemon();
    let _ = home.next_daemon(old);
    // On a machine that has no time, a silence came before the pause: that one is told.
    let before = history(&home, &id);
    drift(Duration::from_millis(1_200));
    let task = home.task(&id);
    assert_eq!((&task["status"], task["quiet_since"].is_null()), (&"paused".into(), true), "{task}");
    assert_eq!(history(&home, &id), before);
    assert!(before.contains(&"paused".to_owned()), "{before:?}");
    home.does(["resume", &id]);
    let since = |kind: &str| history(&home, &id).split_off(before.len()).contains(&kind.to_owned());
    if !before.contains(&"quiet".to_owned()) {
        wait_for("the silence to be told", || since("quiet").then_some(()));
    }
    home.open("speak");
    wait_for("a heartbeat", || since("heartbeat").then_some(()));
    home.does(["stop", "--grace", "0s", &id]);
}

#[test]
fn whoever_waits_waits_on() {
    let home = home();
    let id = begun(&home, &[], &format!("{}; exit 9", gate("go")));
    let waiting = home.spawn(["wait", &id]);
    home.does(["pause", &id]);
    assert_eq!(home.cli(["wait", &id, "--timeout", "100ms"]).code, 123);
    home.open("go");
    home.does(["resume", &id]);
    assert_eq!(waiting.wait_with_output().unwrap().status.code(), Some(9));
}

#[test]
fn p11_inside_a_task_only_ones_own_are_paused() {
    let home = home();
    let foreign = begun(&home, &[], "sleep 300");
    let homing = home.program().display().to_string();
    let line = format!(
        "{homing} pause {foreign}; echo $? > foreign
         own=$({homing} run -- sleep 300); until {homing} pause $own; do sleep 0.01; done; echo $? > own; {homing} resume $own; {homing} stop $own"
    );
    let id = home.submit(&[], &line);
    assert_eq!(home.ended(&id)["status"], "succeeded");
    let said = String::from_utf8_lossy(&home.output(&id)).into_owned();
    assert_eq!((home.told("foreign").as_str(), home.told("own").as_str()), ("1", "0"), "{said}");
    assert!(said.contains("HM0053"), "{said}");
    assert_eq!(home.task(&foreign)["status"], "running");
}

#[tokio::test]
async fn an_embedded_engine_pauses_and_the_next_one_knows() {
    let home = home();
    let open = || Engine::builder(home.path()).helper(home.program().into()).open();
    let engine = open().await.unwrap();
    let spec = Spec { shell: Some("sleep 300".into()), ..Spec::default() };
    let task = engine.submit(spec, homing_engine::Caller::default(), None).await.unwrap().task;
    while engine.task(&task.id).await.unwrap().status == Status::Starting {
        tokio::task::yield_now().await;
    }
    let answer = engine.pause(&task.id).await.unwrap();
    assert_eq!((answer.changed, answer.task.status), (true, Status::Paused));
    assert!(!engine.pause(&task.id).await.unwrap().changed);
    let running = engine.snapshot().running();
    assert_eq!(running.iter().map(|task| task.status).collect::<Vec<_>>(), [Status::Paused]);
    engine.leave(false).await;
    drop(engine);
    let mut opened = open().await;
    while opened.is_err() {
        tokio::task::yield_now().await;
        opened = open().await;
    }
    let engine = opened.unwrap();
    assert_eq!(engine.task(&task.id).await.unwrap().status, Status::Paused);
    assert_eq!(engine.snapshot().running()[0].status, Status::Paused);
    let answer = engine.resume(&task.id).await.unwrap();
    assert_eq!((answer.changed, answer.task.status), (true, Status::Running));
    engine.stop(&task.id, homing_api::StopRequest { wait: true, ..Default::default() }).await.unwrap();
    engine.leave(false).await;
}
