//! Keeper and daemon are killed, whatever the timing, while nothing ends: the daemon is back by itself.

use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use homing_testkit::{Home, alive, drift, gate, wait_for};

use super::home;

#[test]
fn p4_with_daemon_and_keeper_killed_a_task_that_runs_on_brings_them_back() {
    let home = home();
    let id = home.submit(&[], &format!("echo run >> ran; {}; echo end; exit 6", gate("go")));
    let _ = home.until_status(&id, "running");
    let (daemon, keeper, shim) = (home.daemon_pid(), home.keeper_pid(), home.shim_pid(&id));
    home.kill_at_once(&[daemon, keeper]);
    // Nothing ends and nobody asks.
    let _ = home.next_daemon(daemon);
    assert!(alive(shim));
    assert_eq!(home.task(&id)["status"], "running");
    assert_eq!(home.shim_pid(&id), shim);
    home.open("go");
    assert_eq!(home.ended(&id)["outcome"]["exit_code"], 6);
    assert_eq!((home.truth("ran"), home.output(&id)), ("run\n".into(), b"end\n".to_vec()));
    wait_for("the shim to leave", || (!alive(shim)).then_some(()));
}

#[test]
fn p4_many_shims_that_see_both_gone_bring_back_one_daemon() {
    let home = home();
    let ids: Vec<_> = (0..12).map(|_| home.submit(&[], &gate("go"))).collect();
    for id in &ids {
        let _ = home.until_status(id, "running");
    }
    for _ in 0..3 {
        let (daemon, keeper) = (home.daemon_pid(), home.keeper_pid());
        home.kill_at_once(&[daemon, keeper]);
        let next = home.next_daemon(daemon);
        assert_eq!(home.daemon_pid(), next);
    }
    // Who was too late with a revival goes, and one that begins it is called a shim until it says otherwise.
    wait_for("those who revived to leave", || {
        let count = |name| home.processes(name).len();
        ((count("homing-revive"), count("homing-keeper"), count("homing-shim")) == (0, 1, ids.len()))
            .then_some(())
    });
    home.open("go");
    for id in &ids {
        assert_eq!(home.ended(id)["status"], "succeeded");
    }
}

#[test]
fn p4_a_daemon_killed_while_it_replaces_the_keeper_is_back_by_itself() {
    let home = home();
    let id = home.submit(&[], &gate("go"));
    let _ = home.until_status(&id, "running");
    for round in 0..16 {
        let (daemon, keeper) = (home.daemon_pid(), home.keeper_pid());
        home.kill(keeper);
        // The daemon notices, and starts another within some milliseconds: one of the moments hits the middle of that.
        drift(Duration::from_micros(round * 700));
        home.kill(daemon);
        let _ = home.next_daemon(daemon);
        wait_for("the one daemon", || (home.processes("homing-keeper").len() == 1).then_some(()));
    }
    home.open("go");
    assert_eq!(home.ended(&id)["status"], "succeeded");
}

#[test]
fn p4_a_keeper_whose_starter_died_without_a_word_starts_the_daemon_that_was_wanted() {
    let home = home();
    let (daemon, keeper) = (home.daemon_pid(), home.keeper_pid());
    home.kill_at_once(&[daemon, keeper]);
    assert!(home.all_processes().is_empty(), "{:?}", home.all_processes());
    // The shell is its starter, and ends when the keeper listens.
    let start = || {
        let mut starter = Command::new("/bin/sh");
        starter.args(["-c", r#""$0" __homing-keeper "$1"; exit $?"#]).arg(home.program()).arg(home.path());
        assert!(starter.status().expect("a shell").success());
    };
    start();
    let next = home.next_daemon(daemon);
    assert_eq!(home.daemon_pid(), next);
    // Unless nobody wants one.
    home.stop_daemon();
    wait_for("the keeper to leave", || home.all_processes().is_empty().then_some(()));
    start();
    wait_for("the keeper to leave again", || home.all_processes().is_empty().then_some(()));
}

#[test]
fn a_daemon_that_was_stopped_is_gone_to_the_last_of_it_and_its_home_may_be_removed() {
    for round in 0..10 {
        let home = home();
        let live = (round % 2 == 0).then(|| home.submit(&[], "sleep 600"));
        for _ in 0..3 {
            let _ = home.ended(&home.submit(&[], "true"));
        }
        let (daemon, keeper) = (home.daemon_pid(), home.keeper_pid());
        home.does(["daemon", "stop"]);
        assert!(!alive(daemon), "round {round}");
        assert!(!home.path().join("homing.db-wal").exists(), "round {round}: its database is still open");
        match live {
            // Whoever looks after a task stays, and leaves the files alone.
            Some(id) => {
                assert!(alive(keeper));
                home.does(["stop", &id]);
            }
            None => assert!(!alive(keeper), "round {round}"),
        }
    }
}

#[test]
fn p4_a_daemon_stopped_on_purpose_stays_so_though_the_keeper_is_killed_and_tasks_run() {
    let home = home();
    let id = home.submit(&[], &format!("{}; exit 8", gate("go")));
    let _ = home.until_status(&id, "running");
    let (shim, keeper) = (home.shim_pid(&id), home.keeper_pid());
    home.stop_daemon();
    home.kill_at_once(&[keeper]);
    home.open("go");
    wait_for("the shim to leave", || (!alive(shim)).then_some(()));
    assert!(home.all_processes().is_empty(), "{:?}", home.all_processes());
    assert_eq!(home.task(&id)["outcome"]["exit_code"], 8);
}

#[test]
fn p4_a_stop_on_purpose_stands_though_somebody_follows_a_task() {
    let home = home();
    let id = home.submit(&[], "echo up; exec sleep 1000");
    let _ = home.until_status(&id, "running");
    for _ in 0..4 {
        let _ = home.daemon_pid();
        let mut following = home.command();
        following.args(["output", "-f", &id]).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut following = following.spawn().unwrap();
        let mut line = [0; 3];
        following.stdout.as_mut().unwrap().read_exact(&mut line).unwrap();
        home.stop_daemon();
        // Who follows asks at once for another one.
        drift(Duration::from_millis(300));
        assert_eq!(home.cli(["daemon", "status", "--json"]).json()["running"], false);
        assert!(following.try_wait().unwrap().is_none(), "it waits for the next one");
        following.kill().unwrap();
        following.wait().unwrap();
    }
}

/// What the keeper starts as the daemon from now on: this script, with the real program as `$HOMING`.
fn instead(home: &Home, script: &str) {
    let path = home.scratch().join("instead");
    let text = format!("#!/bin/sh\nHOMING={}\n{script}\n", home.program().display());
    std::fs::write(&path, text).expect("the script takes its place");
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o700)).expect("the script takes its place");
    std::fs::write(home.path().join("program"), path.as_os_str().as_encoded_bytes())
        .expect("the script takes its place");
}

