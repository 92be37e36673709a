//! A foreign process that is watched to its end: noticed whoever lives then, never mistaken for another, and its exit never invented.

use std::process::{Child, Command, Stdio};

use homing_store::Tracking;
use homing_sys::{boot, process};
use homing_testkit::{Home, wait_for};
use serde_json::{Value, json};

use super::external::plant;

/// A process that homing did not start; ended and buried with this.
struct Foreign(Child);

impl Foreign {
    fn new() -> Self {
        let mut command = Command::new("sleep");
        command.arg("1000").stdin(Stdio::null()).stdout(Stdio::null());
        Self(command.spawn().expect("it starts"))
    }

    fn pid(&self) -> u32 {
        self.0.id()
    }

    /// Ends it; nothing of it is left then.
    fn end(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        self.end();
    }
}

fn track(home: &Home, pid: u32) -> String {
    home.cli(["track", "--pid", &pid.to_string()]).ok().text()
}

fn assert_lost(task: &Value, pid: u32) {
    assert_eq!((&task["status"], &task["answer_state"]), (&"lost".into(), &"failed".into()));
    let reason = format!("process {pid} ended; how is not known, since homing did not start it");
    assert_eq!(task["outcome"]["reason"], reason);
    assert_eq!(task["answer"], format!("(background task failed: {reason})"));
    assert_eq!((&task["outcome"]["exit_code"], &task["outcome"]["signal"]), (&Value::Null, &Value::Null));
}

/// Descriptors of processes that the daemon holds.
fn held(daemon: u32) -> usize {
    let Ok(entries) = std::fs::read_dir(format!("/proc/{daemon}/fd")) else { return 0 };
    let links = entries.flatten().filter_map(|entry| std::fs::read_link(entry.path()).ok());
    links.filter(|link| link.to_string_lossy().contains("pidfd")).count()
}

#[test]
fn p2_the_end_of_a_foreign_process_is_noticed_and_its_code_not_invented() {
    let home = super::home();
    let mut foreign = Foreign::new();
    let id = track(&home, foreign.pid());
    let task = home.task(&id);
    assert_eq!((&task["status"], &task["pid"]), (&"running".into(), &foreign.pid().into()));
    assert_eq!((&task["lease_ms"], &task["lease_until"]), (&Value::Null, &Value::Null));
    assert!(home.cli(["heartbeat", &id]).ok().text().contains("ends with process"));
    foreign.end();
    assert_lost(&home.ended(&id), foreign.pid());
}

#[test]
fn p1_what_was_completed_before_its_process_ended_stays_so() {
    let home = super::home();
    let mut foreign = Foreign::new();
    let (completed, stopped) = (track(&home, foreign.pid()), track(&home, foreign.pid()));
    let daemon = home.daemon_pid();
    let idle = held(daemon) - 2;
    let _ = home.cli(["complete", &completed, "--answer", "done"]).ok();
    let _ = home.cli(["stop", &stopped]).ok();
    wait_for("the descriptors to be closed", || (held(daemon) == idle).then_some(()));
    assert!(process::stat(foreign.pid()).is_some_and(|process| !process.zombie), "nothing was signalled");
    foreign.end();
    let mut later = Foreign::new();
    let other = track(&home, later.pid());
    later.end();
    assert_lost(&home.ended(&other), later.pid());
    assert_eq!(home.task(&completed)["answer"], "done");
    assert_eq!(home.task(&stopped)["status"], "stopped");
}

#[test]
fn p4_the_end_is_noticed_whoever_lives_then() {
    let home = super::home();
    let (mut first, mut second) = (Foreign::new(), Foreign::new());
    let (early, late) = (track(&home, first.pid()), track(&home, second.pid()));
    home.kill_at_once(&[home.daemon_pid()]);
    first.end();
    assert_lost(&home.ended(&early), first.pid());
    assert_eq!(home.task(&late)["status"], "running", "it is watched on");
    home.stop_daemon();
    second.end();
    assert_lost(&home.ended(&late), second.pid());
}

#[test]
fn p2_a_process_that_only_has_the_number_is_not_taken_for_it() {
    let home = super::home();
    let foreign = Foreign::new();
    let pid = foreign.pid();
    let _ = home.daemon_pid();
    home.stop_daemon();
    wait_for("everybody to leave", || home.all_processes().is_empty().then_some(()));
    let start = process::stat(pid).expect("it runs").start;
    let now = homing_model::Timestamp::from_millis(0);
    let same = plant(&home, 1, Tracking::Process { pid, start }, boot::id().unwrap(), now);
    let recycled = plant(&home, 2, Tracking::Process { pid, start: start - 1 }, boot::id().unwrap(), now);
    let rebooted = plant(&home, 3, Tracking::Process { pid, start }, "another boot".into(), now);
    assert_lost(&home.ended(&recycled), pid);
    let rebooted = home.ended(&rebooted);
    assert_eq!(
        (&rebooted["status"], &rebooted["outcome"]["reason"]),
        (&"lost".into(), &"machine rebooted".into())
    );
    assert_eq!(home.task(&same)["status"], "running");
}

#[test]
fn what_is_no_living_process_is_refused() {
    let home = super::home();
    let mut foreign = Foreign::new();
    foreign.end();
    let gone = home.cli(["track", "--pid", &foreign.pid().to_string()]);
    assert_eq!(gone.code, 2);
    assert!(gone.stderr.contains("no such process"), "{}", gone.stderr);
    for pid in ["0", "-1", "x", "4294967296"] {
        assert_eq!(home.cli(["track", "--pid", pid]).code, 2, "{pid}");
    }
    let daemon = home.daemon_pid();
    let threads = std::fs::read_dir(format!("/proc/{daemon}/task")).expect("it runs").flatten();
    let ids = threads.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let thread = ids.into_iter().find(|id| *id != daemon).expect("it has threads");
    for pid in [json!(0), json!(-1), json!(foreign.pid()), json!(thread), json!("1")] {
        let refused = home.post("/v1/tasks", &json!({ "kind": "external", "pid": pid }));
        assert_eq!((refused.status, &refused.json()["code"]), (422, &"HM0003".into()), "{pid}");
    }
    assert_eq!(home.get("/v1/status").json()["tasks"]["running"], 0);
}

#[test]
fn p10_a_request_that_is_repeated_after_its_process_ended_is_the_same_task() {
    let home = super::home();
    let mut foreign = Foreign::new();
    let _ = home.daemon_pid();
    let body = json!({ "kind": "external", "pid": foreign.pid() }).to_string();
    let headers = [("content-type", "application/json"), ("idempotency-key", "once")];
    let post = || home.http("POST", "/v1/tasks", &headers, body.as_bytes()).whole();
    let created = post();
    assert_eq!(created.status, 201);
    foreign.end();
    let again = post();
    assert_eq!(again.status, 201);
    assert_eq!(again.json()["id"], created.json()["id"]);
}
