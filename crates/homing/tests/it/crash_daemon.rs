//! The daemon is killed with SIGKILL, at every kind of moment: nothing is lost, nothing runs twice, nobody has to look.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use homing_testkit::{Home, alive, copy_program, drift, freeze, gate, thaw, wait_for, write_program};

use super::home;

/// The events of one task, by kind.
fn events(home: &Home, id: &str, kind: &str) -> usize {
    let log = home.cli(["events"]).ok();
    let lines = log.text();
    let of_task = |line: &&str| line.contains(&format!("\"{id}\"")) && line.contains(&format!("\"{kind}\""));
    lines.lines().filter(of_task).count()
}

#[test]
fn p3_exit_code_survives_daemon_sigkill() {
    let home = home();
    let id = home.submit(&[], &format!("echo run >> ran; {}; exit 37", gate("go")));
    let before = home.until_status(&id, "running");
    let old = home.kill_daemon();
    assert_eq!(home.task(&id)["status"], "running");
    home.open("go");
    let task = home.ended(&id);
    assert_ne!(home.daemon_pid(), old);
    assert_eq!((&task["status"], &task["outcome"]["exit_code"]), (&"failed".into(), &37.into()), "{task}");
    assert_eq!((&task["started_at"], &task["pid"]), (&before["started_at"], &before["pid"]));
    assert_eq!(home.truth("ran"), "run\n");
    home.nothing_left();
}

#[test]
fn p3_signal_survives_daemon_sigkill() {
    let home = home();
    let id = home.submit(&[], &format!("{}; kill -USR1 $$", gate("go")));
    let _ = home.until_status(&id, "running");
    let _ = home.kill_daemon();
    home.open("go");
    let task = home.ended(&id);
    assert_eq!(task["status"], "failed");
    assert_eq!(
        (&task["outcome"]["exit_code"], &task["outcome"]["signal"]),
        (&().into(), &10.into()),
        "{task}"
    );
    assert_eq!(home.cli(["wait", &id]).code, 128 + 10);
}

#[test]
fn p3_timings_are_those_of_the_task_and_not_of_the_daemon() {
    let home = home();
    let now = || homing_engine::Clock::now(&homing_engine::SystemClock).as_millis();
    let line = format!("date +%s%3N > began; {}; date +%s%3N > ended", gate("go"));
    let before = now();
    let id = home.submit(&[], &line);
    let _ = home.told("began");
    home.stop_daemon();
    home.open("go");
    wait_for("the shim's end", || home.processes("homing-shim").is_empty().then_some(()));
    let after = now();
    // Only a later daemon records the end; it is still the moment that the shim saw.
    let task = home.ended(&id);
    let truth = |name: &str| home.told(name).parse::<i64>().unwrap();
    let told =
        |name: &str| task[name].as_str().unwrap().parse::<homing_model::Timestamp>().unwrap().as_millis();
    let (started, ended) = (told("started_at"), told("ended_at"));
    assert!(before <= started && started <= truth("began") + 2, "it began at {}: {task}", truth("began"));
    assert!(truth("ended") <= ended + 2 && ended <= after, "it ended at {}: {task}", truth("ended"));
    let duration = task["duration_ms"].as_i64().unwrap();
    assert!(duration + 2 >= truth("ended") - truth("began") && duration <= after - before, "{task}");
}

#[test]
fn p3_output_written_while_the_daemon_dies_again_and_again_is_whole() {
    let home = home();
    let line = "for i in $(seq 40); do seq $((i * 1000)) $((i * 1000 + 999)); echo warn $i >&2; sleep 0.02; done; exit 3";
    let id = home.submit(&[], line);
    let mut old = 0;
    for _ in 0..6 {
        let pid = home.next_daemon(old);
        drift(Duration::from_millis(60));
        home.kill_at_once(&[pid]);
        old = pid;
    }
    let task = home.ended(&id);
    assert_eq!(task["outcome"]["exit_code"], 3);
    let output = home.output(&id);
    let text = String::from_utf8(output.clone()).unwrap();
    let (warnings, numbers): (Vec<_>, Vec<_>) = text.lines().partition(|line| line.starts_with("warn"));
    assert!(numbers.iter().map(|line| line.parse::<u32>().unwrap()).eq(1000..41_000));
    assert!(warnings.iter().copied().eq((1..=40).map(|i| format!("warn {i}"))));
    assert_eq!(task["output"]["bytes"], output.len());
    assert_eq!(std::fs::read(task["output"]["path"].as_str().unwrap()).unwrap(), output);
}

