//! Stop stops: the whole tree, escalating, verified; and it tells the truth about what ended by itself.

use homing_store::store::{Tasks, Upkeep};
use std::collections::HashSet;
use std::time::{Duration, Instant};

use homing_api::StopRequest;
use homing_engine::{Caller, Engine};
use homing_model::{Spec, Status, Timestamp};
use homing_store::{SqliteStore, Stop};
use homing_testkit::{Freezer, alive, drift, freeze, gate, left_out, survivors_go, thaw, wait_for};

use super::home;

/// Everything a tree can do to get away, and each of them ignores the polite signal.
const STUBBORN: &str = "trap '' TERM HUP INT
setsid sh -c 'echo $$ > session; while :; do sleep 0.1; done' &
(setsid sh -c 'echo $$ > orphan; while :; do sleep 0.1; done' & ) &
( ( (trap '' TERM; echo $BASHPID > double; while :; do sleep 0.1; done) & ) & )
setsid env -i PATH=\"$PATH\" sh -c 'trap \"\" TERM; echo $$ > bare; while :; do sleep 0.1; done' &
echo $$ > main
while :; do sleep 0.1; done";

#[test]
#[expect(clippy::disallowed_methods, reason = "how long it took is what is tested")]
fn p8_a_tree_that_ignores_everything_is_gone_within_grace_and_a_second() {
    let home = home();
    let names = ["main", "session", "orphan", "double", "bare"];
    // What a machine takes that has other things to do is no measure: one of several is.
    let quick = (0..5).any(|_| {
        for name in names {
            let _ = std::fs::remove_file(home.scratch().join(name));
        }
        let id = home.submit(&[], STUBBORN);
        let pids = names.map(|name| home.told_pid(name));
        let began = Instant::now();
        let stopped = home.cli(["stop", "--grace", "300ms", &id]).ok();
        let took = began.elapsed();
        assert!(took >= Duration::from_millis(300), "{took:?}");
        let task = home.ended(&id);
        survivors_go(&task);
        let left: Vec<_> = pids.iter().filter(|pid| alive(**pid)).collect();
        assert!(left.is_empty(), "{left:?} after {}", stopped.text());
        assert_eq!((&task["status"], &task["outcome"]["signal"]), (&"stopped".into(), &9.into()), "{task}");
        assert_eq!((&task["outcome"]["stopped_by"], home.cli(["wait", &id]).code), (&"user".into(), 122));
        home.nothing_left();
        took < Duration::from_millis(1300)
    });
    assert!(quick);
}

#[test]
fn p8_a_tree_that_listens_ends_at_once_and_keeps_its_own_code() {
    let home = home();
    let id = home.submit(&[], "trap 'echo bye; exit 21' TERM; echo up > up; while :; do sleep 0.01; done");
    let _ = home.told("up");
    home.does(["stop", "--grace", "60s", &id]);
    let task = home.task(&id);
    assert_eq!((&task["status"], &task["outcome"]["exit_code"]), (&"stopped".into(), &21.into()), "{task}");
    // Its shell may also tell of the child that the signal ended.
    assert!(String::from_utf8(home.output(&id)).unwrap().contains("bye\n"));
}

#[test]
fn p8_a_frozen_tree_hears_the_stop() {
    let home = home();
    let id = home.submit(&[], "trap 'exit 20' TERM; echo $$ > main; while :; do sleep 0.01; done");
    freeze(home.told_pid("main"));
    home.does(["stop", "--grace", "60s", &id]);
    assert_eq!(home.task(&id)["outcome"]["exit_code"], 20);
}

#[test]
fn the_polite_signal_can_be_chosen_and_the_last_one_comes_at_once_without_grace() {
    let home = home();
    let line = "trap 'exit 22' INT; trap '' TERM; echo $$ > NAME; while :; do sleep 0.01; done";
    let first = home.submit(&[], &line.replace("NAME", "first"));
    let _ = home.told("first");
    home.does(["stop", "--grace", "60s", "--signal", "INT", &first]);
    assert_eq!(home.task(&first)["outcome"]["exit_code"], 22);
    let second = home.submit(&[], &line.replace("NAME", "second"));
    let _ = home.told("second");
    home.does(["stop", "--grace", "0s", &second]);
    assert_eq!(home.task(&second)["outcome"]["signal"], 9);
    assert_ne!(home.cli(["stop", "--signal", "NOPE", &second]).code, 0);
}

