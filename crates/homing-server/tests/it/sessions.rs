//! Sessions of agents: who says where they are, and who says that they are there no more.

use std::io::Write;
use std::process::{Command, Stdio};

use homing_testkit::wait_for;
use serde_json::json;

use crate::served::{Served, helper};

#[test]
fn p6_a_session_that_was_resumed_elsewhere_does_not_end_with_the_process_that_it_was_in() {
    let served = Served::start();
    let id = served.run("true", &json!({ "owner": "claude:s" }));
    assert_eq!(served.get(&format!("/v1/tasks/{id}/wait?timeout_ms=30000")).status, 200);
    let folder = served.home().parent().unwrap();
    let (asked, answered) = (folder.join("asked"), folder.join("answered"));
    // An agent whose hook asks whenever it is told to.
    let mut agent = Command::new("sh")
        .args(["-c", "while read -r line; do \"$@\"; done", "sh"])
        .args([helper(), "ask".into(), served.socket(), asked.clone(), answered.clone()])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let pid = agent.id();
    let mut hook = |question: String| {
        std::fs::write(&asked, question).unwrap();
        agent.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
        let answer = wait_for("the answer", || std::fs::read_to_string(&answered).ok());
        std::fs::remove_file(&answered).unwrap();
        assert!(answer.contains(" 200 "), "{answer}");
    };
    let bind = json!({ "agent": "claude", "session": "s", "pid": pid });
    hook(format!("POST\t/v1/sessions\t{bind}\n"));
    let notice = served.get("/v1/inbox/claude:s").json()["items"][0]["id"].clone();
    assert_eq!(served.post("/v1/inbox/claude:s/take", &json!({ "ids": [notice] }).to_string()).status, 200);
    let seen = || {
        let bound = served.get("/v1/sessions/claude:s").json()["pid"].as_u64();
        let notices = served.get(&format!("/v1/tasks/{id}")).json()["notices"].clone();
        (bound, notices[0]["inbox"].as_str().unwrap().to_owned())
    };
    assert_eq!(served.ask("DELETE", "/v1/sessions/claude:s", &[], b"").status, 200);
    assert_eq!(seen(), (Some(pid.into()), "held".to_owned()), "it goes on where it is");
    hook("DELETE\t/v1/sessions/claude:s\t\n".to_owned());
    assert_eq!(seen(), (None, "waiting".to_owned()), "the end of a session proves no reading");
    drop(agent.stdin.take());
    assert!(agent.wait().unwrap().success());
}
