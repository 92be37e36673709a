//! A shim is killed with SIGKILL: the truth is `lost`, and its whole tree is gone before anybody is told.

use homing_testkit::{Home, alive, freeze, gate, survivors_go, wait_for};
use serde_json::Value;

use super::home;

/// A tree of every kind: a child, one in a session of its own, one that was orphaned on purpose, and one that clears its environment.
const TREE: &str = "echo run >> ran
sleep 300 & echo $! > child
setsid sh -c 'echo $$ > session; exec sleep 300' &
(setsid sh -c 'echo $$ > orphan; exec sleep 300' & ) &
echo $$ > main
wait";

/// Starts such a tree and answers its task and its pids, the main process's first.
fn plant(home: &Home) -> (String, Vec<u32>) {
    let id = home.submit(&[], TREE);
    let pids = ["main", "child", "session", "orphan"].map(|name| home.told_pid(name)).to_vec();
    let _ = home.until_status(&id, "running");
    assert!(pids.iter().all(|pid| alive(*pid)));
    (id, pids)
}

#[track_caller]
fn assert_lost(home: &Home, task: &Value, pids: &[u32]) {
    let outcome = &task["outcome"];
    assert_eq!(task["status"], "lost", "{task}");
    assert_eq!((&outcome["exit_code"], &outcome["signal"]), (&Value::Null, &Value::Null), "{task}");
    assert!(outcome["reason"].as_str().expect("a reason").contains("supervisor killed"), "{task}");
    survivors_go(task);
    let left: Vec<_> = pids.iter().filter(|pid| alive(**pid)).collect();
    assert!(left.is_empty(), "still there after `lost` was told: {left:?} of {pids:?}");
    assert!(home.task_processes().is_empty());
    assert_eq!(home.truth("ran"), "run\n");
}

#[test]
fn p2_a_killed_shim_is_lost_and_its_whole_tree_is_gone() {
    let home = home();
    let (id, pids) = plant(&home);
    home.kill_at_once(&[home.shim_pid(&id)]);
    let task = home.ended(&id);
    assert_lost(&home, &task, &pids);
    assert_eq!(home.cli(["wait", &id]).code, 121);
    // It stays so, whatever is asked of it afterwards.
    let stopped = home.cli(["stop", &id]).ok();
    assert!(stopped.text().contains("already ended: lost"), "{}", stopped.text());
    assert_eq!(home.task(&id), task);
}

#[test]
fn p7_what_a_lost_task_printed_is_counted_and_told_and_makes_room_in_its_time() {
    let home = home();
    let id = home.submit(&[], "head -c 3000000 /dev/zero; echo last words; sleep 300");
    wait_for("its output", || (home.task(&id)["output"]["bytes"] == 3_000_011).then_some(()));
    home.kill_at_once(&[home.shim_pid(&id)]);
    let task = home.ended(&id);
    assert_eq!(task["status"], "lost", "{task}");
    assert_eq!((&task["output"]["bytes"], &task["output"]["dropped"]), (&3_000_011.into(), &0.into()));
    let notices = home.cli(["inbox", "--json"]).ok().text();
    assert!(notices.contains("last words"), "{notices}");
    std::fs::write(home.path().join("config.toml"), "[retention]\nbytes = \"1MB\"\n").unwrap();
    home.does(["daemon", "restart"]);
    home.does(["gc"]);
    assert_eq!(home.task(&id)["forgotten"], true);
}

#[test]
fn p8_orphans_that_no_keeper_inherited_are_ended_all_the_same() {
    let home = home();
    let (id, pids) = plant(&home);
    let (shim, keeper) = (home.shim_pid(&id), home.keeper_pid());
    home.kill_at_once(&[keeper]);
    wait_for("the next keeper", || {
        home.processes("homing-keeper").into_iter().find(|process| process.pid != keeper)
    });
    home.kill_at_once(&[shim]);
    assert_lost(&home, &home.ended(&id), &pids);
}

#[test]
fn p2_a_shim_and_the_daemon_killed_at_once_are_told_apart_from_an_end() {
    let home = home();
    let (id, pids) = plant(&home);
    home.kill_at_once(&[home.shim_pid(&id), home.daemon_pid()]);
    assert_lost(&home, &home.ended(&id), &pids);
}

#[test]
fn p2_everybody_killed_at_once_is_lost_at_the_next_start() {
    let home = home();
    let (id, pids) = plant(&home);
    home.kill_at_once(&[home.shim_pid(&id), home.daemon_pid(), home.keeper_pid()]);
    assert!(alive(pids[0]));
    assert_lost(&home, &home.ended(&id), &pids);
}

#[test]
fn p2_a_shim_killed_while_the_daemon_was_stopped_is_lost_at_its_next_start() {
    let home = home();
    let (id, pids) = plant(&home);
    let shim = home.shim_pid(&id);
    home.stop_daemon();
    home.kill_at_once(&[shim]);
    home.does(["daemon", "start"]);
    assert_lost(&home, &home.task(&id), &pids);
}

#[test]
fn p8_a_process_without_our_variables_is_ended_by_the_keeper_that_inherits_it() {
    let home = home();
    let line = "(setsid env -i PATH=\"$PATH\" sh -c 'echo $$ > bare; exec sleep 300' &) & wait; sleep 300";
    let id = home.submit(&[], line);
    let bare = home.told_pid("bare");
    home.kill_at_once(&[home.shim_pid(&id)]);
    assert_eq!(home.ended(&id)["status"], "lost");
    wait_for("the end of the bare process", || (!alive(bare)).then_some(()));
}

#[test]
fn p2_one_killed_shim_takes_nobody_else_along() {
    let home = home();
    let (id, pids) = plant(&home);
    let other = home.submit(&[], &format!("sleep 300 & echo $! > other; {}; kill %1; exit 2", gate("go")));
    let neighbour = home.told_pid("other");
    home.kill_at_once(&[home.shim_pid(&id)]);
    assert_lost_but(&home, &home.ended(&id), &pids);
    assert!(alive(neighbour));
    home.open("go");
    assert_eq!(home.ended(&other)["outcome"]["exit_code"], 2);
}

fn assert_lost_but(home: &Home, task: &Value, pids: &[u32]) {
    assert_eq!(task["status"], "lost", "{task}");
    assert!(!pids.iter().any(|pid| alive(*pid)));
    assert!(!home.task_processes().is_empty());
}

#[test]
fn p2_a_shim_killed_after_its_record_was_written_does_not_hide_the_outcome() {
    let home = home();
    let id = home.submit(&[], &format!("{}; exit 12", gate("go")));
    let _ = home.until_status(&id, "running");
    let (shim, daemon, keeper) = (home.shim_pid(&id), home.daemon_pid(), home.keeper_pid());
    // Nobody confirms: the shim writes its record and waits for a word that does not come.
    freeze(daemon);
    home.open("go");
    let record = home.path().join("tasks").join(&id).join("exit");
    wait_for("the record", || record.exists().then_some(()));
    home.kill_at_once(&[shim, daemon, keeper]);
    assert_eq!(home.ended(&id)["outcome"]["exit_code"], 12);
}
