//! Staying with a task, waiting for it, and what is returned.

use std::future::IntoFuture;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use homing_api::StopRequest;
use homing_engine::{Engine, ExecOutcome};
use homing_model::Spec;
use homing_testkit::{Home, drift, freeze, gate, thaw, wait_for};

use super::home;

/// The id of the owner's last task, once there is one.
fn last(home: &Home) -> String {
    wait_for("a task", || {
        let shown = home.cli(["show", "@last", "--json"]);
        (shown.code == 0).then(|| shown.json()["id"].as_str().expect("an id").to_owned())
    })
}

fn interrupt(pid: u32) {
    assert!(Command::new("kill").args(["-INT", &pid.to_string()]).status().expect("kill runs").success());
}

/// Times after which a task is left to the background, until it has printed something by then.
const PATIENCE_MS: [u64; 5] = [500, 1_000, 2_000, 5_000, 20_000];

#[test]
#[expect(clippy::disallowed_methods, reason = "how long it took is what is tested")]
fn exec_leaves_a_slow_task_to_the_background_and_the_task_goes_on() {
    let home = home();
    let _ = home.daemon_pid();
    let line = format!("echo first; {}; echo last; exit 0", gate("go"));
    let left = |after: u64| {
        let began = Instant::now();
        let output = home.cli(["exec", "--bg-after", &format!("{after}ms"), "-c", &line]);
        assert!(began.elapsed() >= Duration::from_millis(after));
        assert_eq!(output.code, 123, "{}", output.stderr);
        (output.text() == "first").then_some(output)
    };
    let output = PATIENCE_MS.into_iter().find_map(left).expect("what was printed until then");
    let id = last(&home);
    assert!(output.stderr.contains(&id), "{}", output.stderr);
    let _ = home.until_status(&id, "running");
    home.open("go");
    assert_eq!(home.ended(&id)["status"], "succeeded");
    assert_eq!(home.output(&id), b"first\nlast\n");
}

#[test]
fn exec_that_leaves_a_reader_behind_says_where_it_was() {
    const BEFORE: &[u8] = &[b'x'; 1_000];
    let home = home();
    let _ = home.daemon_pid();
    let whole: String = (1..=300_000).map(|number| format!("{number}\n")).collect();
    for after in PATIENCE_MS {
        let _ = std::fs::remove_file(home.scratch().join("go"));
        let line = format!("seq 300000; {}", gate("go"));
        // There is something in it already, so that it is full in the middle of a chunk.
        let (mut reader, mut writer) = std::io::pipe().unwrap();
        writer.write_all(BEFORE).unwrap();
        let mut command = home.command();
        command.args(["exec", "--bg-after", &format!("{after}ms"), "-c", &line]).stdout(writer);
        // Nobody reads its output before it has left.
        let output = command.stderr(Stdio::piped()).output().unwrap();
        assert_eq!(output.status.code(), Some(123));
        drop(command);
        let mut passed = Vec::new();
        reader.read_to_end(&mut passed).unwrap();
        let passed = passed.strip_prefix(BEFORE).expect("what was there");
        let (id, told) = (last(&home), String::from_utf8_lossy(&output.stderr).into_owned());
        let (_, rest) = told.split_once(&format!("`homing output -f {id}")).expect(&told);
        let (words, _) = rest.split_once('`').expect(&told);
        let offset = words.strip_prefix(" --offset ").unwrap_or("0");
        assert_eq!(offset, passed.len().to_string(), "{told}");
        home.open("go");
        let _ = home.ended(&id);
        let rest = home.cli(["output", &id, "--offset", offset, "--raw"]).ok().stdout;
        assert!([passed, &rest].concat() == whole.as_bytes());
        if !passed.is_empty() {
            return;
        }
    }
    panic!("nothing of what it printed was passed on");
}

#[tokio::test]
async fn an_embedded_exec_leaves_a_task_that_never_stops_printing_to_the_background() {
    let home = home();
    let engine = Engine::builder(home.path()).helper(home.program().to_owned()).open().await.unwrap();
    for after in PATIENCE_MS {
        let spec = Spec { shell: Some("while :; do echo word; done".into()), ..Spec::default() };
        let exec = engine.exec(spec).background_after(Duration::from_millis(after));
        let outcome = tokio::time::timeout(Duration::from_secs(60), exec.into_future()).await;
        let ExecOutcome::Backgrounded { task, output_so_far, next_offset } =
            outcome.expect("in time").unwrap()
        else {
            panic!("it does not end by itself");
        };
        assert!(!task.status.is_terminal());
        let request = StopRequest { wait: true, ..StopRequest::default() };
        assert!(engine.stop(&task.id, request).await.unwrap().task.status.is_terminal());
        if !output_so_far.is_empty() {
            assert!(output_so_far.starts_with(b"word\n") || next_offset > output_so_far.len() as u64);
            return;
        }
    }
    panic!("nothing of what it printed was told");
}