#[test]
fn p4_a_stop_between_two_lives_of_the_daemon_is_remembered() {
    let home = home();
    let daemon = home.daemon_pid();
    let tried = home.scratch().join("tried");
    instead(&home, &format!("echo >> {}; exit 1", tried.display()));
    home.kill_at_once(&[daemon]);
    // The pause before the fifth try is long enough to come in between.
    wait_for("tries that fail", || (std::fs::read(&tried).ok()?.len() >= 4).then_some(()));
    assert_eq!(home.cli(["daemon", "stop", "--json"]).ok().json()["was_running"], false);
    assert_eq!(home.cli(["daemon", "status", "--json"]).json()["stopped"], true);
    std::fs::write(home.path().join("program"), home.program().as_os_str().as_encoded_bytes()).unwrap();
    wait_for("the keeper to leave", || home.all_processes().is_empty().then_some(()));
    assert!(home.path().join("stopped").exists());
    home.does(["daemon", "start"]);
    assert!(!home.path().join("stopped").exists());
}

#[test]
fn p4_a_stop_while_the_daemon_starts_is_remembered() {
    let home = home();
    let daemon = home.daemon_pid();
    let (begun, go) = (home.scratch().join("begun"), home.scratch().join("go"));
    let wait = format!("while ! test -e {}; do sleep 0.01; done", go.display());
    instead(&home, &format!("echo >> {}; {wait}; exec \"$HOMING\" \"$@\"", begun.display()));
    home.kill_at_once(&[daemon]);
    wait_for("its start", || begun.exists().then_some(()));
    let _ = home.cli(["daemon", "stop"]).ok();
    home.open("go");
    wait_for("daemon and keeper to leave", || {
        let left = std::fs::read_to_string(home.path().join("daemon.log")).unwrap();
        (left.contains("stopped while it started") && home.all_processes().is_empty()).then_some(())
    });
    assert!(home.path().join("stopped").exists());
    assert_eq!(home.cli(["run", "--wait", "--", "true"]).code, 0);
}

#[test]
fn p4_a_daemon_in_the_foreground_ends_an_earlier_stop() {
    let home = home();
    let _ = home.daemon_pid();
    home.stop_daemon();
    let mut foreground = home.spawn(["daemon", "run"]);
    wait_for("it to serve", || (home.cli(["daemon", "status"]).code == 0).then_some(()));
    assert!(!home.path().join("stopped").exists());
    let _ = home.cli(["daemon", "stop"]).ok();
    assert!(foreground.wait().unwrap().success());
    assert!(home.path().join("stopped").exists());
}

#[test]
fn a_restart_from_inside_a_task_is_refused_before_anything_is_stopped() {
    let home = home();
    let line = format!("{} daemon restart", home.program().display());
    let before = home.submit(&[], "true");
    let _ = home.ended(&before);
    let daemon = home.daemon_pid();
    let task = home.ended(&home.submit(&[], &line));
    assert_eq!(task["outcome"]["exit_code"], 69, "{task}");
    assert!(String::from_utf8_lossy(&home.output(task["id"].as_str().unwrap())).contains("HM0021"));
    assert_eq!(home.daemon_pid(), daemon);
}

#[test]
#[expect(clippy::disallowed_methods, reason = "how long a person waits is what is tested")]
fn a_restart_is_over_as_soon_as_the_next_daemon_answers() {
    let home = home();
    let before = home.daemon_pid();
    // A client that waits for the daemon that it has talked to takes more than four seconds, every time.
    let quick = (0..3).any(|_| {
        let begun = Instant::now();
        home.does(["daemon", "restart"]);
        begun.elapsed() < Duration::from_secs(3)
    });
    assert!(quick && home.daemon_pid() != before);
}
