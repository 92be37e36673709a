//! Waiting without asking again and again, and what stays behind of many who waited.

use std::time::{Duration, Instant};

use homing_testkit::{drift, gate, wait_for};
use serde_json::json;

#[test]
#[expect(clippy::disallowed_methods, reason = "how long it took is what is tested")]
fn a_wait_for_what_has_ended_returns_at_once_and_one_without_time_does_not_wait() {
    let home = super::home();
    let ended = home.submit(&[], "exit 3");
    let _ = home.ended(&ended);
    let running = home.submit(&[], "sleep 1000");
    let _ = home.until_status(&running, "running");
    let begun = Instant::now();
    assert_eq!(home.cli(["wait", &ended]).code, 3);
    assert_eq!(home.get(&format!("/v1/tasks/{ended}/wait?timeout_ms=60000")).status, 200);
    // No time is not the usual time.
    assert_eq!(home.cli(["wait", &running, "--timeout", "0s"]).code, 123);
    assert_eq!(home.get(&format!("/v1/tasks/{running}/wait?timeout_ms=0")).status, 202);
    assert_eq!(home.get("/v1/inbox/nobody?wait_ms=0").json()["items"], json!([]));
    assert!(begun.elapsed() < Duration::from_secs(20), "nobody waited for a minute");
    let _ = home.cli(["stop", &running]).ok();
}

#[test]
fn who_waits_or_reads_outlives_any_number_of_daemons() {
    let home = super::home();
    let id = home.submit(&[], &format!("echo begun; {}; echo over; exit 3", gate("go")));
    let readers = [home.spawn(["wait", &id]), home.spawn(["output", "-f", &id])];
    // More than may pass in a row where nobody was ever there.
    for _ in 0..14 {
        let old = home.kill_daemon();
        let _ = home.next_daemon(old);
        // A daemon that lives for a while: long enough to be asked.
        drift(Duration::from_millis(400));
    }
    home.open("go");
    let [waited, read] = readers.map(|reader| reader.wait_with_output().unwrap());
    assert_eq!(waited.status.code(), Some(3), "{waited:?}");
    assert_eq!((read.status.code(), read.stdout.as_slice()), (Some(0), &b"begun\nover\n"[..]), "{read:?}");
}

#[test]
fn an_offset_of_nothing_is_the_beginning_and_none_at_all_is_what_it_was_meant_for() {
    let home = super::home();
    let id = home.submit(&[], "printf abcdef");
    let _ = home.ended(&id);
    let read = |query: &str| home.get(&format!("/v1/tasks/{id}/output{query}")).body;
    assert_eq!(read("?offset=0"), b"abcdef");
    assert_eq!(read("?offset=4"), b"ef");
    assert_eq!(read("?offset=0&limit=2"), b"ab");
    assert_eq!(read("?tail=0"), b"", "the last none of it");
    assert_eq!(read(""), b"abcdef");
}

#[test]
fn a_daemon_that_ran_many_tasks_holds_no_more_than_before() {
    let home = super::home();
    let daemon = home.daemon_pid();
    let open = || std::fs::read_dir(format!("/proc/{daemon}/fd")).map_or(0, Iterator::count);
    let _ = home.ended(&home.submit(&[], "true"));
    let before = open();
    let ids: Vec<_> = (0..30).map(|_| home.submit(&["--stdin", "pipe"], "cat")).collect();
    for id in &ids {
        let _ = home.cli(["input", id, "x", "--eof"]).ok();
        let _ = home.ended(id);
    }
    wait_for("the descriptors to be closed", || (open() <= before).then_some(()));
    wait_for("the shims to leave", || home.processes("homing-shim").is_empty().then_some(()));
}
