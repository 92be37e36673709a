//! Limits that the shim enforces, and those that a task takes over from its caller.

use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use homing_testkit::{Home, alive, gate, wait_for};

use super::home;

/// Tries with more and more time until the task had enough of it to get ready, which no promise is about: until `with` says so.
fn given_time(times_ms: &[u64], with: impl Fn(u64) -> bool) {
    assert!(times_ms.iter().any(|time_ms| with(*time_ms)), "not ready within {times_ms:?} ms");
}

#[test]
#[expect(clippy::disallowed_methods, reason = "how long it took is what is tested")]
fn p3_a_timeout_ends_the_whole_tree_and_is_told_as_such() {
    given_time(&[300, 3_000, 30_000], |limit| {
        let home = home();
        let _ = home.daemon_pid();
        let began = Instant::now();
        let line = "setsid sleep 300 & echo $! > child; echo before; sleep 300";
        let id = home.submit(&["--timeout", &format!("{limit}ms")], line);
        let task = home.ended(&id);
        let took = began.elapsed();
        assert!(took >= Duration::from_millis(limit), "{took:?}");
        assert_eq!(
            (&task["status"], &task["outcome"]["signal"]),
            (&"timed_out".into(), &15.into()),
            "{task}"
        );
        assert_eq!(home.cli(["wait", &id]).code, 124);
        assert!(task["duration_ms"].as_u64().unwrap() >= limit, "{task}");
        home.nothing_left();
        let output = home.output(&id);
        if output.is_empty() {
            return false;
        }
        assert_eq!(output, b"before\n");
        assert!(!alive(home.told_pid("child")));
        true
    });
}

#[test]
fn p3_a_timeout_holds_while_daemon_and_keeper_are_dead() {
    let line =
        "trap '' TERM; setsid sleep 300 & echo $! > child; echo $$ > main; while :; do sleep 0.01; done";
    given_time(&[600, 5_000, 20_000], |limit| {
        let home = home();
        let (daemon, keeper) = (home.daemon_pid(), home.keeper_pid());
        let id = home.submit(&["--timeout", &format!("{limit}ms"), "--grace", "100ms"], line);
        let ready = wait_for("the tree, or its end", || {
            let ended = home.get(&format!("/v1/tasks/{id}")).json()["ended_at"].is_string();
            (ended || home.truth("main").ends_with('\n')).then_some(!ended)
        });
        if !ready {
            return false;
        }
        let pids = [home.told_pid("child"), home.told_pid("main")];
        home.kill_at_once(&[daemon, keeper]);
        if !pids.iter().all(|pid| alive(*pid)) {
            return false;
        }
        wait_for("the tree's end", || (!pids.iter().any(|pid| alive(*pid))).then_some(()));
        let _ = home.next_daemon(daemon);
        let task = home.ended(&id);
        assert_eq!((&task["status"], &task["outcome"]["signal"]), (&"timed_out".into(), &9.into()), "{task}");
        true
    });
}

#[test]
fn a_task_that_tidies_up_within_the_grace_keeps_its_code() {
    let line = "trap 'echo tidy; exit 11' TERM; echo up > up; while :; do sleep 0.01; done";
    given_time(&[100, 2_000, 20_000], |limit| {
        let home = home();
        let id = home.submit(&["--timeout", &format!("{limit}ms"), "--grace", "30s"], line);
        let task = home.ended(&id);
        assert_eq!(task["status"], "timed_out", "{task}");
        if home.truth("up").is_empty() {
            return false;
        }
        assert_eq!(task["outcome"]["exit_code"], 11, "{task}");
        assert!(String::from_utf8(home.output(&id)).unwrap().contains("tidy\n"));
        true
    });
}

#[test]
fn a_task_that_is_faster_than_its_timeout_never_hears_of_it() {
    let home = home();
    let id = home.submit(&["--timeout", "30s"], "exit 2");
    assert_eq!(home.ended(&id)["status"], "failed");
}

#[test]
fn p3_the_grace_is_the_tasks_own() {
    let home = home();
    std::fs::create_dir(home.path()).unwrap();
    std::fs::set_permissions(home.path(), PermissionsExt::from_mode(0o700)).unwrap();
    // With that of the home it would not end while anybody waits for it.
    std::fs::write(home.path().join("config.toml"), "[stop]\ngrace = \"10m\"\n").unwrap();
    let id = home.submit(&["--grace", "150ms"], "trap '' TERM; echo up > up; while :; do sleep 0.01; done");
    let _ = home.told("up");
    home.does(["stop", &id]);
    let task = home.ended(&id);
    assert_eq!(task["outcome"]["signal"], 9, "{task}");
}

#[test]
fn p8_on_exit_kill_ends_the_children_before_the_end_is_told() {
    let line = "(trap 'echo asked > asked; exit' TERM; echo $BASHPID > child; while :; do sleep 0.01; done) &
(trap '' TERM; setsid sleep 300 & echo $! > stubborn) &
until [ -s child ] && [ -s stubborn ]; do sleep 0.01; done; exit 6";
    given_time(&[200, 2_000, 20_000], |grace| {
        let home = home();
        let id = home.submit(&["--on-exit", "kill", "--grace", &format!("{grace}ms")], line);
        let task = home.ended(&id);
        // They did not outlive it, and it was not stopped: it ended by itself.
        assert_eq!((&task["status"], &task["outcome"]["exit_code"]), (&"failed".into(), &6.into()), "{task}");
        if task["outcome"]["survivors"] != serde_json::json!([]) {
            // The kernel has not ended them yet.
            return false;
        }
        assert!(!alive(home.told_pid("child")) && !alive(home.told_pid("stubborn")));
        home.nothing_left();
        home.truth("asked") == "asked\n"
    });
}

