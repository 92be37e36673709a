//! What a task is given: its caller's surroundings, never the daemon's.
#![expect(
    clippy::unwrap_used,
    reason = "in a test, a panic is the report; helpers outside of #[test] are tests too"
)]

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use homing_testkit::{Home, freeze, wait_for};
use serde_json::{Value, json};

/// The environment that a task printed with `env -0`.
fn environment(output: &[u8]) -> BTreeMap<String, String> {
    let text = String::from_utf8(output.to_vec()).unwrap();
    let pairs = text.split_terminator('\0').map(|pair| pair.split_once('=').unwrap());
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

fn run(mut command: Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn a_task_has_its_callers_folder_and_environment_and_not_the_daemons() {
    let home = super::home();
    let started = home.command().env("OF_THE_STARTER", "x").args(["daemon", "start"]).status().unwrap();
    assert!(started.success());
    let folder = home.scratch().join("with a space");
    std::fs::create_dir(&folder).unwrap();
    let mut caller = home.command();
    caller.current_dir(&folder).env("OF_THE_CALLER", "two\nlines = 1").env("EMPTY", "");
    caller
        .env("CLAUDE_CODE_SESSION_ID", "s1")
        .env("CLAUDE_CODE_MESSAGING_TOKEN", "t")
        .env("HOMING_STRANGE", "x");
    caller.args(["run", "--env", "SET=by hand", "--", "env", "-0"]);
    let id = run(caller);
    let task = home.ended(&id);
    assert_eq!((&task["owner"], &task["cwd"]), (&json!("claude:s1"), &json!(folder.to_str().unwrap())));
    let given = environment(&home.output(&id));
    assert_eq!(given["OF_THE_CALLER"], "two\nlines = 1");
    assert_eq!((given["EMPTY"].as_str(), given["SET"].as_str()), ("", "by hand"));
    for absent in
        ["OF_THE_STARTER", "CLAUDE_CODE_SESSION_ID", "CLAUDE_CODE_MESSAGING_TOKEN", "HOMING_STRANGE"]
    {
        assert!(!given.contains_key(absent), "{absent}");
    }
    assert_eq!((&given["HOMING_TASK_ID"], given["HOMING_ATTEMPT"].as_str()), (&id, "1"));
    assert_eq!(
        (given["HOMING_OWNER"].as_str(), &given["HOMING_OUTPUT"][..]),
        ("claude:s1", task["output"]["path"].as_str().unwrap())
    );
    let names: Vec<_> = task["env_names"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert!(names.contains(&"OF_THE_CALLER") && names.contains(&"SET") && !names.contains(&"HOMING_STRANGE"));
    let pwd = home.cli(["run", "--follow", "--cwd", "with a space", "--", "pwd"]).ok().text();
    assert_eq!(pwd, folder.to_str().unwrap());
}

#[test]
fn a_variable_that_is_kept_from_tasks_can_be_passed_on_by_name() {
    let home = super::home();
    let mut caller = home.command();
    caller.env("CODEX_THREAD_ID", "9").args(["run", "--env-from", "CODEX_THREAD_ID", "--", "env", "-0"]);
    let id = run(caller);
    assert_eq!(home.ended(&id)["owner"], "codex:9");
    assert_eq!(environment(&home.output(&id))["CODEX_THREAD_ID"], "9");
    let missing = home.cli(["run", "--env-from", "NOT_SET_HERE", "--", "true"]);
    assert_eq!(missing.code, 2);
    assert!(missing.stderr.contains("NOT_SET_HERE is not set"), "{}", missing.stderr);
}

#[test]
fn a_task_has_its_callers_umask_limits_and_niceness() {
    let home = super::home();
    let _ = home.daemon_pid();
    let mut caller = Command::new("bash");
    let line = "umask 0137; ulimit -S -n 321; ulimit -S -c 0; exec nice -n 7 \"$0\" run -c 'umask; ulimit -S -n; nice; touch made'";
    caller.args(["-c", line]).arg(home.program()).env("HOMING_HOME", home.path()).current_dir(home.scratch());
    let id = run(caller);
    assert_eq!(home.ended(&id)["status"], "succeeded");
    assert_eq!(home.output(&id), b"0137\n321\n7\n");
    let made = std::fs::metadata(home.scratch().join("made")).unwrap().permissions().mode();
    assert_eq!(made & 0o777, 0o640);
    let second = home.cli(["run", "--follow", "-c", "nice"]).ok().text();
    assert_eq!(second, "0", "one caller's niceness is not the next one's");
}

#[test]
fn a_task_submitted_without_an_environment_gets_a_small_one_and_the_home_folder() {
    let home = super::home();
    let started = home.command().env("OF_THE_STARTER", "x").args(["daemon", "start"]).status().unwrap();
    assert!(started.success());
    let submitted = home.post("/v1/tasks", &json!({ "argv": ["env", "-0"] }));
    assert_eq!(submitted.status, 201);
    let id = submitted.json()["id"].as_str().unwrap().to_owned();
    let task = home.ended(&id);
    let given = environment(&home.output(&id));
    let known = ["HOME", "USER", "SHELL", "LANG", "PATH"];
    let strange: Vec<_> =
        given.keys().filter(|name| !known.contains(&name.as_str()) && !name.starts_with("HOMING_")).collect();
    assert_eq!(strange, Vec::<&String>::new());
    assert!(["HOME", "SHELL", "LANG", "PATH"].iter().all(|name| given.contains_key(*name)), "{given:?}");
    assert_eq!(task["cwd"], *given["HOME"]);
    let given =
        home.post("/v1/tasks", &json!({ "argv": ["env", "-0"], "env": { "ONLY": "this" }, "cwd": "/tmp" }));
    let id = given.json()["id"].as_str().unwrap().to_owned();
    assert_eq!(home.ended(&id)["cwd"], "/tmp");
    let given = environment(&home.output(&id));
    let named: Vec<_> = given.keys().filter(|name| !name.starts_with("HOMING_")).collect();
    assert_eq!(named, ["ONLY"]);
}

#[test]
fn a_secret_comes_from_the_line_or_from_a_file_and_is_shown_by_name_only() {
    let home = super::home();
    std::fs::write(home.scratch().join("token"), "from a file\n").unwrap();
    let id = home.submit(&["--secret", "A=given", "--secret", "B=@token"], "echo $A, $B");
    let _ = home.ended(&id);
    assert_eq!(home.output(&id), b"given, from a file\n");
    let shown = home.task(&id).to_string();
    assert!(shown.contains("\"A\"") && !shown.contains("given") && !shown.contains("from a file"), "{shown}");
    let missing = home.cli(["run", "--secret", "C=@nowhere", "--", "true"]);
    assert_eq!(missing.code, 2);
    assert!(missing.stderr.contains("`C`") && missing.stderr.contains("No such file"), "{}", missing.stderr);
}

#[test]
fn a_secret_that_is_no_plain_file_or_too_long_is_refused_and_nobody_waits_for_it() {
    let home = super::home();
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, home.scratch().join("pipe"), rustix::fs::FileType::Fifo, mode, 0)
        .unwrap();
    std::fs::write(home.scratch().join("long"), vec![b'x'; 200_000]).unwrap();
    for (path, why) in [("pipe", "no plain file"), ("/dev/zero", "no plain file"), ("long", "too long")] {
        let refused = home.cli(["run", "--secret", &format!("A=@{path}"), "--", "true"]);
        assert_eq!(refused.code, 2, "{}", refused.stderr);
        assert!(refused.stderr.contains("`A`") && refused.stderr.contains(why), "{}", refused.stderr);
    }
}

/// Submits while the keeper stands still, so that the task is accepted and cannot start; then nobody is left.
fn accepted_and_orphaned(home: &Home, secret: &str) -> String {
    let keeper = home.keeper_pid();
    freeze(keeper);
    let id = home.submit(&["--secret", secret], "echo ran; echo $TOKEN");
    let daemon = home.find_daemon().unwrap().pid;
    home.kill_at_once(&[daemon, keeper]);
    wait_for("nobody", || home.all_processes().is_empty().then_some(()));
    id
}

#[test]
fn p2_a_secret_lost_with_the_daemon_is_a_start_that_failed_and_one_in_a_file_is_read_again() {
    let home = super::home();
    let id = accepted_and_orphaned(&home, "TOKEN=volatile");
    let task = home.ended(&id);
    assert_eq!(task["status"], "start_failed", "{task}");
    let reason = task["outcome"]["reason"].as_str().unwrap();
    assert!(
        reason.contains("secret") && reason.contains("TOKEN") && !reason.contains("volatile"),
        "{reason}"
    );
    assert_eq!(home.output(&id), b"", "it never ran");
    std::fs::write(home.scratch().join("token"), "kept").unwrap();
    let id = accepted_and_orphaned(&home, "TOKEN=@token");
    assert_eq!(home.ended(&id)["status"], "succeeded");
    assert_eq!(home.output(&id), b"ran\nkept\n", "it ran once");
}
