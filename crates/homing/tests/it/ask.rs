//! Agents as tasks: whatever an agent does, its end comes home with a true status and an answer, or the words that stand for one.
//!
//! The agents here are fakes: scripts with the names of real ones that print lines in their shapes.
#![expect(
    clippy::unwrap_used,
    reason = "in a test, a panic is the report; helpers outside of #[test] are tests too"
)]

use homing_testkit::{Home, Output, Receiver, Script, gate, wait_for, write_program};
use serde_json::{Value, json};

pub(super) const SESSION: &str = "86cdf13b-9232-4361-8416-ce03ab341f08";

/// Puts a fake agent of this name on the PATH of [`ask`].
pub(super) fn fake(home: &Home, name: &str, script: &str) {
    let path = home.scratch().join("bin").join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    write_program(&path, &format!("#!/bin/sh\n{script}\n"));
}

/// `homing ask`, with nothing on the PATH but fakes and the system.
pub(super) fn ask(home: &Home, arguments: &[&str]) -> Output {
    let path = format!("{}:/usr/bin:/bin", home.scratch().join("bin").display());
    let mut command = home.command();
    command
        .arg("ask")
        .args(arguments)
        .env("PATH", path)
        .env("HOME", home.scratch())
        .env("HOMING_OWNER", "user");
    for name in ["CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_DATA_HOME"] {
        command.env_remove(name);
    }
    Home::finish(&mut command)
}

/// A line that prints this JSON.
pub(super) fn print(line: &Value) -> String {
    format!("printf '%s\\n' '{line}'")
}

pub(super) fn says(text: &str) -> String {
    print(&json!({
        "type": "assistant", "message": { "id": text, "content": [{ "type": "text", "text": text }] },
        "parent_tool_use_id": null, "session_id": SESSION,
    }))
}

pub(super) fn result(text: &str) -> String {
    print(&json!({
        "type": "result", "subtype": "success", "is_error": false, "result": text, "session_id": SESSION,
        "num_turns": 2, "total_cost_usd": 0.25,
        "usage": { "input_tokens": 3, "cache_read_input_tokens": 4, "output_tokens": 5 },
    }))
}

fn inbox(home: &Home) -> Vec<Value> {
    let answer = home.cli(["inbox", "--owner", "user", "--json"]).ok().json();
    answer["items"].as_array().cloned().unwrap_or_default()
}

#[test]
fn p5_an_answer_comes_to_inbox_webhook_and_events_alike() {
    let home = super::home();
    fake(
        &home,
        "claude",
        &format!("cat > got; echo \"$@\" > words; env > variables; {}; {}", says("Hm."), result("Because.")),
    );
    let receiver = Receiver::new([Script::status(204)]);
    let url = format!("http://127.0.0.1:{}/", receiver.port());
    let id =
        ask(&home, &["--notify", &url, "--notify", "inbox", "--name", "why", "why?\nTell me."]).ok().text();
    let task = home.ended(&id);
    assert_eq!((&task["kind"], &task["status"]), (&"agent".into(), &"succeeded".into()));
    assert_eq!((&task["answer"], &task["answer_state"]), (&"Because.".into(), &"ok".into()));
    assert_eq!(task["command"], "ask claude: why?");
    let agent = json!({
        "name": "claude", "session_id": SESSION, "prompt": "why?\nTell me.", "turns": 2, "cost_usd": 0.25,
        "tokens": { "input": 7, "cached": 4, "output": 5 }, "doing": null, "continue": null,
    });
    assert_eq!(task["agent"], agent);
    assert_eq!(home.truth("got"), "why?\nTell me.", "the prompt is its input");
    assert_eq!(home.truth("words"), "-p --output-format stream-json --verbose\n", "and no argument");
    let variables = home.truth("variables");
    assert!(
        variables.contains(&format!("HOMING_TASK_ID={id}\n")) && variables.contains("HOMING_OWNER=user\n")
    );

    let posted: Value = serde_json::from_slice(&receiver.wait_for(1)[0].body).unwrap();
    let inbox = inbox(&home);
    assert_eq!((inbox.len(), &inbox[0]["answer"]), (1, &"Because.".into()));
    assert_eq!(posted["data"], inbox[0], "the same object everywhere");
    let log = home.cli(["events"]).ok().text();
    let told = log.lines().find(|line| line.contains("task.completed")).unwrap();
    assert_eq!(serde_json::from_str::<Value>(told).unwrap()["data"], inbox[0]);
    assert!(!home.path().join("tasks").join(&id).join("prompt").exists(), "the prompt is gone from the disk");
}

