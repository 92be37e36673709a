//! The keeper is killed, alone or with the daemon: what is owed is carried on by itself.

use std::time::Duration;

use homing_sys::process;
use homing_testkit::{alive, drift, gate, wait_for};

use super::home;

#[test]
fn p4_a_killed_keeper_is_replaced_and_its_tasks_are_not_touched() {
    let home = home();
    let id = home.submit(&[], &format!("echo run >> ran; {}; exit 4", gate("go")));
    let _ = home.until_status(&id, "running");
    let (daemon, keeper) = (home.daemon_pid(), home.keeper_pid());
    home.kill_at_once(&[keeper]);
    let next = wait_for("the next keeper", || {
        home.processes("homing-keeper").into_iter().map(|process| process.pid).find(|pid| *pid != keeper)
    });
    // It took the daemon over as it found it.
    assert_eq!((home.daemon_pid(), home.keeper_pid()), (daemon, next));
    assert_eq!(home.cli(["run", "--wait", "--", "true"]).code, 0);
    home.open("go");
    assert_eq!(home.ended(&id)["outcome"]["exit_code"], 4);
    assert_eq!(home.truth("ran"), "run\n");
}

#[test]
fn p4_a_keeper_that_came_later_restarts_a_daemon_that_is_not_its_child() {
    let home = home();
    let (daemon, keeper) = (home.daemon_pid(), home.keeper_pid());
    home.kill_at_once(&[keeper]);
    wait_for("the next keeper", || {
        home.processes("homing-keeper").into_iter().find(|process| process.pid != keeper)
    });
    assert_ne!(home.keeper_pid(), keeper);
    home.kill_at_once(&[daemon]);
    let next = home.next_daemon(daemon);
    assert_eq!(home.daemon_pid(), next);
}

#[test]
fn p4_with_daemon_and_keeper_killed_a_task_ends_and_brings_them_back() {
    let home = home();
    let id = home.submit(&[], &format!("echo run >> ran; {}; echo end; exit 6", gate("go")));
    let _ = home.until_status(&id, "running");
    let (daemon, keeper) = (home.daemon_pid(), home.keeper_pid());
    home.kill_at_once(&[daemon, keeper]);
    home.open("go");
    // Nobody asks anything of homing until the daemon is there by itself.
    let next = home.next_daemon(daemon);
    let keeper = wait_for("the keeper", || home.processes("homing-keeper").pop());
    assert_eq!(process::stat(next).unwrap().parent, keeper.pid);
    let task = home.ended(&id);
    assert_eq!((&task["status"], &task["outcome"]["exit_code"]), (&"failed".into(), &6.into()), "{task}");
    assert_eq!((home.truth("ran"), home.output(&id)), ("run\n".into(), b"end\n".to_vec()));
}

#[test]
fn p4_the_first_task_to_end_revives_and_the_others_are_adopted() {
    let home = home();
    let ids: Vec<_> = (0..3)
        .map(|number| {
            home.submit(
                &[],
                &format!("echo run >> ran{number}; {}; exit {number}", gate(&format!("go{number}"))),
            )
        })
        .collect();
    for id in &ids {
        let _ = home.until_status(id, "running");
    }
    let (daemon, keeper) = (home.daemon_pid(), home.keeper_pid());
    home.kill_at_once(&[daemon, keeper]);
    home.open("go1");
    let _ = home.next_daemon(daemon);
    assert_eq!(home.task(&ids[0])["status"], "running");
    home.open("go0");
    home.open("go2");
    for (number, id) in ids.iter().enumerate() {
        assert_eq!(home.ended(id)["outcome"]["exit_code"], number);
        assert_eq!(home.truth(&format!("ran{number}")), "run\n");
    }
    wait_for("the shims to leave", || home.processes("homing-shim").is_empty().then_some(()));
    assert_eq!(home.processes("homing-keeper").len(), 1);
}

#[test]
fn p4_shims_that_end_at_one_moment_revive_one_daemon() {
    let home = home();
    let ids: Vec<_> = (0..6).map(|_| home.submit(&[], &format!("{}; echo end", gate("go")))).collect();
    for id in &ids {
        let _ = home.until_status(id, "running");
    }
    let (daemon, keeper) = (home.daemon_pid(), home.keeper_pid());
    home.kill_at_once(&[daemon, keeper]);
    home.open("go");
    let _ = home.next_daemon(daemon);
    for id in &ids {
        assert_eq!(home.ended(id)["status"], "succeeded");
    }
    assert_eq!(home.processes("homing-keeper").len(), 1);
}

#[test]
fn p4_a_stop_on_purpose_is_remembered_when_the_keeper_dies_too() {
    let home = home();
    let id = home.submit(&[], &format!("{}; exit 8", gate("go")));
    let _ = home.until_status(&id, "running");
    let (shim, keeper) = (home.shim_pid(&id), home.keeper_pid());
    home.stop_daemon();
    home.kill_at_once(&[keeper]);
    home.open("go");
    wait_for("the shim to leave", || (!alive(shim)).then_some(()));
    assert!(home.all_processes().is_empty(), "{:?}", home.all_processes());
    home.does(["daemon", "start"]);
    assert_eq!(home.task(&id)["outcome"]["exit_code"], 8);
}

/// Kills whom `victims` names at a random moment of a submit, again and again. Every submit is acknowledged, ran once and ended well.
fn sweep(rounds: u64, victims: fn(u32, u32) -> Vec<u32>) {
    let home = home();
    for round in 0..rounds {
        let (daemon, keeper) = (home.daemon_pid(), home.keeper_pid());
        let submitting = home.spawn(["run", "-c", &format!("echo run >> ran{round}")]);
        // A submit takes some 15 ms from process start to answer; the shim starts in the second half of it.
        drift(Duration::from_micros(round * 1_700 % 29_000));
        home.kill_at_once(&victims(daemon, keeper));
        let output = submitting.wait_with_output().expect("the client can be waited for");
        // One kill never costs a submit: the client asks again, and its key makes that the same one.
        assert!(output.status.success(), "round {round}: {}", String::from_utf8_lossy(&output.stderr));
        let task = home.ended(String::from_utf8(output.stdout).expect("an id").trim());
        assert_eq!(task["status"], "succeeded", "round {round}: {task}");
    }
    wait_for("the shims to leave", || home.processes("homing-shim").is_empty().then_some(()));
    for round in 0..rounds {
        assert_eq!(home.truth(&format!("ran{round}")), "run\n", "round {round}");
    }
}

#[test]
fn p10_a_keeper_killed_while_a_shim_is_started_loses_and_doubles_nothing_acknowledged() {
    sweep(20, |_, keeper| vec![keeper]);
}

#[test]
fn p10_a_daemon_killed_while_a_shim_is_started_loses_and_doubles_nothing_acknowledged() {
    sweep(20, |daemon, _| vec![daemon]);
}

#[test]
fn p10_both_killed_while_a_shim_is_started_lose_and_double_nothing_acknowledged() {
    sweep(20, |daemon, keeper| vec![daemon, keeper]);
}
