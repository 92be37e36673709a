//! Kills in the middle of a submit: an acknowledged task ran exactly once, any other at most once.

use std::time::Duration;

use homing_engine::{Caller, Engine, WaitMode};
use homing_model::{Spec, Status};
use homing_store::store::Filter;
use homing_testkit::{drift, wait_for};

use super::home;

const ROUNDS: u64 = 20;

#[test]
fn p9_every_acknowledged_submit_runs_once_though_the_daemon_dies_meanwhile() {
    let home = home();
    let _ = home.daemon_pid();
    let mut acknowledged = Vec::new();
    for round in 0..ROUNDS {
        let submitting = home.spawn(["run", "-c", &format!("echo run >> ran{round}; exit {round}")]);
        drift(Duration::from_micros(round * 3_100 % 23_000));
        let _ = home.kill_daemon();
        let output = submitting.wait_with_output().unwrap();
        assert!(output.status.success(), "round {round}: {}", String::from_utf8_lossy(&output.stderr));
        acknowledged.push((round, String::from_utf8(output.stdout).unwrap().trim().to_owned()));
        // One kill for each submit: the next one begins with a daemon that answers.
        let _ = home.daemon_pid();
    }
    for (round, id) in &acknowledged {
        assert_eq!(home.ended(id)["outcome"]["exit_code"], *round);
        assert_eq!(home.truth(&format!("ran{round}")), "run\n", "round {round}");
    }
    // A submit that was repeated left no second task behind.
    let all = home.cli(["list", "--all", "--json"]).ok().json();
    assert_eq!(all["items"].as_array().unwrap().len() as u64, ROUNDS);
}

#[test]
fn p10_a_submit_whose_client_and_daemon_die_together_runs_at_most_once() {
    let home = home();
    let _ = home.daemon_pid();
    for round in 0..ROUNDS {
        let mut submitting = home.spawn(["run", "-c", &format!("echo run >> ran{round}")]);
        drift(Duration::from_micros(round * 2_300 % 23_000));
        let daemon = wait_for("the daemon", || home.find_daemon()).pid;
        home.kill_at_once(&[submitting.id(), daemon]);
        submitting.wait().unwrap();
    }
    // What was committed is run; what was not has left nothing, not even a folder.
    let list = || home.cli(["list", "--all", "--json"]).ok().json();
    let items = wait_for("every task's end", || {
        let items = list()["items"].as_array().unwrap().clone();
        items.iter().all(|task| !task["ended_at"].is_null()).then_some(items)
    });
    assert!(items.iter().all(|task| task["status"] == "succeeded"), "{items:?}");
    let ran: Vec<_> = (0..ROUNDS).map(|round| home.truth(&format!("ran{round}"))).collect();
    assert!(ran.iter().all(|lines| lines.is_empty() || lines == "run\n"), "{ran:?}");
    assert_eq!(ran.iter().filter(|lines| !lines.is_empty()).count(), items.len());
    assert_eq!(std::fs::read_dir(home.path().join("tasks")).unwrap().count(), items.len());
}

#[test]
fn p9_an_acknowledged_submit_survives_the_death_of_everybody() {
    let home = home();
    for round in 0..6 {
        let (daemon, keeper) = (home.daemon_pid(), home.keeper_pid());
        let id = home.submit(&[], &format!("echo run >> ran{round}"));
        home.kill_at_once(&[daemon, keeper]);
        assert_eq!(home.ended(&id)["status"], "succeeded");
        assert_eq!(home.truth(&format!("ran{round}")), "run\n");
    }
}

#[tokio::test]
async fn p4_a_task_whose_submitter_lost_interest_in_the_middle_is_started_all_the_same() {
    let home = home();
    let engine = Engine::builder(home.path()).helper(home.program().into()).open().await.unwrap();
    for round in 0..10 {
        let spec = Spec { shell: Some("exit 3".into()), key: Some(format!("k{round}")), ..Spec::default() };
        // Given up after its first step, or somewhere on its way.
        let submitting = engine.submit(spec.clone(), Caller::default(), None);
        let _ = tokio::time::timeout(Duration::from_micros(round * 300), submitting).await;
        // A key that is in use joins, so this is the same task if there is one, and another if it has ended.
        let again = engine.submit(spec, Caller::default(), None).await.unwrap().task.id;
        let ended = engine.wait(&[again], WaitMode::All, Some(Duration::from_secs(30))).await.unwrap();
        assert_eq!(ended.items[0].status, Status::Failed, "round {round}: {ended:?}");
    }
    let left = engine.list(Filter { limit: 100, ..Filter::default() }).await.unwrap();
    assert!(left.items.iter().all(|task| task.status == Status::Failed), "{left:?}");
}
