//! Children that outlive the main process: a server put into the background by a shell.

use std::path::PathBuf;

use homing_sys::process;
use homing_testkit::{Home, alive, freeze, gate, thaw, wait_for};

use super::home;

const SERVER: &str = "(echo $BASHPID > server; until [ -e say ]; do sleep 0.01; done; echo later; echo err >&2; sleep 300) & echo started";

/// A task that has ended and its server that lives.
fn serve(home: &Home) -> (String, u32) {
    let id = home.submit(&[], SERVER);
    let server = home.told_pid("server");
    let task = home.ended(&id);
    assert_eq!((&task["status"], &task["outcome"]["exit_code"]), (&"succeeded".into(), &0.into()), "{task}");
    let survivors = task["outcome"]["survivors"].as_array().expect("a list");
    assert!(survivors.iter().any(|survivor| survivor["pid"] == server), "{task}");
    assert!(alive(server));
    (id, server)
}

fn until_output(home: &Home, id: &str, whole: &str) {
    wait_for(&format!("the output to be {whole:?}"), || (home.output(id) == whole.as_bytes()).then_some(()));
}

/// A shim that takes its time to leave is taken for children that live.
fn shims_leave(home: &Home) {
    wait_for("the shim to leave", || home.processes("homing-shim").is_empty().then_some(()));
}

fn folder(home: &Home, id: &str) -> PathBuf {
    home.path().join("tasks").join(id)
}

#[test]
fn p7_a_server_in_the_background_lives_and_its_later_output_is_kept() {
    let home = home();
    let (id, server) = serve(&home);
    assert_eq!(home.output(&id), b"started\n");
    home.open("say");
    until_output(&home, &id, "started\nlater\nerr\n");
    assert!(alive(server));
}

#[test]
fn p8_stop_ends_what_a_finished_task_left_and_changes_nothing_else() {
    let home = home();
    let (id, server) = serve(&home);
    let before = home.task(&id);
    let stopped = home.cli(["stop", &id]).ok();
    assert!(stopped.text().contains("already ended: succeeded"), "{}", stopped.text());
    assert!(!alive(server), "stop returned before the server was gone");
    home.nothing_left();
    let after = home.task(&id);
    assert_eq!(
        (&after["status"], &after["outcome"], &after["ended_at"]),
        (&before["status"], &before["outcome"], &before["ended_at"])
    );
    shims_leave(&home);
}

#[test]
fn p8_stop_ends_what_was_left_also_after_a_daemon_restart() {
    let home = home();
    let (id, server) = serve(&home);
    let _ = home.kill_daemon();
    home.open("say");
    until_output(&home, &id, "started\nlater\nerr\n");
    assert!(alive(server));
    home.does(["stop", &id]);
    assert!(!alive(server), "stop returned before the server was gone");
    assert_eq!(home.task(&id)["status"], "succeeded");
    shims_leave(&home);
}

#[test]
fn p3_a_server_keeps_its_output_while_nobody_but_its_shim_is_there() {
    let home = home();
    let (id, server) = serve(&home);
    let keeper = home.keeper_pid();
    home.stop_daemon();
    home.kill_at_once(&[keeper]);
    home.open("say");
    let path = home.path().join("tasks").join(&id).join("output.log");
    wait_for("the later output", || std::fs::read(&path).unwrap().ends_with(b"later\nerr\n").then_some(()));
    assert!(alive(server) && home.find_daemon().is_none());
    until_output(&home, &id, "started\nlater\nerr\n");
}

#[test]
fn a_stubborn_leftover_is_ended_after_the_grace() {
    let home = home();
    let line = "(trap '' TERM; echo $BASHPID > server; while :; do sleep 0.01; done) & until [ -s server ]; do sleep 0.01; done";
    let id = home.submit(&["--grace", "200ms"], line);
    let server = home.told_pid("server");
    assert_eq!(home.ended(&id)["status"], "succeeded");
    home.does(["stop", &id]);
    assert!(!alive(server));
}

#[test]
fn p7_a_grandchild_that_still_writes_does_not_hold_the_end_up_nor_lose_its_bytes() {
    let home = home();
    let id = home.submit(&[], "(for i in $(seq 60); do echo $i; sleep 0.02; done) & exit 4");
    let task = home.ended(&id);
    assert_eq!(task["outcome"]["exit_code"], 4);
    let whole: String = (1..=60).map(|n| format!("{n}\n")).collect();
    until_output(&home, &id, &whole);
    shims_leave(&home);
    assert_eq!(home.task(&id)["outcome"]["exit_code"], 4);
}