/// Calls the command line from a shell that first does something to itself.
fn run_from(home: &Home, setup: &str, line: &str) -> String {
    let mut command = Command::new("bash");
    command.arg("-c").arg(format!("{setup}; exec \"$0\" \"$@\"")).arg(home.program());
    command.args(["run", "-c", line]).stdin(Stdio::null()).current_dir(home.scratch());
    for (name, value) in home.command().get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let output = command.output().expect("bash runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("an id").trim().to_owned()
}

#[test]
fn a_task_has_its_callers_umask_and_not_the_daemons() {
    let home = home();
    let _ = home.daemon_pid();
    let id = run_from(&home, "umask 027", "umask; echo > made; mkdir folder");
    assert_eq!(home.ended(&id)["status"], "succeeded");
    assert_eq!(home.output(&id), b"0027\n");
    let mode =
        |name: &str| std::fs::metadata(home.scratch().join(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("made"), mode("folder")), (0o640, 0o750));
}

#[test]
fn a_task_has_its_callers_resource_limits_and_not_the_daemons() {
    let home = home();
    let _ = home.daemon_pid();
    let limits = "echo $(ulimit -Sn) $(ulimit -Hn) $(ulimit -Sc) $(ulimit -St)";
    let id = run_from(&home, "ulimit -Sn 99; ulimit -Hn 300; ulimit -c 0; ulimit -t 4000", limits);
    assert_eq!(home.ended(&id)["status"], "succeeded");
    assert_eq!(home.output(&id), b"99 300 0 4000\n");
}

#[test]
fn the_limits_of_whoever_started_the_daemon_are_not_those_of_the_next() {
    let home = home();
    // Nobody serves this home yet: the keeper, the daemon and every shim come of this caller.
    let first = run_from(
        &home,
        "ulimit -S -t 1; ulimit -S -f 2048; ulimit -S -n 64; ulimit -S -s 4096",
        "ulimit -S -t",
    );
    let _ = home.ended(&first);
    assert_eq!(home.output(&first), b"1\n", "its own task has them");
    for pid in [home.keeper_pid(), home.daemon_pid()] {
        let limits = std::fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
        let of = |name: &str| {
            let line = limits.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            let mut words = line.split_whitespace();
            (words.next().unwrap().to_owned(), words.next().unwrap().to_owned())
        };
        for name in ["Max cpu time", "Max file size"] {
            let (soft, hard) = of(name);
            assert_eq!(soft, hard, "{name} of {pid}");
        }
        assert_ne!(of("Max open files").0, "64", "of {pid}");
        assert_ne!(of("Max stack size").0, "4194304", "of {pid}");
    }
    let id = home.submit(&[], "head -c 6000000 /dev/zero");
    let task = home.ended(&id);
    assert_eq!((&task["output"]["bytes"], &task["output"]["dropped"]), (&6_000_000.into(), &0.into()));
}

#[test]
fn who_can_start_no_daemon_is_told_so_and_is_in_nobodys_way() {
    let home = home();
    let mut command = Command::new("bash");
    command.arg("-c").arg("ulimit -n 24; exec \"$0\" run -- true").arg(home.program());
    let refused = command.env("HOMING_HOME", home.path()).output().unwrap();
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && said.contains("the hard limit of open files is 24"), "{said}");
    assert_eq!(home.ended(&home.submit(&[], "true"))["status"], "succeeded");
}

#[test]
fn a_task_has_its_callers_niceness() {
    let home = home();
    let _ = home.daemon_pid();
    let id = run_from(&home, "renice -n 7 $$ > /dev/null", "nice");
    assert_eq!(home.ended(&id)["status"], "succeeded");
    assert_eq!(home.output(&id), b"7\n");
}

#[test]
fn a_task_leads_a_session_and_inherits_no_signal_setting_and_no_descriptor() {
    let home = home();
    let line =
        "echo $(ps -o sid=,pgid= -p $$); grep -E 'Sig(Blk|Ign)' /proc/self/status; ls /proc/self/fd; echo $$";
    let id = run_from(&home, "trap '' HUP USR1", line);
    assert_eq!(home.ended(&id)["status"], "succeeded");
    let output = String::from_utf8(home.output(&id)).unwrap();
    let lines: Vec<_> = output.lines().collect();
    let pid = lines.last().unwrap();
    assert_eq!(lines[0], format!("{pid} {pid}"));
    let set = |line: &str| u64::from_str_radix(line.split_once('\t').unwrap().1, 16).unwrap();
    // The C library keeps two signals to itself and ignores them in what it spawns.
    assert_eq!((set(lines[1]), set(lines[2]) & !0x1_8000_0000), (0, 0), "{output}");
    // Standard input, output and error, and the one that `ls` itself opened.
    assert_eq!(lines[3..lines.len() - 1], ["0", "1", "2", "3"]);
}

#[test]
fn durations_count_from_the_tasks_start_and_do_not_grow_while_nobody_looks() {
    let home = home();
    let id = home.submit(&["--timeout", "30s"], &gate("go"));
    let _ = home.until_status(&id, "running");
    home.stop_daemon();
    home.open("go");
    wait_for("everybody to leave", || home.all_processes().is_empty().then_some(()));
    let task = home.ended(&id);
    assert_eq!(task["status"], "succeeded");
    assert!(task["duration_ms"].as_u64().unwrap() < 20_000, "{task}");
}
