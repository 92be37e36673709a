//! A client dies while its input waits for a task that does not read: what was not taken is taken back, and others are served.

use homing_testkit::{gate, wait_for};
use rustix::fs::{Mode, OFlags};

use serde_json::json;

use super::home;

/// What a pipe holds.
const PIPE: u64 = 65_536;

#[test]
fn p3_the_largest_piece_that_is_sent_again_comes_once() {
    let home = home();
    let id = home.submit(&["--stdin", "pipe"], "cat");
    let _ = home.until_status(&id, "running");
    let whole: Vec<u8> = (0..1_u32 << 18).flat_map(u32::to_le_bytes).collect();
    let headers = [("content-type", "application/octet-stream")];
    let send = || home.http("POST", &format!("/v1/tasks/{id}/input?piece=7"), &headers, &whole).whole();
    for _ in 0..2 {
        let answer = send();
        assert_eq!((answer.status, &answer.json()["written"]), (200, &json!(whole.len())));
    }
    home.does(["input", &id, "", "--eof"]);
    assert_eq!(home.ended(&id)["status"], "succeeded");
    assert!(home.output(&id) == whole, "{} bytes", home.output(&id).len());
}

#[test]
fn p3_a_piece_that_let_its_task_end_may_be_sent_again() {
    let home = home();
    let id = home.submit(&["--stdin", "pipe"], "cat");
    let _ = home.until_status(&id, "running");
    let headers = [("content-type", "application/octet-stream")];
    let send = |piece: u64, data: &[u8]| {
        let target = format!("/v1/tasks/{id}/input?eof=true&piece={piece}");
        home.http("POST", &target, &headers, data).whole()
    };
    let whole = vec![b'x'; 40_000];
    assert_eq!(send(7, &whole).status, 200);
    assert_eq!(home.ended(&id)["status"], "succeeded");
    // As one does whose answer got lost with its daemon.
    for _ in 0..2 {
        let again = send(7, &whole);
        assert_eq!((again.status, &again.json()["written"]), (200, &json!(whole.len())));
        let _ = home.kill_daemon();
        home.does(["status"]);
    }
    let another = send(99, b"late");
    assert_eq!((another.status, another.json()["code"].as_str()), (409, Some("HM0006")));
    assert_eq!(home.output(&id), whole);
}

#[test]
fn the_input_of_a_client_that_has_gone_gives_way_at_once() {
    let home = home();
    let id = home.submit(&["--stdin", "pipe"], &format!("{}; exec cat", gate("go")));
    let pid = home.until_status(&id, "running")["pid"].as_u64().unwrap();
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let pipe = rustix::fs::open(format!("/proc/{pid}/fd/0"), flags, Mode::empty()).unwrap();
    let mut first = home.spawn(["input", &id, &"x".repeat(100_000)]);
    wait_for("a full pipe", || (rustix::io::ioctl_fionread(&pipe).unwrap() == PIPE).then_some(()));
    first.kill().unwrap();
    first.wait().unwrap();
    // Whoever asks is the only one whose request is not over.
    let alone = "homing_connections{at=\"socket\"} 1\n";
    wait_for("the daemon to notice", || {
        String::from_utf8(home.get("/metrics").body).unwrap().contains(alone).then_some(())
    });
    // Answered by the shim, in order: it has heard all that was said before.
    let heard = home.post(&format!("/v1/tasks/{id}/signal"), &serde_json::json!({ "signal": "CONT" }));
    assert_eq!(heard.status, 200, "{heard:?}");
    drop(pipe);
    home.open("go");
    home.does(["input", &id, "second", "--enter", "--eof"]);
    assert_eq!(home.ended(&id)["status"], "succeeded");
    let output = home.output(&id);
    assert_eq!(output.len() as u64, PIPE + 7, "the rest of the first was not taken back");
    assert!(output.ends_with(b"xsecond\n"));
}
