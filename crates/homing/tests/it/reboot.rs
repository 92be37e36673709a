//! The machine was rebooted, as another boot id says: what ran is lost, what was recorded is true, nothing is run again.

use homing_engine::Engine;
use homing_model::{Status, Task, TaskId};
use homing_testkit::{Home, freeze, gate, wait_for};

use super::home;

/// Ends everything at one moment, as a power cut does.
fn cut_power(home: &Home) {
    let mut pids: Vec<_> = home.all_processes().into_iter().map(|process| process.pid).collect();
    pids.extend(home.task_processes().into_iter().map(|process| process.pid));
    home.kill_at_once(&pids);
}

/// What the engine of the next boot says of a task, twice: it stays so.
fn after_boot(home: &Home, id: &str) -> Task {
    let id: TaskId = id.parse().expect("an id");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let look = async || {
        let engine = Engine::builder(home.path())
            .helper(home.program().into())
            .boot_id("another")
            .open()
            .await
            .expect("the home opens");
        engine.task(&id).await.expect("the task is known")
    };
    let task = runtime.block_on(look());
    drop(runtime);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    assert_eq!(runtime.block_on(look()), task);
    task
}

#[test]
fn p2_a_task_that_ran_when_the_machine_went_down_is_lost_to_the_reboot() {
    let home = home();
    let id = home.submit(&[], "echo run >> ran; echo before; sleep 300");
    assert_eq!(home.told("ran"), "run");
    let _ = home.until_status(&id, "running");
    wait_for("its words", || (home.output(&id) == b"before\n").then_some(()));
    cut_power(&home);
    let task = after_boot(&home, &id);
    assert_eq!((task.output.bytes, task.output.dropped), (7, 0));
    let outcome = task.outcome.unwrap();
    assert_eq!(task.status, Status::Lost);
    assert!(outcome.reason.unwrap().contains("reboot"));
    assert_eq!((outcome.exit_code, outcome.signal), (None, None));
    assert_eq!(home.truth("ran"), "run\n");
}

#[test]
fn p2_an_exit_that_was_recorded_before_the_reboot_is_the_truth_after_it() {
    let home = home();
    let id = home.submit(&[], &format!("{}; echo out; exit 23", gate("go")));
    let _ = home.until_status(&id, "running");
    // The ledger does not hear of the end; the record on disk does.
    home.stop_daemon();
    home.open("go");
    wait_for("everybody to leave", || home.all_processes().is_empty().then_some(()));
    let task = after_boot(&home, &id);
    assert_eq!((task.status, task.outcome.unwrap().exit_code), (Status::Failed, Some(23)));
    assert_eq!(task.output.bytes, 4);
}

#[test]
fn p10_an_attempt_that_was_never_begun_is_not_begun_after_a_reboot() {
    let home = home();
    freeze(home.keeper_pid());
    let id = home.submit(&[], "echo run >> ran");
    cut_power(&home);
    let task = after_boot(&home, &id);
    assert_eq!(task.status, Status::Lost);
    assert!(task.outcome.unwrap().reason.unwrap().contains("reboot"));
    assert_eq!(home.truth("ran"), "");
    assert!(home.task_processes().is_empty());
}

#[test]
fn p1_what_ended_before_the_reboot_is_not_changed_by_it() {
    let home = home();
    let id = home.submit(&[], "exit 3");
    let before = home.ended(&id);
    cut_power(&home);
    let task = after_boot(&home, &id);
    assert_eq!(serde_json::to_value(&task.outcome).unwrap(), before["outcome"]);
    assert_eq!(task.status, Status::Failed);
}