#[test]
fn p2_however_an_agent_ends_its_status_is_true() {
    let home = super::home();
    let error = |text: &str| {
        print(&json!({
            "type": "result", "subtype": "success", "is_error": true, "result": text, "session_id": SESSION,
        }))
    };
    let half = "printf '{\"type\":\"result\",\"result\":\"never whole'";
    let noise = "printf 'warning: \\377\\n{\"type\":\\n[]\\n'; head -c 100000 /dev/urandom";
    let failed = |why: &str| format!("(background task failed: {why})");
    // What it does, and then: status, exit code, answer, its state, and the code of `--wait`.
    let cases: Vec<(&str, String, &str, Value, String, &str, i32)> = vec![
        ("answers", result("42"), "succeeded", json!(0), "42".into(), "ok", 0),
        (
            "error, exit 0",
            format!("{}; {}", says("Hm."), error("no credit")),
            "failed",
            json!(0),
            failed("no credit"),
            "failed",
            1,
        ),
        (
            "error, exit 1",
            format!("{}; exit 1", error("no credit")),
            "failed",
            json!(1),
            failed("no credit"),
            "failed",
            1,
        ),
        (
            "stderr alone",
            "echo Error: no such session >&2; exit 3".into(),
            "failed",
            json!(3),
            failed("Error: no such session"),
            "failed",
            3,
        ),
        ("not a word", "exit 4".into(), "failed", json!(4), failed("exit 4"), "failed", 4),
        (
            "killed",
            format!("{}; kill -9 $$", says("Hm.")),
            "failed",
            Value::Null,
            failed("ended by signal 9"),
            "failed",
            137,
        ),
        ("silent", "true".into(), "succeeded", json!(0), "(no answer produced)".into(), "none", 0),
        (
            "half a line",
            format!("{}; {half}", says("So far.")),
            "succeeded",
            json!(0),
            "So far.".into(),
            "ok",
            0,
        ),
        ("half a line alone", half.into(), "succeeded", json!(0), "(no answer produced)".into(), "none", 0),
        (
            "half a line, killed",
            format!("{}; {half}; kill -9 $$", says("So far.")),
            "failed",
            Value::Null,
            failed("ended by signal 9"),
            "failed",
            137,
        ),
        (
            "noise",
            format!("{noise}; echo; {}; {noise}", result("42")),
            "succeeded",
            json!(0),
            "42".into(),
            "ok",
            0,
        ),
        ("noise alone", noise.into(), "succeeded", json!(0), "(no answer produced)".into(), "none", 0),
    ];
    for (what, script, status, code, answer, state, waited) in &cases {
        fake(&home, "claude", script);
        let out = ask(&home, &["--wait", "--name", what, "why?"]);
        assert_eq!((out.code, out.text().as_str()), (*waited, answer.as_str()), "{what}: {}", out.stderr);
        let task = home.task("@last");
        assert_eq!(
            (&task["status"], &task["outcome"]["exit_code"]),
            (&json!(status), code),
            "{what}: {task}"
        );
        assert_eq!(
            (&task["answer"], &task["answer_state"]),
            (&json!(answer), &json!(state)),
            "{what}: {task}"
        );
    }
    let answers: Vec<_> = cases.iter().map(|(.., answer, _, _)| json!(answer)).collect();
    let log = home.cli(["events"]).ok().text();
    let told = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let told: Vec<_> = told.filter(|event| event["type"] == "task.completed").collect();
    assert_eq!(told.iter().map(|event| event["data"]["answer"].clone()).collect::<Vec<_>>(), answers);
}