#[test]
fn p1_a_finished_task_stopped_again_says_so_and_is_not_changed() {
    let home = home();
    let id = home.submit(&[], "exit 3");
    let before = home.ended(&id);
    let stopped = home.cli(["stop", &id]);
    assert_eq!(stopped.code, 0);
    assert!(stopped.text().contains("already ended: failed, exit 3"), "{}", stopped.text());
    assert_eq!(home.task(&id), before);
    assert_eq!(home.cli(["stop", "t-zzzzzzzzzz"]).code, 4);
}

#[test]
fn several_are_stopped_at_once_and_each_is_answered() {
    let home = home();
    let ids: Vec<_> = (0..4).map(|_| home.submit(&[], "sleep 300")).collect();
    let mut arguments = vec!["stop"];
    arguments.extend(ids.iter().map(String::as_str));
    assert_eq!(home.cli(arguments).ok().text().lines().count(), 4);
    assert!(ids.iter().all(|id| home.task(id)["status"] == "stopped"));
    home.nothing_left();
}

#[test]
fn p8_a_stop_that_the_daemon_did_not_survive_is_carried_on() {
    let home = home();
    // A round in which it was over before anybody saw it is no proof.
    let carried_on = (0..20).any(|round| {
        let line = format!("trap '' TERM; echo up > up{round}; while :; do sleep 0.01; done");
        let id = home.submit(&["--grace", "300ms"], &line);
        let _ = home.told(&format!("up{round}"));
        let stopping = home.spawn(["stop", &id]);
        let seen = wait_for("the stop to be recorded", || {
            let status = home.task(&id)["status"].clone();
            (status != "starting" && status != "running").then_some(status == "stopping")
        });
        let _ = home.kill_daemon();
        let output = stopping.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let task = home.ended(&id);
        assert_eq!((&task["status"], &task["outcome"]["signal"]), (&"stopped".into(), &9.into()), "{task}");
        seen
    });
    assert!(carried_on);
}

#[test]
fn p8_a_stop_that_was_recorded_but_never_sent_is_sent_by_the_next_daemon() {
    let home = home();
    // The shim does not read, though the daemon continues it, so the message dies with the daemon's end of the socket or after it. On a
    // loaded machine it may get a moment all the same; a round in which it has heard the stop is no proof.
    let sent_later = (0..20).any(|round| {
        let line = format!("trap 'exit 19' TERM; echo up > up{round}; while :; do sleep 0.01; done");
        let id = home.submit(&[], &line);
        let _ = home.told(&format!("up{round}"));
        let (shim, daemon) = (home.shim_pid(&id), home.daemon_pid());
        let frozen = Freezer::new(shim);
        let mut stopping = home.spawn(["stop", "--grace", "60s", &id]);
        let recorded = wait_for("the stop to be recorded", || {
            let status = home.task(&id)["status"].clone();
            (status != "running").then_some(status == "stopping")
        });
        home.kill_at_once(&[daemon, stopping.id()]);
        stopping.wait().unwrap();
        drop(frozen);
        let task = home.ended(&id);
        assert_eq!(
            (&task["status"], &task["outcome"]["exit_code"]),
            (&"stopped".into(), &19.into()),
            "{task}"
        );
        recorded
    });
    assert!(sent_later);
}

#[test]
fn p8_a_command_whose_stop_came_before_it_began_does_not_begin() {
    let home = home();
    // The request is recorded before its message is sent: how soon after, nobody can see, so a round in which it came too late is no proof.
    let forestalled = (0..20).any(|round| {
        let keeper = home.keeper_pid();
        freeze(keeper);
        let id = home.submit(&[], &format!("touch began{round}"));
        let stopping = home.spawn(["stop", &id]);
        let _ = home.until_status(&id, "stopping");
        drift(Duration::from_millis(50));
        thaw(keeper);
        let task = home.ended(&id);
        assert!(stopping.wait_with_output().unwrap().status.success());
        assert_eq!((&task["status"], &task["outcome"]["stopped_by"]), (&"stopped".into(), &"user".into()));
        let forestalled = task["outcome"]["reason"] == "stopped before it was started";
        assert!(!forestalled || !home.scratch().join(format!("began{round}")).exists(), "{task}");
        forestalled
    });
    assert!(forestalled);
    home.nothing_left();
}

