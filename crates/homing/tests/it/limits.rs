//! Limits that the shim enforces, and those that a task takes over from its caller.

use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use homing_testkit::{Home, alive, gate, wait_for};

use super::home;

#[test]
#[expect(clippy::disallowed_methods, reason = "how long it took is what is tested")]
fn p3_a_timeout_ends_the_whole_tree_and_is_told_as_such() {
    let home = home();
    let _ = home.daemon_pid();
    let began = Instant::now();
    let id =
        home.submit(&["--timeout", "300ms"], "setsid sleep 300 & echo $! > child; echo before; sleep 300");
    let task = home.ended(&id);
    let took = began.elapsed();
    assert!(took >= Duration::from_millis(300) && took < Duration::from_millis(1500), "{took:?}");
    assert_eq!((&task["status"], &task["outcome"]["signal"]), (&"timed_out".into(), &15.into()), "{task}");
    assert!(!alive(home.told_pid("child")));
    assert_eq!((home.cli(["wait", &id]).code, home.output(&id)), (124, b"before\n".to_vec()));
    assert!(task["duration_ms"].as_u64().unwrap() >= 300, "{task}");
    home.nothing_left();
}

#[test]
fn p3_a_timeout_holds_while_daemon_and_keeper_are_dead() {
    let home = home();
    let line =
        "trap '' TERM; setsid sleep 300 & echo $! > child; echo $$ > main; while :; do sleep 0.01; done";
    let (daemon, keeper) = (home.daemon_pid(), home.keeper_pid());
    let id = home.submit(&["--timeout", "600ms", "--grace", "100ms"], line);
    let pids = [home.told_pid("child"), home.told_pid("main")];
    home.kill_at_once(&[daemon, keeper]);
    assert!(pids.iter().all(|pid| alive(*pid)), "the machine is too slow for this test");
    wait_for("the tree's end", || (!pids.iter().any(|pid| alive(*pid))).then_some(()));
    let _ = home.next_daemon(daemon);
    let task = home.ended(&id);
    assert_eq!((&task["status"], &task["outcome"]["signal"]), (&"timed_out".into(), &9.into()), "{task}");
}

#[test]
fn a_task_that_tidies_up_within_the_grace_keeps_its_code() {
    let home = home();
    let id =
        home.submit(&["--timeout", "100ms"], "trap 'echo tidy; exit 11' TERM; while :; do sleep 0.01; done");
    let task = home.ended(&id);
    assert_eq!((&task["status"], &task["outcome"]["exit_code"]), (&"timed_out".into(), &11.into()), "{task}");
    assert!(String::from_utf8(home.output(&id)).unwrap().contains("tidy\n"));
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
    let id = home.submit(&["--grace", "150ms"], "trap '' TERM; echo up > up; while :; do sleep 0.01; done");
    let _ = home.told("up");
    home.does(["stop", &id]);
    let task = home.task(&id);
    assert_eq!(task["outcome"]["signal"], 9, "{task}");
    assert!(task["duration_ms"].as_u64().unwrap() < 4000, "{task}");
}

#[test]
fn p8_on_exit_kill_ends_the_children_before_the_end_is_told() {
    let home = home();
    let line = "(trap 'echo asked > asked; exit' TERM; echo $BASHPID > child; while :; do sleep 0.01; done) &
(trap '' TERM; setsid sleep 300 & echo $! > stubborn) &
until [ -s child ] && [ -s stubborn ]; do sleep 0.01; done; exit 6";
    let id = home.submit(&["--on-exit", "kill", "--grace", "200ms"], line);
    let task = home.ended(&id);
    // They did not outlive it, and it was not stopped: it ended by itself.
    assert_eq!((&task["status"], &task["outcome"]["exit_code"]), (&"failed".into(), &6.into()), "{task}");
    assert_eq!(task["outcome"]["survivors"], serde_json::json!([]));
    assert!(!alive(home.told_pid("child")) && !alive(home.told_pid("stubborn")));
    assert_eq!(home.told("asked"), "asked");
    home.nothing_left();
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
