//! Somebody deletes, under the running daemon, what the home must hold: it is noticed, and made good by itself.

use std::io::{BufRead, BufReader};

use homing_testkit::{freeze, gate, thaw, wait_for};

use super::home;

/// Waits until a call of the command line goes well with exactly this daemon and nobody starts another.
fn served_by(home: &homing_testkit::Home, daemon: u32) {
    wait_for("the daemon to answer", || home.path().join("homing.sock").exists().then_some(()));
    assert_eq!(home.daemon_pid(), daemon);
    let daemons = home.all_processes().into_iter().filter(|process| process.name != "homing-keeper");
    assert_eq!(daemons.map(|process| process.pid).collect::<Vec<_>>(), [daemon]);
}

#[test]
fn p4_a_removed_socket_is_made_again_and_there_is_one_daemon() {
    let home = home();
    let daemon = home.daemon_pid();
    let socket = home.path().join("homing.sock");
    std::fs::remove_file(&socket).unwrap();
    served_by(&home, daemon);
    // Replaced by something else, which is no reason to give up either.
    let other = home.scratch().join("other");
    drop(std::os::unix::net::UnixListener::bind(&other).unwrap());
    std::fs::rename(&other, &socket).unwrap();
    wait_for("the daemon to answer", || (home.cli(["daemon", "status"]).code == 0).then_some(()));
    served_by(&home, daemon);
}

#[test]
fn p4_a_keeper_whose_socket_and_lock_are_removed_makes_them_again_and_stays_the_one() {
    let home = home();
    let (daemon, keeper) = (home.daemon_pid(), home.keeper_pid());
    for names in [&["keeper.sock"][..], &["keeper.lock"], &["keeper.sock", "keeper.lock"]] {
        for name in names {
            std::fs::remove_file(home.path().join(name)).unwrap();
        }
        for name in names {
            wait_for(name, || home.path().join(name).exists().then_some(()));
        }
        assert_eq!(home.cli(["run", "--wait", "--", "true"]).code, 0);
        assert_eq!((home.daemon_pid(), home.keeper_pid()), (daemon, keeper));
        wait_for("the one keeper", || (home.processes("homing-keeper").len() == 1).then_some(()));
    }
    // Who needs the socket finds it: the next daemon.
    home.kill_at_once(&[daemon]);
    let next = home.next_daemon(daemon);
    assert_eq!((home.daemon_pid(), home.keeper_pid()), (next, keeper));
}

#[test]
fn p9_a_ledger_deleted_under_the_daemon_is_put_back_with_all_that_it_held() {
    let home = home();
    let ended = home.submit(&["--name", "before"], "echo words; exit 5");
    assert_eq!(home.ended(&ended)["outcome"]["exit_code"], 5);
    let live = home.submit(&[], &format!("echo run >> ran; {}; exit 6", gate("go")));
    let _ = home.until_status(&live, "running");
    for names in [&["homing.db"][..], &["homing.db-wal"], &["homing.db", "homing.db-wal", "homing.db-shm"]] {
        let daemon = home.daemon_pid();
        // At one moment: what the first of them sets going must not meet the next.
        freeze(daemon);
        for name in names {
            std::fs::remove_file(home.path().join(name)).unwrap();
        }
        thaw(daemon);
        // Nobody asks. The daemon that has it open ends, and the next one opens what was put back.
        let next = home.next_daemon(daemon);
        assert_eq!(home.daemon_pid(), next);
        let task = home.task("before");
        assert_eq!(
            (&task["id"], &task["outcome"]["exit_code"]),
            (&ended.clone().into(), &5.into()),
            "{task}"
        );
        assert_eq!(home.task(&live)["status"], "running", "{names:?}");
    }
    home.open("go");
    assert_eq!(home.ended(&live)["outcome"]["exit_code"], 6);
    assert_eq!(home.truth("ran"), "run\n");
    assert!(std::fs::read_to_string(home.path().join("daemon.log")).unwrap().contains("put back"));
    let _ = home.cli(["doctor"]).ok();
}

#[test]
fn p9_a_submit_right_after_the_ledger_was_deleted_is_refused_or_kept() {
    let home = home();
    for round in 0..4 {
        let daemon = home.daemon_pid();
        std::fs::remove_file(home.path().join("homing.db")).unwrap();
        let answer = home.cli(["run", "-c", &format!("echo run >> ran{round}")]);
        let _ = home.next_daemon(daemon);
        if answer.code == 0 {
            assert_eq!(home.ended(&answer.text())["status"], "succeeded");
            assert_eq!(home.truth(&format!("ran{round}")), "run\n");
        } else {
            assert!(answer.stderr.contains("HM0034") && answer.stderr.contains("try again"), "{answer:?}");
            assert_eq!(home.truth(&format!("ran{round}")), "");
        }
    }
}