#[test]
fn p10_a_task_stopped_before_it_was_begun_never_begins() {
    let home = home();
    let keeper = home.keeper_pid();
    freeze(keeper);
    let id = home.submit(&[], "echo run >> ran");
    let mut stopping = home.spawn(["stop", &id]);
    let _ = home.until_status(&id, "stopping");
    let daemon = home.find_daemon().unwrap().pid;
    home.kill_at_once(&[daemon, keeper, stopping.id()]);
    stopping.wait().unwrap();
    let task = home.ended(&id);
    assert_eq!((&task["status"], home.truth("ran")), (&"stopped".into(), String::new()), "{task}");
    assert!(task["outcome"]["exit_code"].is_null() && task["started_at"].is_null(), "{task}");
}

/// The natural end is exit code 0, and the main process does not handle SIGTERM. So a stop that reached it ends it by that signal.
/// The moment of the stop moves towards the edge between both.
#[tokio::test]
async fn p2_stop_racing_the_natural_end_is_recorded_as_what_came_first() {
    const ROUNDS: usize = 120;
    let home = home();
    let engine = Engine::builder(home.path()).helper(home.program().into()).open().await.unwrap();
    let mut seen = HashSet::new();
    let mut late = Duration::from_millis(2);
    // A moment longer than it takes to record a stop, so that either can come first; where that takes longer, so does this.
    let mut nap = Duration::from_millis(5);
    for round in 0..ROUNDS {
        let go = home.scratch().join(format!("go{round}"));
        let line = format!("read x < {}; exec sleep {}", go.display(), nap.as_secs_f64());
        rustix::fs::mknodat(rustix::fs::CWD, &go, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        let spec = Spec { shell: Some(line.into()), ..Spec::default() };
        let id = engine.submit(spec, Caller::default(), None).await.unwrap().task.id;
        // Opening the fifo waits until the task does.
        let opening = move || {
            drop(std::fs::File::options().write(true).open(&go).unwrap());
            drift(late);
        };
        tokio::task::spawn_blocking(opening).await.unwrap();
        engine.stop(&id, StopRequest { wait: true, ..StopRequest::default() }).await.unwrap();
        let task = engine.task(&id).await.unwrap();
        let outcome = task.outcome.clone().unwrap();
        let end = (outcome.exit_code, outcome.signal);
        match task.status {
            Status::Stopped => assert_eq!(end, (None, Some(15)), "round {round}: {task:?}"),
            Status::Succeeded => assert_eq!(end, (Some(0), None), "round {round}: {task:?}"),
            other => panic!("round {round}: {other}: {task:?}"),
        }
        assert_eq!(outcome.stopped_by.is_some(), task.status == Status::Stopped);
        late = if task.status == Status::Stopped { late * 5 / 4 } else { late * 3 / 4 };
        if late < Duration::from_micros(100) {
            (late, nap) = (Duration::from_millis(2), nap * 2);
        }
        seen.insert(task.status);
    }
    assert!(seen.contains(&Status::Stopped) && seen.contains(&Status::Succeeded), "{seen:?}");
    drop(engine);
    // Not on the runtime's thread, which still has to close the connections to the shims.
    let left =
        move || wait_for("the shims to leave", || home.processes("homing-shim").is_empty().then_some(()));
    tokio::task::spawn_blocking(left).await.unwrap();
}

/// A stopped task whose main process ends by itself in the time by which strace delays the shim's first signal; none without strace.
fn ended_before_the_signal(end: &str) -> Option<serde_json::Value> {
    let home = home();
    let id = home.submit(&[], &format!("echo $$ > main; {}; {end}", gate("go")));
    let (main, shim) = (home.told_pid("main"), home.shim_pid(&id));
    let log = home.scratch().join("strace.txt");
    let calls = "kill,pidfd_send_signal";
    let strace = std::process::Command::new("strace")
        .args(["-p", &shim.to_string(), "-e", &format!("trace={calls}"), "-o"])
        .arg(&log)
        .args(["-e", &format!("inject={calls}:delay_enter=3000000:when=1")])
        .stderr(std::process::Stdio::null())
        .spawn();
    let Ok(mut strace) = strace else {
        left_out("strace is not there");
        return None;
    };
    wait_for("strace to hold the shim", || {
        let status = std::fs::read_to_string(format!("/proc/{shim}/status")).expect("the shim lives");
        (!status.contains("TracerPid:\t0\n")).then_some(())
    });
    let stopping = home.spawn(["stop", "--grace", "60s", &id]);
    wait_for("the signal to be under way", || {
        std::fs::read_to_string(&log).is_ok_and(|text| text.contains("SIG")).then_some(())
    });
    home.open("go");
    wait_for("the main process to end", || (!alive(main)).then_some(()));
    let task = home.ended(&id);
    assert!(stopping.wait_with_output().expect("the output of `homing stop`").status.success());
    strace.kill().expect("to kill strace");
    strace.wait().expect("to reap strace");
    assert!(task["outcome"]["stopped_by"].is_null(), "{task}");
    Some(task)
}

#[test]
fn p2_a_signal_sent_to_a_zombie_is_not_a_stop() {
    let Some(task) = ended_before_the_signal("exit 0") else { return };
    assert_eq!((&task["status"], &task["outcome"]["exit_code"]), (&"succeeded".into(), &0.into()), "{task}");
}

#[test]
fn p2_an_end_by_an_own_signal_before_that_of_a_stop_is_not_a_stop() {
    let Some(task) = ended_before_the_signal("kill -TERM $$; sleep 9") else { return };
    assert_eq!((&task["status"], &task["outcome"]["signal"]), (&"failed".into(), &15.into()), "{task}");
}

#[test]
fn a_stop_reaches_a_task_that_the_next_daemon_adopted() {
    let home = home();
    let id = home.submit(&[], &format!("sleep 300 & {}", gate("never")));
    let _ = home.until_status(&id, "running");
    home.kill_at_once(&[home.daemon_pid(), home.keeper_pid()]);
    home.does(["stop", &id]);
    assert_eq!(home.task(&id)["status"], "stopped");
    home.nothing_left();
}

/// Says which signals it heard, and ends when the gate is opened.
fn listening() -> String {
    let ears = "trap 'echo INT >> heard' INT; trap 'echo TERM >> heard' TERM; echo up > up";
    format!("{ears}; {}; exit 17", gate("go"))
}

#[test]
fn p3_a_stop_under_way_keeps_its_signal_and_its_grace_when_the_daemon_is_killed() {
    let home = home();
    let id = home.submit(&["--grace", "200ms"], &listening());
    let _ = home.told("up");
    let stopping = home.spawn(["stop", "--grace", "60s", "--signal", "INT", &id]);
    assert_eq!(home.told("heard"), "INT");
    let killed = home.kill_daemon();
    let _ = home.next_daemon(killed);
    assert_eq!(home.task(&id)["status"], "stopping");
    // Longer than the task's own grace, which is not the one that was asked for.
    drift(Duration::from_millis(600));
    home.open("go");
    let task = home.ended(&id);
    assert_eq!((&task["status"], &task["outcome"]["exit_code"]), (&"stopped".into(), &17.into()), "{task}");
    assert_eq!(home.truth("heard"), "INT\n");
    assert!(stopping.wait_with_output().unwrap().status.success());
}

#[tokio::test]
async fn p8_a_stop_that_was_only_recorded_is_sent_with_its_signal_and_its_grace() {
    let home = home();
    let id = home.submit(&["--grace", "200ms"], &listening());
    let _ = home.told("up");
    let (daemon, keeper) = (home.daemon_pid(), home.keeper_pid());
    freeze(keeper);
    home.kill_at_once(&[daemon]);
    // What a daemon does that dies before it comes to tell the shim.
    let store = SqliteStore::open(&home.path().join("homing.db")).unwrap();
    let stop = Stop { by: "user".into(), signal: Some(2), grace_ms: Some(60_000) };
    store.stop_requested(id.parse().unwrap(), stop, 1, None, Timestamp::from_millis(1)).await.unwrap();
    store.close().await.unwrap();
    thaw(keeper);
    assert_eq!(home.told("heard"), "INT");
    drift(Duration::from_millis(600));
    home.open("go");
    let task = home.ended(&id);
    assert_eq!((&task["status"], &task["outcome"]["exit_code"]), (&"stopped".into(), &17.into()), "{task}");
    assert_eq!(home.truth("heard"), "INT\n");
}

#[test]
fn p8_stop_waits_for_the_end_through_the_whole_of_the_tasks_own_grace() {
    let home = home();
    std::fs::create_dir(home.path()).unwrap();
    std::fs::set_permissions(home.path(), std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    std::fs::write(home.path().join("config.toml"), "[stop]\ngrace = \"100ms\"\n").unwrap();
    let id = home.submit(&["--grace", "7s"], "trap '' TERM; echo $$ > main; while :; do sleep 0.05; done");
    let main = home.told_pid("main");
    home.does(["stop", &id]);
    assert!(!alive(main), "stop returned before the end");
    let task = home.task(&id);
    assert_eq!((&task["status"], &task["outcome"]["signal"]), (&"stopped".into(), &9.into()), "{task}");
}