#[test]
fn exec_returns_at_once_when_the_task_is_faster() {
    let home = home();
    let output = home.cli(["exec", "--bg-after", "30s", "-c", "echo out; echo err >&2; exit 9"]);
    assert_eq!((output.code, output.text(), output.stderr.as_str()), (9, "out".into(), "err\n"));
}

#[test]
fn output_is_shown_live_though_the_question_for_it_came_with_the_launch() {
    let home = home();
    let keeper = home.keeper_pid();
    freeze(keeper);
    let mut client = home.spawn(["exec", "-c", &format!("echo first; {}", gate("go"))]);
    let _ = last(&home);
    drift(Duration::from_millis(50));
    thaw(keeper);
    // The task does not end before its first line was seen.
    let mut line = String::new();
    BufReader::new(client.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "first\n");
    home.open("go");
    assert_eq!(client.wait().unwrap().code(), Some(0));
}

#[test]
fn a_task_outlives_the_client_that_ran_it_in_the_foreground() {
    let home = home();
    let mut client = home.spawn(["exec", "-c", &format!("echo $$ > pid; {}; exit 3", gate("go"))]);
    let _ = home.told_pid("pid");
    let id = last(&home);
    home.kill_at_once(&[client.id()]);
    client.wait().unwrap();
    home.open("go");
    assert_eq!(home.ended(&id)["outcome"]["exit_code"], 3);
}

#[test]
fn the_first_interrupt_goes_to_the_task_and_the_second_stops_it() {
    let home = home();
    let line = "trap 'echo int >> seen' INT; trap 'echo term >> seen; exit 8' TERM; echo up > up; while :; do sleep 0.01; done";
    let client = home.spawn(["exec", "-c", line]);
    let _ = home.told("up");
    interrupt(client.id());
    assert_eq!(home.told("seen"), "int");
    interrupt(client.id());
    let output = client.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(122), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(home.truth("seen"), "int\nterm\n");
    let task = home.task(&last(&home));
    assert_eq!((&task["status"], &task["outcome"]["exit_code"]), (&"stopped".into(), &8.into()), "{task}");
}

#[test]
fn who_ends_the_command_in_a_pipe_is_told_what_goes_on() {
    let home = home();
    let client = home.spawn(["exec", "-c", &format!("echo up > up; {}; exit 3", gate("go"))]);
    let _ = home.told("up");
    let id = last(&home);
    let pid = client.id();
    wait_for("the signal to be caught", || {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"))?;
        (u64::from_str_radix(caught.trim(), 16).ok()? & (1 << 14) != 0).then_some(())
    });
    assert!(Command::new("kill").args(["-TERM", &pid.to_string()]).status().unwrap().success());
    let output = client.wait_with_output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(143), "{told}");
    assert!(told.contains(&format!("{id} goes on; `homing wait {id}` waits")), "{told}");
    home.open("go");
    assert_eq!(home.ended(&id)["outcome"]["exit_code"], 3);
}

#[test]
fn output_that_cannot_be_written_names_the_task_that_goes_on() {
    let home = home();
    for words in [&["exec"][..], &["run", "--follow"]] {
        let _ = std::fs::remove_file(home.scratch().join("go"));
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let mut command = home.command();
        command.args(words).args(["-c", &format!("echo hi; {}; exit 3", gate("go"))]);
        let output = command.stdout(full).stderr(Stdio::piped()).output().unwrap();
        let (told, id) = (String::from_utf8_lossy(&output.stderr).into_owned(), last(&home));
        assert_eq!(output.status.code(), Some(125), "{told}");
        assert!(told.contains("standard output cannot be written"), "{told}");
        assert!(told.contains(&format!("is {id} (HM0013)")), "{told}");
        assert!(told.contains(&format!("`homing stop {id}` ends it")), "{told}");
        home.open("go");
        assert_eq!(home.ended(&id)["outcome"]["exit_code"], 3);
    }
}