#[test]
fn a_ledger_that_was_replaced_is_left_alone_and_nothing_new_is_accepted() {
    let home = home();
    let id = home.submit(&[], "exit 5");
    let _ = home.ended(&id);
    let database = home.path().join("homing.db");
    std::fs::write(home.scratch().join("other"), "theirs").unwrap();
    std::fs::rename(home.scratch().join("other"), &database).unwrap();
    let refused = home.cli(["run", "--", "true"]);
    assert!(refused.code == 1 && refused.stderr.contains("HM0034"), "{refused:?}");
    assert!(refused.stderr.contains("homing.db.displaced"), "{refused:?}");
    let status = wait_for("the daemon to say so", || {
        home.cli(["status", "--json"]).ok().json()["daemon"]["degraded"].as_str().map(str::to_owned)
    });
    assert!(status.contains("displaced"), "{status}");
    assert_eq!(home.task(&id)["outcome"]["exit_code"], 5, "what it knows it still answers");
    assert_eq!(std::fs::read(&database).unwrap(), b"theirs");
    // What it knew is whole: put in its place by a person, it is found.
    home.stop_daemon();
    std::fs::rename(home.path().join("homing.db.displaced"), &database).unwrap();
    assert_eq!(home.task(&id)["outcome"]["exit_code"], 5);
}

/// What the doctor says of one thing: its state and its words.
fn diagnosis(home: &homing_testkit::Home, name: &str) -> (String, String) {
    let answer = home.cli(["doctor", "--json"]).json();
    let mut checks = answer["checks"].as_array().into_iter().flatten();
    let check = checks.find(|check| check["name"] == name).expect("a check of this name");
    let text = |field: &str| check[field].as_str().unwrap_or_default().to_owned();
    (text("state"), text("detail"))
}

#[test]
fn a_ledger_that_is_gone_while_nobody_serves_is_told_in_the_log_and_by_the_doctor() {
    let home = home();
    let id = home.submit(&[], "echo words");
    let _ = home.ended(&id);
    for name in ["ledger", "reserve"] {
        assert_eq!(diagnosis(&home, name).0, "ok", "{:?}", diagnosis(&home, name));
    }
    home.stop_daemon();
    std::fs::remove_file(home.path().join("homing.db")).unwrap();
    let (state, detail) = diagnosis(&home, "ledger");
    assert!(state == "warn" && detail.contains("there is none"), "{detail}");
    home.does(["daemon", "start"]);
    let log = std::fs::read_to_string(home.path().join("daemon.log")).unwrap();
    assert!(log.contains("there was no ledger") && log.contains("\"tasks\":1"), "{log}");
    let (state, detail) = diagnosis(&home, "ledger");
    assert!(state == "warn" && detail.contains("does not know 1 of the last 1 tasks"), "{detail}");
    assert_eq!(std::fs::read(home.path().join("tasks").join(&id).join("output.log")).unwrap(), b"words\n");
    std::fs::write(home.path().join("homing.db.displaced"), "").unwrap();
    assert!(diagnosis(&home, "ledger").1.contains("homing.db.displaced"));
}

#[test]
fn p9_an_emptied_ledger_whose_log_is_left_is_refused_and_left_alone() {
    let home = home();
    let id = home.submit(&[], &gate("go"));
    let _ = home.until_status(&id, "running");
    // Emptied in the moment of a crash: under a running daemon it would be put back.
    home.stop_daemon();
    let (database, log) = (home.path().join("homing.db"), home.path().join("homing.db-wal"));
    std::fs::write(&database, "").unwrap();
    std::fs::write(&log, "what was committed last").unwrap();
    let refused = home.cli(["list"]);
    assert!(refused.stderr.contains("HM0014") && refused.stderr.contains("its log is not"), "{refused:?}");
    assert!(refused.stderr.contains("aside"), "{refused:?}");
    assert_eq!(std::fs::read(&log).unwrap(), b"what was committed last");
    assert_eq!(std::fs::metadata(&database).unwrap().len(), 0);
}

#[test]
fn a_home_that_is_deleted_is_not_brought_back() {
    let home = home();
    let _ = home.ended(&home.submit(&[], "true"));
    // What is deleted under the daemon is made again for as long as the folder is there.
    wait_for("the end of the home", || {
        let _ = std::fs::remove_dir_all(home.path());
        (!home.path().exists()).then_some(())
    });
    wait_for("everybody to leave", || home.all_processes().is_empty().then_some(()));
    assert!(!home.path().exists());
}

#[test]
fn whoever_waits_in_a_home_that_is_stopped_and_deleted_is_told_and_does_not_make_another() {
    let home = home();
    let _ = home.daemon_pid();
    let followers: [&[&str]; 2] = [&["events", "-f"], &["exec", "--", "sh", "-c", "echo; exec sleep 1000"]];
    let mut waiting: Vec<_> = followers
        .into_iter()
        .map(|words| {
            let mut child = home.spawn(words);
            // Something came: it has talked to the daemon.
            let mut out = BufReader::new(child.stdout.take().unwrap());
            let _ = out.read_line(&mut String::new()).unwrap();
            let err = BufReader::new(child.stderr.take().unwrap()).lines();
            (child, out, err)
        })
        .collect();
    home.stop_daemon();
    for (_, _, err) in &mut waiting {
        assert!(err.any(|line| line.unwrap().contains("the daemon was stopped; waiting")));
    }
    // The mark first: a folder goes file by file.
    std::fs::remove_file(home.path().join("stopped")).unwrap();
    wait_for("the end of the home", || {
        let _ = std::fs::remove_dir_all(home.path());
        (!home.path().exists()).then_some(())
    });
    for (mut child, _, mut err) in waiting {
        let ended = wait_for("the end of who waited", || child.try_wait().unwrap());
        assert!(!ended.success());
        assert!(err.any(|line| line.unwrap().contains("was removed while this command was waiting")));
    }
    assert!(home.find_daemon().is_none() && !home.path().exists());
}