#[test]
fn p2_an_agent_that_hangs_or_is_stopped_or_cannot_be_started_ends_all_the_same() {
    let home = super::home();
    fake(&home, "claude", &format!("{}; echo > said; exec sleep 1000", says("Thinking.")));
    // Until it has said something before its time was over.
    for limit in ["300ms", "1s", "4s", "20s"] {
        let late = ask(&home, &["--wait", "--timeout", limit, "why?"]);
        assert_eq!(late.code, 124, "{}", late.stderr);
        if !home.truth("said").is_empty() {
            break;
        }
    }
    let task = home.task("@last");
    assert_eq!((&task["status"], &task["answer_state"]), (&"timed_out".into(), &"failed".into()));
    assert!(task["answer"].as_str().unwrap().starts_with("(background task failed: "), "{task}");
    assert_eq!(task["agent"]["session_id"], SESSION, "what it said of itself is kept");

    let id = ask(&home, &["why?"]).ok().text();
    let _ = home.until_status(&id, "running");
    let _ = home.cli(["stop", &id]).ok();
    let task = home.ended(&id);
    assert_eq!((&task["status"], &task["answer_state"]), (&"stopped".into(), &"failed".into()));
    assert_eq!(task["answer"], "(background task failed: stopped by user)");

    // It is there, and no program.
    std::fs::write(home.scratch().join("bin/codex"), "").unwrap();
    let absent = ask(&home, &["--wait", "--agent", "codex", "why?"]);
    assert_eq!(absent.code, 126, "{}", absent.stderr);
    let task = home.task("@last");
    assert_eq!((&task["status"], &task["answer_state"]), (&"start_failed".into(), &"failed".into()));
    assert!(!home.path().join("tasks").join(task["id"].as_str().unwrap()).join("prompt").exists());
    let states: Vec<_> = inbox(&home).iter().map(|notice| notice["status"].clone()).collect();
    assert_eq!(states, ["stopped"], "who stayed was told");
}

#[test]
fn an_agent_whose_program_is_not_there_is_refused_with_those_that_are() {
    let home = super::home();
    let refused = ask(&home, &["--agent", "claude", "why?"]);
    assert!(refused.code == 1 && refused.stderr.contains("`claude` is not in PATH (HM0431)"), "{refused:?}");
    assert!(refused.stderr.contains("No other agent is there either"), "{refused:?}");
    fake(&home, "gemini", "true");
    let refused = ask(&home, &["--wait", "--agent", "claude", "why?"]);
    assert!(refused.code == 125 && refused.stderr.contains("`--agent gemini`"), "{refused:?}");
    // The one whose session asks is no better if it is not there.
    let refused = ask(&home, &["--owner", "codex:7", "why?"]);
    assert!(refused.code == 1 && refused.stderr.contains("`codex` is not in PATH"), "{refused:?}");
    let count = home.cli(["list", "--all", "--json"]).ok().json()["items"].as_array().unwrap().len();
    assert_eq!(count, 0, "what was refused left nothing");
}

#[test]
fn what_an_agent_is_at_is_shown_while_it_runs() {
    let home = super::home();
    let tool = print(&json!({
        "type": "assistant", "session_id": SESSION,
        "message": { "id": "m1", "content": [{ "type": "tool_use", "name": "Bash", "input": { "command": "make all" } }] },
    }));
    fake(
        &home,
        "claude",
        &format!("{tool}; {}; {}; {}; {}", gate("one"), says("Built."), gate("two"), result("Done.")),
    );
    let id = ask(&home, &["build it"]).ok().text();
    let until =
        |text: &str| wait_for(text, || Some(home.task(&id)).filter(|task| task["progress"]["text"] == text));
    let task = until("turn 1, Bash: make all");
    assert_eq!((&task["agent"]["turns"], &task["agent"]["session_id"]), (&1.into(), &SESSION.into()));
    let listed = home.cli(["list"]).ok().text();
    assert!(listed.contains("ask claude: build it [turn 1, Bash: make all]"), "{listed}");
    // Another daemon finds out by itself.
    let old = home.kill_daemon();
    let _ = home.next_daemon(old);
    let _ = until("turn 1, Bash: make all");
    home.open("one");
    let _ = until("turn 2, Built.");
    home.open("two");
    let task = home.ended(&id);
    assert_eq!((&task["answer"], &task["progress"]), (&"Done.".into(), &Value::Null));
}