#[test]
fn p3_binary_output_is_kept_byte_for_byte_without_a_daemon() {
    let home = home();
    let line = format!("{}; head -c 3000000 /dev/urandom | tee copy", gate("go"));
    let id = home.submit(&[], &line);
    let _ = home.until_status(&id, "running");
    let (daemon, keeper) = (home.daemon_pid(), home.keeper_pid());
    home.kill_at_once(&[daemon, keeper]);
    home.open("go");
    let _ = home.next_daemon(daemon);
    assert_eq!(home.ended(&id)["status"], "succeeded");
    let copy = std::fs::read(home.scratch().join("copy")).unwrap();
    assert!(home.output(&id) == copy && copy.len() == 3_000_000);
}

/// Reads what a child prints until there is this in a line.
fn read_until(child: &mut Child, text: &str) -> BufReader<std::process::ChildStdout> {
    let mut printed = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut line = String::new();
    while !line.contains(text) {
        line.clear();
        assert_ne!(printed.read_line(&mut line).expect("text"), 0, "it ended before `{text}`");
    }
    printed
}

/// Has the next daemons of a copied program die as they start, so many of them; each adds a line to the file that is answered.
pub(crate) fn let_daemons_die(program: &Path, real: &Path, deaths: usize) -> PathBuf {
    let counted = program.with_file_name("deaths");
    let script = format!(
        "#!/bin/sh\n[ \"$1\" = __homing-daemon ] && [ \"$(cat '{0}' | wc -l)\" -lt {deaths} ] && echo >> '{0}' && exit 1\nexec '{1}' \"$@\"\n",
        counted.display(),
        real.display()
    );
    std::fs::write(&counted, "").expect("a file");
    write_program(program, &script);
    counted
}

pub(crate) fn wait_for_deaths(counted: &Path, deaths: usize) {
    wait_for("the deaths", || {
        (std::fs::read_to_string(counted).ok()?.lines().count() >= deaths).then_some(())
    });
}

#[test]
fn p3_who_names_a_task_outlasts_failing_first_starts() {
    const DEATHS: usize = 12;
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("homing");
    let real = home().program().to_owned();
    copy_program(&real, &program);
    let home = Home::new(&program);
    let id = home.cli(["track"]).ok().text();
    // It reads the answer before it connects to anything.
    let mut client = home.command();
    client.args(["complete", &id, "--answer", "-"]).stdin(Stdio::piped()).stderr(Stdio::piped());
    let mut client = client.spawn().unwrap();
    let deaths = let_daemons_die(&program, &real, DEATHS);
    let _ = home.kill_daemon();
    client.stdin.take().unwrap().write_all(b"late").unwrap();
    wait_for_deaths(&deaths, DEATHS);
    let ended = client.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success() && said.contains("waiting for the daemon"), "{said}");
    assert_eq!(home.task(&id)["answer"], "late");
}

#[test]
fn p3_waiting_clients_outlast_daemons_that_die_as_they_start() {
    const DEATHS: usize = 12;
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("homing");
    let real = home().program().to_owned();
    copy_program(&real, &program);
    let home = Home::new(&program);
    let line = |name: &str| format!("echo begun; echo begun > {name}; {}; echo over; exit 7", gate("go"));
    let id = home.submit(&[], &line("task"));
    let mut waiting = home.spawn(["wait", &id]);
    let mut following = home.spawn(["output", "-f", &id]);
    let mut staying = home.spawn(["exec", "-c", &line("exec")]);
    let mut listening = home.spawn(["events", "-f"]);
    let mut output = read_until(&mut following, "begun");
    let mut own = read_until(&mut staying, "begun");
    let mut log = read_until(&mut listening, &id);
    wait_for("the waiter", || super::submitting::is_connected(waiting.id()).then_some(()));
    let deaths = let_daemons_die(&program, &real, DEATHS);
    let _ = home.kill_daemon();
    wait_for_deaths(&deaths, DEATHS);
    home.open("go");
    let mut rest = [String::new(), String::new()];
    output.read_to_string(&mut rest[0]).unwrap();
    own.read_to_string(&mut rest[1]).unwrap();
    assert_eq!(rest, ["over\n", "over\n"]);
    let codes = [&mut waiting, &mut following, &mut staying].map(|child| child.wait().unwrap().code());
    assert_eq!(codes, [Some(7), Some(0), Some(7)]);
    let mut event = String::new();
    while !(event.contains("task.completed") && event.contains(&id)) {
        event.clear();
        assert_ne!(log.read_line(&mut event).unwrap(), 0, "the log ended");
    }
    listening.kill().unwrap();
    listening.wait().unwrap();
    let mut notes = 0;
    for child in [&mut waiting, &mut following, &mut staying, &mut listening] {
        let mut said = String::new();
        child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        let noted = said.matches("waiting for the daemon").count();
        assert!(noted <= 1, "once is enough: {said}");
        notes += noted;
    }
    assert_ne!(notes, 0, "somebody was told");
}

