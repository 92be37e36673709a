//! Silences and heartbeats, and whether a task waits for somebody to type.

use homing_model::Timestamp;
use homing_testkit::{Home, gate, wait_for};
use serde_json::Value;

use super::home;

fn notices(home: &Home, id: &str, kind: &str) -> Vec<Value> {
    let log = home.cli(["events"]).ok().text();
    let events = log.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let of_it = |event: &Value| event["type"] == kind && event["task_id"] == id;
    events.filter(of_it).map(|event| event["data"].clone()).collect()
}

fn until(home: &Home, id: &str, kind: &str, count: usize) -> Vec<Value> {
    wait_for(&format!("{count} of {kind}"), || {
        Some(notices(home, id, kind)).filter(|found| found.len() >= count)
    })
}

/// One round; false if the silence was that before the first word, which a machine that has no time makes long enough.
fn told_once_and_again(home: &Home, round: u32) -> bool {
    let alarm = 300 * 3_u64.pow(round);
    let (more, go) = (format!("more{round}"), format!("go{round}"));
    // Not at once: a shim that has no time itself sees the start and the first word in one moment.
    let nap = std::time::Duration::from_millis(alarm / 3).as_secs_f64();
    let line = format!("sleep {nap}; echo one; {}; echo two; {}", gate(&more), gate(&go));
    let id = home.submit(&["--quiet-after", &format!("{alarm}ms")], &line);
    let told = until(home, &id, "task.quiet", 1);
    let quiet = told[0]["quiet_ms"].as_u64().expect("a number");
    assert!(quiet >= alarm, "{quiet}");
    let time = |value: &Value| serde_json::from_value::<Timestamp>(value.clone()).expect("a time");
    if time(&told[0]["at"]).millis_since(time(&home.task(&id)["started_at"])) <= quiet {
        home.does(["stop", "--signal", "KILL", &id]);
        return false;
    }
    assert_eq!(told[0]["waiting_for_input"], false);
    let task = home.task(&id);
    assert!(task["quiet_since"].is_string() && task["status"] == "running", "{task}");
    assert!(home.cli(["show", &id]).ok().text().contains("quiet since"));
    let inbox = home.cli(["inbox", "--json"]).ok().json();
    assert_eq!(inbox["items"].as_array().and_then(|items| items.last()), told.last());
    // A daemon that comes anew knows the silence that was told.
    let old = home.kill_daemon();
    let _ = home.next_daemon(old);
    homing_testkit::drift(std::time::Duration::from_millis(alarm + 400));
    assert_eq!(notices(home, &id, "task.quiet").len(), 1);
    home.open(&more);
    let told = until(home, &id, "task.quiet", 2);
    assert_eq!(told.len(), 2);
    home.open(&go);
    let _ = home.ended(&id);
    assert_eq!(home.task(&id)["quiet_since"], Value::Null);
    assert_eq!(notices(home, &id, "task.quiet").len(), 2);
    true
}

#[test]
fn p5_a_silence_is_told_once_and_again_after_new_output() {
    let home = home();
    assert!((0..4).any(|round| told_once_and_again(&home, round)));
}

#[test]
fn p5_a_silence_that_began_before_the_daemon_died_is_told_by_the_next() {
    let home = home();
    let id = home.submit(&["--quiet-after", "1s"], &format!("echo one; {}", gate("go")));
    wait_for("the output", || (home.output(&id) == b"one\n").then_some(()));
    home.stop_daemon();
    homing_testkit::drift(std::time::Duration::from_millis(1_100));
    home.does(["daemon", "start"]);
    let told = until(&home, &id, "task.quiet", 1);
    assert!(told[0]["quiet_ms"].as_u64().unwrap() >= 1_000, "counted from the output, not from the daemon");
    home.open("go");
    let _ = home.ended(&id);
}

#[test]
fn a_task_that_prints_is_not_quiet() {
    let home = home();
    // On a machine that has no time it may be silent for as long all the same.
    let spoke = (0..5).any(|_| {
        let id = home.submit(&["--quiet-after", "2s"], "for i in $(seq 30); do echo $i; sleep 0.1; done");
        let _ = home.ended(&id);
        notices(&home, &id, "task.quiet").is_empty()
    });
    assert!(spoke);
}