#[test]
fn a_leftover_that_ends_by_itself_lets_everything_go() {
    let home = home();
    let id = home.submit(&[], "(until [ -e say ]; do sleep 0.01; done; echo last) & echo first");
    assert_eq!(home.ended(&id)["status"], "succeeded");
    home.open("say");
    shims_leave(&home);
    assert_eq!(home.output(&id), b"first\nlast\n");
    home.nothing_left();
}

#[test]
fn a_task_whose_server_lives_is_not_forgotten_until_the_server_is_gone() {
    let home = home();
    let (id, server) = serve(&home);
    let refused = home.cli(["forget", &id]);
    assert!(refused.code == 1 && refused.stderr.contains("HM0005"), "{refused:?}");
    assert_ne!(home.task(&id)["forgotten"], true);
    home.open("say");
    until_output(&home, &id, "started\nlater\nerr\n");
    home.does(["stop", &id]);
    assert!(!alive(server));
    shims_leave(&home);
    home.does(["forget", &id]);
    assert_eq!(home.task(&id)["forgotten"], true);
    assert!(!folder(&home, &id).exists());
}

#[test]
fn retention_leaves_the_folder_of_a_living_server_and_removes_it_when_the_server_is_gone() {
    let home = home();
    let (id, server) = serve(&home);
    std::fs::write(home.path().join("config.toml"), "[retention]\ncount = 0\n").unwrap();
    let _ = home.cli(["daemon", "restart"]).ok();
    let _ = home.cli(["gc"]).ok();
    wait_for("it to be forgotten", || (home.task(&id)["forgotten"] == true).then_some(()));
    home.open("say");
    let log = folder(&home, &id).join("output.log");
    wait_for("the later output", || std::fs::read(&log).unwrap().ends_with(b"later\nerr\n").then_some(()));
    assert!(alive(server));
    home.does(["stop", &id]);
    assert!(!alive(server), "what is forgotten can still be stopped");
    wait_for("the folder to go", || (!folder(&home, &id).exists()).then_some(()));
}

#[test]
fn a_folder_that_a_crash_left_after_its_task_was_forgotten_is_removed_by_the_next_start() {
    let home = home();
    let id = home.submit(&[], "echo words");
    let kept = home.submit(&[], "echo others");
    for id in [&id, &kept] {
        assert_eq!(home.ended(id)["status"], "succeeded");
    }
    shims_leave(&home);
    home.does(["forget", &id]);
    // As if the daemon had died before it came to the folder.
    std::fs::create_dir(folder(&home, &id)).unwrap();
    for name in ["started", "output.log"] {
        std::fs::write(folder(&home, &id).join(name), "words\n").unwrap();
    }
    // A ledger that was begun anew knows nothing of what is in its home, and it is not its to remove.
    let unknown = folder(&home, "t-2222222222");
    std::fs::create_dir(&unknown).unwrap();
    std::fs::write(unknown.join("started"), "").unwrap();
    let _ = home.kill_daemon();
    let _ = home.cli(["status"]).ok();
    wait_for("the folder to go", || (!folder(&home, &id).exists()).then_some(()));
    assert_eq!(home.output(&kept), b"others\n");
    assert!(unknown.exists());
}

#[test]
fn p7_the_last_words_of_a_leftover_are_kept_however_little_time_its_shim_had() {
    const LOUD: usize = 30_000_000;
    const LAST: usize = 900_000;
    let home = home();
    // What is printed first earns the pipe its room: the last words fit into it, and more than one round of reading.
    let line = format!(
        "(head -c {LOUD} /dev/zero; echo $BASHPID > quiet; {}; exec head -c {LAST} /dev/zero) & exit 0",
        gate("say")
    );
    let id = home.submit(&[], &line);
    let child = home.told_pid("quiet");
    assert_eq!(home.ended(&id)["status"], "succeeded");
    wait_for("all of the first", || (home.task(&id)["output"]["bytes"] == LOUD).then_some(()));
    let shim = process::stat(child).unwrap().parent;
    freeze(shim);
    home.open("say");
    wait_for("the child's end", || (!alive(child)).then_some(()));
    thaw(shim);
    wait_for("the shim to leave", || (!alive(shim)).then_some(()));
    assert_eq!(home.task(&id)["output"]["bytes"], LOUD + LAST);
    assert_eq!(home.output(&id).len(), LOUD + LAST);
}