#[test]
fn p3_stop_and_inbox_outlast_daemons_that_are_killed() {
    let home = home();
    let id = home.submit(&["--grace", "1d"], &format!("trap '' TERM; echo begun > begun; {}", gate("go")));
    assert_eq!(home.told("begun"), "begun");
    let mut stopping = home.spawn(["stop", &id]);
    let mut waiting = home.spawn(["inbox", "--owner", "ann", "--wait", "10m"]);
    let _ = home.until_status(&id, "stopping");
    for _ in 0..5 {
        for child in [&stopping, &waiting] {
            wait_for("the client to ask", || super::submitting::is_connected(child.id()).then_some(()));
        }
        let daemon = home.kill_daemon();
        let _ = home.next_daemon(daemon);
    }
    home.open("go");
    assert!(stopping.wait().unwrap().success());
    assert_eq!(home.ended(&id)["status"], "stopped");
    let other = home.submit(&["--owner", "ann"], "true");
    assert!(waiting.wait().unwrap().success());
    let mut said = String::new();
    waiting.stdout.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(said.contains(&other), "{said}");
}

#[test]
fn p1_a_kill_around_the_exit_gives_one_true_end() {
    let home = home();
    for round in 0..12_u32 {
        let (go, ran) = (format!("go{round}"), format!("ran{round}"));
        let id = home.submit(&[], &format!("echo run >> {ran}; {}; exit {}", gate(&go), round + 1));
        assert_eq!(home.told(&ran), "run");
        let daemon = home.find_daemon().unwrap().pid;
        // From just before the exit to just after it was recorded.
        home.open(&go);
        drift(Duration::from_millis(u64::from(round) * 2));
        home.kill_at_once(&[daemon]);
        let task = home.ended(&id);
        assert_eq!(task["outcome"]["exit_code"], round + 1, "{task}");
        assert_eq!(home.truth(&ran), "run\n");
        assert_eq!(events(&home, &id, "task.completed"), 1);
        assert_eq!(events(&home, &id, "task.started"), 1);
    }
    home.nothing_left();
}

#[test]
fn p4_a_killed_daemon_comes_back_by_itself() {
    let home = home();
    let first = home.daemon_pid();
    home.kill_at_once(&[first]);
    let second = home.next_daemon(first);
    home.kill_at_once(&[second]);
    let third = home.next_daemon(second);
    assert_eq!(home.daemon_pid(), third);
}

#[test]
fn p4_a_task_that_ends_while_the_daemon_is_dead_is_recorded_without_a_reader() {
    let home = home();
    let id = home.submit(&[], &format!("{}; echo over > over; exit 9", gate("go")));
    let _ = home.until_status(&id, "running");
    let shim = home.shim_pid(&id);
    // A frozen keeper brings nobody back, so the end falls into the gap.
    let (daemon, keeper) = (home.daemon_pid(), home.keeper_pid());
    freeze(keeper);
    home.kill_at_once(&[daemon]);
    home.open("go");
    wait_for("the shim to leave", || (!alive(shim)).then_some(()));
    thaw(keeper);
    let _ = home.next_daemon(daemon);
    let task = home.task(&id);
    assert_eq!((&task["status"], &task["outcome"]["exit_code"]), (&"failed".into(), &9.into()), "{task}");
    assert_eq!(events(&home, &id, "task.completed"), 1);
}