#[test]
fn a_terminal_that_somebody_reads_waits_for_input_and_a_sleeping_one_does_not() {
    let home = home();
    // A silence that is told before a machine that has no time lets the program read is none of one who waits: the next has more of it.
    let told_of = |line: &str, quiet: &str| {
        let id = home.submit(&["--pty", "--quiet-after", quiet], line);
        let task = wait_for(&format!("`{line}` to wait"), || {
            Some(home.task(&id)).filter(|task| task["waiting_for_input"] == true)
        });
        assert_eq!(task["status"], "running");
        let listed = home.cli(["list", "--json"]).ok().json();
        assert!(listed["items"].as_array().unwrap().iter().any(|task| task["waiting_for_input"] == true));
        let told = until(&home, &id, "task.quiet", 1);
        assert!(home.cli(["show", &id]).ok().text().contains("for input"));
        home.does(["stop", "--signal", "KILL", &id]);
        assert_eq!(home.ended(&id)["waiting_for_input"], false);
        told.iter().any(|notice| notice["waiting_for_input"] == true)
    };
    for line in ["read x", "cat", "cat; true", "bash --norc -i", "(cat < /dev/tty); true"] {
        assert!(["200ms", "2s", "15s"].iter().any(|quiet| told_of(line, quiet)), "{line}");
    }
    for (options, line) in [
        (&["--pty", "--quiet-after", "200ms"][..], "sleep 300"),
        (&["--pty", "--quiet-after", "200ms"], "sleep 300 | cat"),
        (&["--stdin", "pipe", "--quiet-after", "200ms"], "cat"),
    ] {
        let id = home.submit(options, line);
        let told = until(&home, &id, "task.quiet", 1);
        assert_eq!(told[0]["waiting_for_input"], false, "{line}");
        assert_eq!(home.task(&id)["waiting_for_input"], false, "{line}");
        home.does(["stop", "--signal", "KILL", &id]);
    }
}

#[test]
fn p5_a_heartbeat_tells_what_is_new_and_skips_when_nothing_is() {
    let home = home();
    let line = format!("printf 'one\\033[0m gr\\303'; {}; printf '\\274n\\n'; {}", gate("more"), gate("go"));
    let id = home.submit(&["--heartbeat", "150ms"], &line);
    let told = until(&home, &id, "task.heartbeat", 1);
    assert_eq!(told[0]["new_output"], "one gr", "and half a character waits");
    homing_testkit::drift(std::time::Duration::from_millis(600));
    let before: String = notices(&home, &id, "task.heartbeat")
        .iter()
        .map(|notice| notice["new_output"].as_str().unwrap().to_owned())
        .collect();
    assert!(before.starts_with("one gr"), "{before}");
    let old = home.kill_daemon();
    let _ = home.next_daemon(old);
    home.open("more");
    wait_for("the rest", || {
        let last = notices(&home, &id, "task.heartbeat").pop()?;
        last["new_output"].as_str()?.ends_with("n\n").then_some(())
    });
    let count = notices(&home, &id, "task.heartbeat").len();
    homing_testkit::drift(std::time::Duration::from_millis(500));
    assert_eq!(notices(&home, &id, "task.heartbeat").len(), count, "silent, and skipped");
    assert!(home.cli(["show", &id]).ok().text().contains("heartbeat    every"));
    home.open("go");
    let _ = home.ended(&id);
}

#[test]
fn a_heartbeat_has_the_last_two_thousand_characters_of_what_is_new() {
    let home = home();
    let line = format!("seq 100000; {}", gate("go"));
    let id = home.submit(&["--heartbeat", "1s"], &line);
    // One in most cases: a machine that has no time may have a heart beat meanwhile.
    let told = wait_for("the last of it", || {
        let told = notices(&home, &id, "task.heartbeat");
        told.last()?["new_output"].as_str()?.ends_with("99999\n100000\n").then_some(told)
    });
    let long: Vec<_> = told.iter().map(|one| one["new_output"].as_str().unwrap().chars().count()).collect();
    assert!(long.contains(&2_000) && long.iter().all(|count| *count <= 2_000), "{long:?}");
    home.open("go");
    let _ = home.ended(&id);
}

#[test]
fn a_program_that_polls_its_terminal_among_others_may_wait_for_input() {
    let home = home();
    let polls =
        "import select,sys,os; r,w=os.pipe(); p=select.poll(); p.register(0); p.register(r); p.poll()";
    let polls = polls.replace("p.register(0)", "p.register(0, select.POLLIN)");
    let epoll = "import select,os; r,w=os.pipe(); e=select.epoll(); e.register(FD, select.EPOLLIN); e.register(r, select.EPOLLIN); e.poll()";
    for (line, expected) in [
        (polls.as_str(), "maybe"),
        (&epoll.replace("FD", "0"), "maybe"),
        (&epoll.replace("FD", "w").replace("EPOLLIN); e.register(r", "EPOLLERR); e.register(r"), "no"),
        ("input()", "yes"),
    ] {
        let id = home.submit(&["--pty"], &format!("exec python3 -c 'print(\"ready\", flush=True); {line}'"));
        wait_for("the program", || home.output(&id).starts_with(b"ready").then_some(()));
        let task = wait_for(&format!("`{line}` to wait"), || {
            Some(home.task(&id)).filter(|task| task["input_wait"] == expected)
        });
        assert_eq!(task["waiting_for_input"], expected == "yes", "{line}");
        home.does(["stop", "--signal", "KILL", &id]);
        assert_eq!(home.task(&id)["input_wait"], "no");
    }
}
