//! A disk that is full to the last byte: what must be written still is, and homing itself can make room.
//!
//! A disk of one's own can only be had by root; where the tests run as somebody else, they say so and pass.
#![expect(
    clippy::unwrap_used,
    reason = "in a test, a panic is the report; helpers outside of #[test] are tests too"
)]

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;

use homing_testkit::{Home, left_out, wait_for};
use serde_json::json;

fn small_disk() -> Option<Home> {
    let home = Home::on_tmpfs(env!("CARGO_BIN_EXE_homing"), 6 << 20);
    if home.is_none() {
        left_out("no disk can be mounted here");
    }
    home
}

/// Takes all the room there is, down to the last page; more than once, since others may make some.
fn fill(home: &Home) {
    let mut ballast = File::options().append(true).create(true).open(home.path().join("ballast")).unwrap();
    while ballast.write(&[0; 4096]).is_ok_and(|count| count > 0) {}
}

fn log(home: &Home) -> u64 {
    std::fs::metadata(home.path().join("homing.db-wal")).map_or(0, |found| found.len())
}

fn reserve(home: &Home) -> u64 {
    std::fs::metadata(home.path().join("homing.db.reserve")).unwrap().len()
}

#[test]
fn p2_ends_are_recorded_on_a_full_disk() {
    let Some(home) = small_disk() else { return };
    let ids: Vec<_> = (0..12).map(|_| home.submit(&["--stdin", "pipe"], "read line; exit 7")).collect();
    for id in &ids {
        let _ = home.until_status(id, "running");
    }
    for id in &ids {
        fill(&home);
        let _ = home.cli(["input", id, "go", "--enter"]).ok();
        // It is the ledger that answers, while the disk is full.
        let task = home.ended(id);
        assert_eq!((&task["status"], &task["outcome"]["exit_code"]), (&"failed".into(), &7.into()), "{task}");
    }
    wait_for("the shims to leave", || home.processes("homing-shim").is_empty().then_some(()));
    std::fs::remove_file(home.path().join("ballast")).unwrap();
    assert_eq!(home.cli(["run", "--wait", "-c", "exit 3"]).code, 3);
    assert_eq!(reserve(&home), 1 << 20, "it is taken again when there is room");
}

#[test]
fn p2_large_ends_at_once_are_recorded_on_a_full_disk() {
    let home = Home::on_tmpfs(env!("CARGO_BIN_EXE_homing"), 16 << 20);
    let Some(home) = home else { return left_out("no disk can be mounted here") };
    let _ = home.daemon_pid();
    let labels: BTreeMap<_, _> = (0..16).map(|n| (format!("label{n}"), "v".repeat(1_000))).collect();
    let gate = home.scratch().join("gate");
    let line =
        format!("until [ -e '{}' ]; do sleep 0.2; done; exit 7 #{}", gate.display(), "c".repeat(4_096));
    let spec = json!({ "shell": line, "labels": labels, "description": "d".repeat(2_000), "notify": { "on": "always", "targets": ["inbox"] } });
    let submit = || home.post("/v1/tasks", &spec).json()["id"].as_str().unwrap().to_owned();
    let ids: Vec<_> = (0..40).map(|_| submit()).collect();
    for id in &ids {
        let _ = home.until_status(id, "running");
    }
    fill(&home);
    std::fs::write(gate, "").unwrap();
    for id in &ids {
        fill(&home);
        let task = home.ended(id);
        assert_eq!((&task["status"], &task["outcome"]["exit_code"]), (&"failed".into(), &7.into()), "{task}");
    }
    fill(&home);
    for id in &ids {
        let _ = home.cli(["forget", id]).ok();
    }
}

#[test]
fn p2_ends_with_long_answers_are_recorded_on_a_full_disk() {
    let home = Home::on_tmpfs(env!("CARGO_BIN_EXE_homing"), 16 << 20);
    let Some(home) = home else { return left_out("no disk can be mounted here") };
    let gate = home.scratch().join("gate");
    let script = format!(
        "head -c 60000 /dev/zero | tr '\\\\0' a; until [ -e '{}' ]; do sleep 0.2; done",
        gate.display()
    );
    let config = format!("[agents.long]\nargv = [\"sh\", \"-c\", \"{script}\"]\nanswer = \"stdout\"\n");
    std::fs::write(home.path().join("config.toml"), config).unwrap();
    let ask = ["ask", "--agent", "long", "x", "--json"];
    let submit = || home.cli(ask).ok().json()["id"].as_str().unwrap().to_owned();
    let ids: Vec<_> = (0..30).map(|_| submit()).collect();
    for id in &ids {
        wait_for("the answer to be printed", || (home.output(id).len() == 60_000).then_some(()));
    }
    fill(&home);
    std::fs::write(gate, "").unwrap();
    for id in &ids {
        fill(&home);
        let task = home.ended(id);
        assert_eq!((&task["status"], &task["answer_state"]), (&"succeeded".into(), &"ok".into()), "{task}");
        let answer = task["answer"].as_str().unwrap();
        let cut = answer.ends_with("\n[cut: the disk was full; 60000 bytes in all]");
        assert!(answer.starts_with("aaaa") && (cut || answer.len() == 60_000), "{answer}");
    }
}