#[test]
fn p4_a_daemon_stopped_on_purpose_is_not_revived_and_has_the_result_at_its_next_start() {
    let home = home();
    let id = home.submit(&[], &format!("{}; echo done; exit 5", gate("go")));
    let _ = home.until_status(&id, "running");
    home.stop_daemon();
    home.open("go");
    wait_for("everybody to leave", || home.all_processes().is_empty().then_some(()));
    assert_eq!(home.cli(["daemon", "status"]).code, 1);
    assert!(home.all_processes().is_empty());
    home.does(["daemon", "start"]);
    let task = home.task(&id);
    assert_eq!((&task["status"], &task["outcome"]["exit_code"]), (&"failed".into(), &5.into()), "{task}");
    assert_eq!(home.output(&id), b"done\n");
}

#[test]
fn p3_a_waiting_client_survives_daemon_sigkill() {
    let home = home();
    let id = home.submit(&[], &format!("{}; exit 7", gate("go")));
    let _ = home.until_status(&id, "running");
    let waiting = home.spawn(["wait", &id]);
    for _ in 0..2 {
        drift(Duration::from_millis(50));
        let old = home.kill_daemon();
        let _ = home.next_daemon(old);
    }
    home.open("go");
    let output = waiting.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(7), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn p3_a_follower_survives_daemon_sigkill_and_misses_no_byte() {
    let home = home();
    let line = format!("for i in $(seq 30); do seq 500; sleep 0.02; done; {}; seq 10000", gate("go"));
    let id = home.submit(&[], &line);
    let following = home.spawn(["output", "-f", "--raw", &id]);
    // Read it all along, so that a full pipe never holds the follower up.
    let reader = std::thread::spawn(move || following.wait_with_output().unwrap());
    for _ in 0..3 {
        drift(Duration::from_millis(100));
        let old = home.kill_daemon();
        let _ = home.next_daemon(old);
    }
    home.open("go");
    let followed = reader.join().unwrap();
    assert_eq!(followed.status.code(), Some(0), "{}", String::from_utf8_lossy(&followed.stderr));
    let part: String = (1..=500).map(|n| format!("{n}\n")).collect();
    let whole = part.repeat(30) + &(1..=10_000).map(|n| format!("{n}\n")).collect::<String>();
    assert!(followed.stdout == whole.as_bytes() && home.output(&id) == whole.as_bytes());
}

#[test]
fn p10_an_attempt_that_was_never_begun_is_begun_once_by_the_next_daemon() {
    let home = home();
    let (daemon, keeper) = (home.daemon_pid(), home.keeper_pid());
    // The launch never leaves the keeper's socket.
    freeze(keeper);
    let id = home.submit(&["--env", "WORD=kept"], "echo $WORD >> ran");
    home.kill_at_once(&[daemon, keeper]);
    assert_eq!(home.truth("ran"), "");
    assert_eq!(home.ended(&id)["status"], "succeeded");
    assert_eq!(home.truth("ran"), "kept\n");
}

#[test]
fn p10_a_late_launch_and_the_next_daemon_run_the_attempt_once() {
    for _ in 0..4 {
        let home = home();
        let (daemon, keeper) = (home.daemon_pid(), home.keeper_pid());
        freeze(keeper);
        let id = home.submit(&[], "echo run >> ran");
        home.kill_at_once(&[daemon]);
        // It finds the launch of the dead daemon and the death of it at once.
        thaw(keeper);
        assert_eq!(home.ended(&id)["status"], "succeeded");
        assert_eq!(home.truth("ran"), "run\n");
    }
}

#[test]
fn p2_a_secret_that_died_with_the_daemon_is_a_start_failure_and_says_so() {
    let home = home();
    let (daemon, keeper) = (home.daemon_pid(), home.keeper_pid());
    freeze(keeper);
    let id = home.submit(&["--secret", "TOKEN=hunter2"], "echo run >> ran");
    home.kill_at_once(&[daemon, keeper]);
    let task = home.ended(&id);
    assert_eq!(task["status"], "start_failed", "{task}");
    assert!(task["outcome"]["reason"].as_str().unwrap().contains("secret unavailable"), "{task}");
    assert_eq!((home.truth("ran"), home.cli(["wait", &id]).code), (String::new(), 126));
}