#[test]
fn an_interrupted_task_that_ends_by_it_gives_its_signal() {
    let home = home();
    let client = home.spawn(["exec", "-c", "echo up > up; exec sleep 300"]);
    let _ = home.told("up");
    wait_for("sleep to be executed", || (home.task(&last(&home))["status"] == "running").then_some(()));
    interrupt(client.id());
    assert_eq!(client.wait_with_output().unwrap().status.code(), Some(130));
}

#[test]
fn p2_every_end_has_its_exit_code() {
    let home = home();
    std::fs::write(home.scratch().join("plain"), "not a program").unwrap();
    let of = |line: &[&str]| {
        [home.cli([&["run", "--wait"], line].concat()).code, home.cli([&["exec"], line].concat()).code]
    };
    assert_eq!(of(&["--", "true"]), [0, 0]);
    assert_eq!(of(&["-c", "exit 42"]), [42, 42]);
    assert_eq!(of(&["-c", "exit 255"]), [255, 255]);
    assert_eq!(of(&["-c", "kill -KILL $$"]), [137, 137]);
    assert_eq!(of(&["-c", "kill -TERM $$"]), [143, 143]);
    assert_eq!(of(&["--timeout", "50ms", "--", "sleep", "300"]), [124, 124]);
    assert_eq!(of(&["--", "./not-there"]), [127, 127]);
    assert_eq!(of(&["--", "./plain"]), [126, 126]);
    assert_eq!(of(&["--", "no-such-program-anywhere"]), [127, 127]);
    // Not found is said of the program alone.
    assert_eq!(of(&["--cwd", "/not/there", "--", "true"]), [126, 126]);
    assert_eq!(of(&["--stdin", "/not/there", "--", "true"]), [126, 126]);
    assert_eq!(home.cli(["exec", "--no-such-flag"]).code, 125);
    assert_eq!(home.cli(["wait", "t-zzzzzzzzzz"]).code, 125);
    assert_eq!(home.cli(["show", "t-zzzzzzzzzz"]).code, 4);
}

#[test]
fn a_start_that_failed_says_why_and_invents_no_code() {
    let home = home();
    let id = home.cli(["run", "--", "./not-there"]).ok().text();
    let task = home.ended(&id);
    assert_eq!(task["status"], "start_failed");
    let outcome = &task["outcome"];
    assert_eq!((&outcome["exit_code"], &outcome["signal"]), (&().into(), &().into()));
    assert!(outcome["reason"].as_str().unwrap().contains("./not-there"), "{task}");
    assert!(task["started_at"].is_null() && task["pid"].is_null(), "{task}");
}

#[test]
fn follow_shows_the_whole_output_and_returns_the_code() {
    let home = home();
    let output = home.cli(["run", "--follow", "-c", "seq 20000; exit 5"]);
    let whole: String = (1..=20_000).map(|n| format!("{n}\n")).collect();
    assert!(output.stdout == whole.as_bytes());
    assert_eq!(output.code, 5);
}

#[test]
fn wait_for_all_gives_the_first_that_did_not_succeed_in_the_order_asked() {
    let home = home();
    let [good, bad, worse] = ["exit 0", "sleep 0.1; exit 3", "exit 4"].map(|line| home.submit(&[], line));
    assert_eq!(home.cli(["wait", &good, &bad, &worse]).code, 3);
    assert_eq!(home.cli(["wait", &good, &worse, &bad]).code, 4);
    assert_eq!(home.cli(["wait", &good]).code, 0);
}

#[test]
fn wait_for_any_gives_the_one_that_ended_first() {
    let home = home();
    let slow = home.submit(&[], &format!("{}; exit 3", gate("go")));
    let waiting = {
        let quick = home.submit(&[], &format!("{}; exit 4", gate("quick")));
        home.spawn(["wait", "--any", &slow, &quick])
    };
    home.open("quick");
    assert_eq!(waiting.wait_with_output().unwrap().status.code(), Some(4));
    home.open("go");
    assert_eq!(home.cli(["wait", "--any", &slow]).code, 3);
}

#[test]
fn wait_gives_up_after_its_timeout_and_harms_nothing() {
    let home = home();
    let id = home.submit(&[], &gate("go"));
    let other = home.submit(&[], "exit 1");
    assert_eq!(home.cli(["wait", &id, "--timeout", "100ms"]).code, 123);
    assert_eq!(home.cli(["wait", &other, &id, "--timeout", "100ms"]).code, 123);
    assert_eq!(home.cli(["wait", "--any", &id, "--timeout", "0s"]).code, 123);
    assert_eq!(home.until_status(&id, "running")["status"], "running");
    home.open("go");
    assert_eq!(home.cli(["wait", &id, "--timeout", "30s"]).code, 0);
}
