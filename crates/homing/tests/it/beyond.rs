//! A task whose main process is another user's, which nobody of the home can end: that is said, with its name, and never hidden.

use std::path::Path;

use homing_testkit::{Home, wait_for};
use serde_json::{Value, json};

use super::pause_refused::{as_nobody, has_risen, of_nobody};

/// Submits a main process that is root's; answers the task and its pid.
fn rise(home: &Home, program: &Path) -> (String, u32) {
    let main = ["./rises", "--reuid=0", "--regid=0", "--clear-groups", "sleep", "1000"];
    let words: Vec<_> = ["run", "--"].into_iter().chain(main).collect();
    let id = as_nobody(home, program, &words).ok().text();
    let pid = wait_for("its start", || {
        let task = show(home, program, &id);
        u32::try_from(task["pid"].as_u64()?).ok().filter(|_| task["status"] == "running")
    });
    wait_for("it to be root's", || has_risen(pid));
    (id, pid)
}

fn show(home: &Home, program: &Path, id: &str) -> Value {
    as_nobody(home, program, &["show", id, "--json"]).ok().json()
}

#[test]
fn p8_a_main_process_that_nobody_can_end_is_named_when_its_shim_was_killed() {
    let Some((home, program)) = of_nobody() else { return };
    let (id, pid) = rise(&home, &program);
    home.kill_at_once(&[homing_sys::process::stat(pid).expect("it runs").parent]);
    let task = wait_for("the end of the task", || {
        Some(show(&home, &program, &id)).filter(|task| !task["outcome"].is_null())
    });
    let lives = has_risen(pid);
    home.kill(pid);
    assert_eq!((&task["status"], lives), (&json!("lost"), Some(())), "{task}");
    assert_eq!(task["outcome"]["survivors"], json!([{ "pid": pid, "name": "sleep" }]), "{task}");
}

#[test]
fn p8_a_stop_that_ended_nothing_fails_and_names_who_is_in_the_way() {
    let Some((home, program)) = of_nobody() else { return };
    let (id, pid) = rise(&home, &program);
    let asked = as_nobody(&home, &program, &["stop", "--grace", "100ms", &id]);
    let then = show(&home, &program, &id);
    home.kill(pid);
    assert_eq!((asked.code, &then["status"]), (1, &json!("stopping")), "{} {then}", asked.stderr);
    assert!(asked.stderr.contains(&format!("its process {pid} (sleep, of user 0)")), "{}", asked.stderr);
    let task = wait_for("the end of the task", || {
        Some(show(&home, &program, &id)).filter(|task| !task["outcome"].is_null())
    });
    assert_eq!((&task["status"], &task["outcome"]["signal"]), (&json!("stopped"), &json!(9)), "{task}");
}