#[test]
fn the_end_of_a_long_output_has_the_answer() {
    let home = super::home();
    let long = "i=0; while [ $i -lt 40 ]; do printf '{\"type\":\"user\",\"text\":\"'; head -c 20000 /dev/zero | tr '\\0' x; echo '\"}'; i=$((i+1)); done";
    fake(&home, "claude", &format!("{}; {long}; {}", says("Begin."), result("End.")));
    let out = ask(&home, &["--wait", "--max-output", "64KiB", "why?"]).ok();
    assert_eq!(out.text(), "End.");
    let task = home.task("@last");
    assert!(task["output"]["dropped"].as_u64().unwrap() > 0, "{task}");
    assert_eq!(task["agent"]["session_id"], SESSION);
    fake(
        &home,
        "claude",
        "printf '{\"type\":\"result\",\"result\":\"'; head -c 200000 /dev/zero | tr '\\0' y; echo '\"}'",
    );
    let answer = ask(&home, &["--wait", "why?"]).ok().text();
    assert!(
        answer.len() < 66_000 && answer.ends_with("[cut: 200000 bytes in all, `homing output` has the rest]")
    );
}

#[test]
fn p11_no_secret_of_an_agent_is_told_and_its_callers_session_is_not_its_own() {
    let home = super::home();
    let echo =
        "read -r prompt; printf '{\"type\":\"result\",\"result\":\"%s and %s\"}\\n' \"$prompt\" \"$KEY\"";
    fake(&home, "claude", &format!("env > variables; {echo}"));
    let out =
        ask(&home, &["--secret", "KEY=hunter2", "--env", "MY_TOKEN=swordfish", "--wait", "use swordfish"])
            .ok();
    assert_eq!(out.text(), "use [secret MY_TOKEN] and [secret KEY]");
    let task = home.task("@last");
    assert_eq!(task["agent"]["prompt"], "use [secret MY_TOKEN]");
    let told = home.cli(["events"]).ok().text() + &task.to_string();
    assert!(!told.contains("hunter2") && !told.contains("swordfish"), "{told}");
    let written = ask(&home, &["--secret", "KEY=hunter2", "use hunter2"]);
    assert!(written.code == 2 && written.stderr.contains("name the variable instead"), "{}", written.stderr);
    assert!(!written.stderr.contains("hunter2"));
    // Over HTTP too, where the caller chooses the environment.
    let path = format!("{}:/usr/bin:/bin", home.scratch().join("bin").display());
    let body = json!({
        "kind": "agent", "agent": "claude", "prompt": "x", "owner": "bob", "cwd": home.scratch().to_str(),
        "env": { "PATH": path, "CLAUDE_CODE_SESSION_ID": "mine", "CLAUDE_CODE_MESSAGING_TOKEN": "t", "KEEP": "1" },
    });
    let headers = [("content-type", "application/json")];
    let reply = home.http("POST", "/v1/tasks", &headers, body.to_string().as_bytes()).whole();
    assert_eq!(reply.status, 201);
    let id = serde_json::from_slice::<Value>(&reply.body).unwrap()["id"].as_str().unwrap().to_owned();
    assert_eq!(home.ended(&id)["answer"], "x and ");
    let variables = home.truth("variables");
    assert!(!variables.contains("CLAUDE_CODE") && variables.contains("KEEP=1\n"), "{variables}");
    assert!(variables.contains("HOMING_OWNER=bob\n"), "{variables}");
}