#[test]
fn p12_forget_and_gc_make_room_on_a_full_disk() {
    let Some(home) = small_disk() else { return };
    let small: Vec<_> = (0..24).map(|_| home.submit(&[], "true")).collect();
    let large = home.submit(&[], "head -c 1500000 /dev/zero");
    for id in small.iter().chain([&large]) {
        let _ = home.ended(id);
    }
    wait_for("the shims to leave", || home.processes("homing-shim").is_empty().then_some(()));
    fill(&home);
    for id in &small {
        let _ = home.cli(["forget", id]).ok();
        assert_eq!(home.task(id)["forgotten"], true);
    }
    fill(&home);
    let refused = home.cli(["run", "--", "true"]);
    assert!(refused.code == 1 && refused.stderr.contains("HM0012"), "{refused:?}");
    let _ = home.cli(["gc"]).ok();
    let _ = home.cli(["forget", &large]).ok();
    wait_for("a submit that works", || (home.cli(["run", "--wait", "-c", "exit 3"]).code == 3).then_some(()));
    assert_eq!(home.task(&large)["forgotten"], true);
    let _ = home.cli(["doctor"]).ok();
}

#[test]
fn p6_what_a_call_confirms_is_gone_on_a_full_disk() {
    let Some(home) = small_disk() else { return };
    let owner = "claude:s1";
    let own = |arguments: &[&str]| {
        let output = home.command().args(arguments).env("HOMING_OWNER", owner).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    };
    let ids: Vec<_> = (0..24).map(|_| home.submit(&["--owner", owner], "true")).collect();
    for id in &ids {
        let _ = home.ended(id);
    }
    wait_for("the shims to leave", || home.processes("homing-shim").is_empty().then_some(()));
    for (count, id) in ids.iter().enumerate() {
        own(&["wait", id]);
        fill(&home);
        own(&["forget", id]);
        let owners = home.get("/v1/inbox").json();
        let open = owners["items"].as_array().unwrap().first().map_or(0, |one| one["open"].as_u64().unwrap());
        assert_eq!(open, 23 - count as u64, "what was told is acknowledged");
        std::fs::remove_file(home.path().join("ballast")).unwrap();
    }
}

#[test]
fn p2_a_small_disk_is_not_filled_by_the_log() {
    let home = Home::on_tmpfs(env!("CARGO_BIN_EXE_homing"), 16 << 20);
    let Some(home) = home else { return left_out("no disk can be mounted here") };
    let config = "[reconcile]\ninterval = \"1h\"\n[retention]\ncount = 100\n";
    std::fs::write(home.path().join("config.toml"), config).unwrap();
    // The log's share of so small a disk is its least, and a commit may be written beyond it.
    let bound = (512 << 10) + (128 << 10);
    let mut ended = Vec::new();
    for _ in 0..30 {
        for _ in 0..10 {
            ended.push(home.submit(&[], "true"));
        }
        assert!(log(&home) <= bound, "{} bytes after {} tasks", log(&home), ended.len());
    }
    let live: Vec<_> = (0..20).map(|_| home.submit(&["--stdin", "pipe"], "read line; exit 7")).collect();
    for id in ended.iter().chain(&live) {
        let _ = home.until_status(id, if live.contains(id) { "running" } else { "succeeded" });
    }
    // Ends and forgetting take turns, and each time all that became free is gone before the next.
    for (one, old) in live.iter().zip(&ended) {
        fill(&home);
        let _ = home.cli(["input", one, "go", "--enter"]).ok();
        assert_eq!(home.ended(one)["outcome"]["exit_code"], 7);
        fill(&home);
        let _ = home.cli(["forget", old]).ok();
    }
    fill(&home);
    let _ = home.kill_daemon();
    fill(&home);
    let _ = home.cli(["forget", &ended[30]]).ok();
    fill(&home);
    let _ = home.cli(["gc"]).ok();
    assert_eq!(home.task(&ended[100])["forgotten"], true);
    assert!(log(&home) <= bound, "{} bytes", log(&home));
    let _ = home.cli(["doctor"]).ok();
}

#[test]
fn an_address_of_the_page_that_a_full_disk_prevents_says_so() {
    let Some(home) = small_disk() else { return };
    let _ = home.daemon_pid();
    fill(&home);
    let refused = home.cli(["web", "--no-open"]);
    assert!(refused.code == 1 && refused.stderr.contains("HM0012"), "{refused:?}");
}