#[test]
fn every_known_agent_and_any_command_can_be_asked() {
    let home = super::home();
    fake(
        &home,
        "codex",
        &format!(
            "cat > got; {}; {}; {}",
            print(&json!({ "type": "thread.started", "thread_id": SESSION })),
            print(
                &json!({ "type": "item.completed", "item": { "type": "agent_message", "text": "codex!" } })
            ),
            print(&json!({ "type": "turn.completed", "usage": { "input_tokens": 1, "output_tokens": 2 } })),
        ),
    );
    fake(
        &home,
        "opencode",
        &print(&json!({
            "type": "text", "sessionID": "ses_1", "part": { "messageID": "m", "text": "opencode!" },
        })),
    );
    fake(
        &home,
        "gemini",
        &format!(
            "{}; {}",
            print(&json!({ "type": "message", "role": "assistant", "content": "gem", "delta": true })),
            print(&json!({ "type": "message", "role": "assistant", "content": "ini!", "delta": true })),
        ),
    );
    fake(&home, "mine", "printf 'note\\n{\"id\":\"s-1\",\"out\":{\"text\":\"%s|%s\"}}\\n' \"$2\" \"$MODE\"");
    fake(&home, "plain", "printf '\\033[1m'; tr a-z A-Z");
    let _ = home.daemon_pid();
    let config = "[agents]\ndefault = \"mine\"\n[agents.mine]\nargv = [\"mine\", \"--ask\", \"{prompt}\"]\nanswer = \"/out/text\"\nsession = \"/id\"\n\
        env = { MODE = \"fast\" }\n[agents.plain]\nargv = [\"plain\"]\n";
    std::fs::write(home.path().join("config.toml"), config).unwrap();
    home.does(["daemon", "restart"]);
    for (agent, answer) in [
        ("codex", "codex!"),
        ("opencode", "opencode!"),
        ("gemini", "gemini!"),
        ("plain", "HELLO"),
        ("mine", "hello|fast"),
    ] {
        assert_eq!(ask(&home, &["--wait", "--agent", agent, "hello"]).ok().text(), answer);
    }
    assert_eq!(ask(&home, &["--wait", "say \"it\""]).ok().text(), "(no answer produced)", "that was no JSON");
    assert_eq!(home.task("@last")["agent"]["name"], "mine");
    assert_eq!(home.truth("got"), "hello");
    let shown = home.cli(["config"]).ok().text();
    assert!(shown.contains("default = \"mine\"") && shown.contains("[agents.plain]"), "{shown}");
    let long = "x".repeat(120 * 1024);
    let refused = Home::finish(home.command().args(["ask", "-"]).stdin({
        let file = home.scratch().join("long");
        std::fs::write(&file, &long).unwrap();
        std::fs::File::open(file).unwrap()
    }));
    assert!(refused.code == 2 && refused.stderr.contains("takes it as an argument"), "{}", refused.stderr);
}

#[test]
fn who_is_asked_where_nobody_is_named_is_never_guessed() {
    let home = super::home();
    let none = ask(&home, &["why?"]);
    assert!(none.code == 1 && none.stderr.contains("(HM0070)"), "{}", none.stderr);
    fake(&home, "gemini", "true");
    let _ = ask(&home, &["why?"]).ok();
    assert_eq!(home.task("@last")["agent"]["name"], "gemini", "the only one that is there");
    fake(&home, "claude", "true");
    let several = ask(&home, &["why?"]);
    assert!(several.stderr.contains("there are claude, gemini (HM0070)"), "{}", several.stderr);
    fake(&home, "codex", "true");
    let _ = ask(&home, &["--owner", "codex:7", "why?"]).ok();
    let listed = home.cli(["list", "--owner", "codex:7", "--json"]).ok().json();
    assert_eq!(listed["items"][0]["agent"]["name"], "codex", "the one whose session asks");
    let unknown = ask(&home, &["--agent", "emacs", "why?"]);
    assert!(unknown.stderr.contains("(HM0071)"), "{}", unknown.stderr);
    let count = home.cli(["list", "--all", "--json"]).ok().json()["items"].as_array().unwrap().len();
    assert_eq!(count, 2, "what was refused left nothing");
}
