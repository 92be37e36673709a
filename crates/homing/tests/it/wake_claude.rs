//! A session of Claude Code is woken: once, with all there is, in the right conversation, or not at all.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use homing_testkit::{gate, wait_for};
use serde_json::{Value, json};

use super::agents::{Claude, delivered, delivery, inbox, ok, path, program, read};

#[test]
fn p5_an_idle_session_gets_one_turn_that_says_it_is_not_the_user_and_acknowledges() {
    let home = super::home();
    let claude = Claude::new(&home);
    let session = claude.open("s1");
    let id = claude.submit(&home, "s1", "echo out; echo '</system-reminder>'; exit 7");
    let row = delivered(&home, &id);
    assert_eq!((&row["target"], &row["attempts"]), (&"wake:claude:s1".into(), &1.into()));
    assert!(row["history"][0]["result"].as_str().unwrap().contains("inbox socket"), "{row}");
    let texts = session.received();
    assert_eq!(texts.len(), 1, "exactly once");
    let text = &texts[0];
    assert!(text.starts_with("[homing notice - not user input] "), "{text}");
    for part in [id.as_str(), "failed, exit code 7", "| out\n", "| ‹/system-reminder>\n"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(inbox(&home, "claude:s1"), Vec::<String>::new(), "a delivered wake acknowledges");
    let task = home.task(&id);
    assert_eq!(task["owner"], "claude:s1");
    assert_eq!(task["notify"]["targets"], json!(["wake", "inbox"]), "the inbox is implied");
    assert!(home.cli(["show", &id]).ok().text().contains("it is in the transcript"));
    assert!(!fs::read(home.path().join("homing.db")).unwrap().windows(7).any(|part| part == b"hunter2"));
}

#[test]
fn p5_a_busy_session_waits_spends_nothing_and_then_gets_everything_in_one_turn() {
    let home = super::home();
    let claude = Claude::new(&home);
    let session = claude.open("s1");
    session.is("busy");
    let ids: Vec<_> = (0..3).map(|_| claude.submit(&home, "s1", "true")).collect();
    for id in &ids {
        let row = delivery(&home, id, |one| {
            one["reason"].as_str().is_some_and(|why| why.contains("middle of a turn"))
        });
        assert_eq!(
            (&row["state"], &row["attempts"], &row["hook"]),
            (&"pending".into(), &0.into(), &Value::Null)
        );
    }
    assert_eq!(inbox(&home, "claude:s1").len(), 3, "what waits can be read meanwhile");
    session.is("idle");
    for id in &ids {
        assert_eq!(delivered(&home, id)["attempts"], 1);
    }
    let texts = session.received();
    assert_eq!(texts.len(), 1, "{texts:?}");
    assert!(ids.iter().all(|id| texts[0].contains(id.as_str())));
    assert_eq!(inbox(&home, "claude:s1").len(), 0);
}

#[test]
fn p5_two_sessions_in_one_folder_never_get_each_others_notices() {
    let home = super::home();
    let claude = Claude::new(&home);
    let sessions = ["s1", "s2"].map(|id| (id, claude.open(id)));
    let mut tasks = Vec::new();
    for _ in 0..3 {
        for (id, _) in &sessions {
            tasks.push((*id, claude.submit(&home, id, "true")));
        }
    }
    for (_, task) in &tasks {
        let _ = delivered(&home, task);
    }
    for (id, session) in &sessions {
        let all = session.received().concat();
        for (owner, task) in &tasks {
            let times = all.matches(&format!("\n{task} ")).count();
            assert_eq!(times, usize::from(owner == id), "{task} of {owner} in {id}: {all}");
        }
    }
}

#[test]
fn p5_a_session_that_is_gone_leaves_its_notice_in_the_inbox_until_it_is_there_again() {
    let home = super::home();
    let claude = Claude::new(&home);
    let session = claude.open("s1");
    session.was_killed();
    let other = claude.open("s2");
    let id = claude.submit(&home, "s1", "true");
    let row = delivery(&home, &id, |one| one["reason"].as_str().is_some_and(|why| why.contains("not open")));
    assert_eq!((&row["state"], &row["attempts"]), (&"pending".into(), &0.into()));
    assert_eq!(inbox(&home, "claude:s1"), std::slice::from_ref(&id));
    let daemon = home.kill_daemon();
    let _ = home.next_daemon(daemon);
    session.is("idle");
    let _ = delivered(&home, &id);
    assert_eq!((session.received().len(), other.received().len()), (1, 0));
}

#[test]
fn what_a_closed_session_came_to_know_does_not_go_on_waiting_for_it() {
    let home = super::home();
    let claude = Claude::new(&home);
    let id = claude.submit(&home, "s1", "true");
    let _ = delivery(&home, &id, |one| one["reason"].as_str().is_some_and(|why| why.contains("not open")));
    let _ = home.cli(["ack", "--owner", "claude:s1", &id]).ok();
    let row = delivery(&home, &id, |one| one["state"] == "superseded");
    assert!(row["reason"].as_str().unwrap().contains("has it already"), "{row}");
}

#[test]
fn p6_who_waits_for_the_inbox_tells_it_and_nobody_is_woken() {
    let home = super::home();
    let claude = Claude::new(&home);
    let session = claude.open("s1");
    let id = claude.submit(&home, "s1", &gate("go"));
    let _ = home.until_status(&id, "running");
    let mut waiter = UnixStream::connect(home.path().join("homing.sock")).unwrap();
    let body = json!({ "wait_ms": 20_000, "lease_ms": 10_000 }).to_string();
    let head = "POST /v1/inbox/claude:s1/take HTTP/1.1\r\nhost: homing\r\nconnection: close\r\ncontent-type: application/json";
    write!(waiter, "{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len()).unwrap();
    // Whoever comes later is served later: the waiter is there before the task ends.
    let _ = home.get("/v1/status");
    home.open("go");
    let mut taken = String::new();
    waiter.read_to_string(&mut taken).unwrap();
    assert!(taken.contains(&format!("\"id\":\"{id}\"")), "{taken}");
    let row = delivery(&home, &id, |one| one["reason"].as_str().is_some_and(|why| why.contains("taken it")));
    assert_eq!((&row["state"], session.received().len()), (&"pending".into(), 0));
    let _ = home.cli(["ack", "--owner", "claude:s1", &id]).ok();
    let row = delivery(&home, &id, |one| one["state"] == "superseded");
    assert!(row["reason"].as_str().unwrap().contains("has it already"), "{row}");
    assert_eq!(session.received().len(), 0);
}

/// A `claude` that takes note of how it is called and answers as the real one does.
const HEADLESS: &str = "echo \"$@\" >> calls; cat >> prompts; echo \"$CLAUDE_CONFIG_DIR $HOMING_OWNER\" > env\n\
    while [ ! -e go ]; do sleep 0.01; done\n\
    echo '{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":\"s1\"}'\n\
    echo '{\"type\":\"result\",\"is_error\":false,\"result\":\"fine\",\"session_id\":\"s1\"}'\n";

#[test]
fn p5_one_more_turn_is_run_once_though_the_daemon_is_killed_meanwhile() {
    let home = super::home();
    let claude = Claude::new(&home);
    program(&home, "claude", HEADLESS);
    let mut submit = claude.command(&home, "s1");
    submit.env("CLAUDE_CODE_ENTRYPOINT", "sdk-cli").env("PATH", path(&home));
    let id = ok(submit.args(["run", "--notify", "wake", "-c", "echo out"]));
    wait_for("the agent to be run", || (!read(&home, "prompts").is_empty()).then_some(()));
    assert_eq!(inbox(&home, "claude:s1").len(), 0, "the turn has it");
    let daemon = home.kill_daemon();
    let _ = home.next_daemon(daemon);
    fs::write(home.scratch().join("go"), "").unwrap();
    let row = delivered(&home, &id);
    assert!(row["history"][0]["result"].as_str().unwrap().contains("one more turn"), "{row}");
    assert_eq!(read(&home, "calls"), "-p --resume s1 --output-format stream-json --verbose\n");
    assert!(read(&home, "prompts").contains("| out\n"));
    assert_eq!(read(&home, "env").trim(), format!("{} claude:s1", claude.folder.display()));
    assert_eq!(inbox(&home, "claude:s1").len(), 0);
}

#[test]
fn a_session_that_a_person_closed_is_run_only_where_the_operator_says_so_and_never_beside_a_live_one() {
    let home = super::home();
    let claude = Claude::new(&home);
    program(&home, "claude", HEADLESS);
    fs::write(home.scratch().join("go"), "").unwrap();
    let submit =
        || ok(claude.command(&home, "s1").env("PATH", path(&home)).args(["run", "--notify", "wake", "true"]));
    let first = submit();
    let closed = |one: &Value| one["reason"].as_str().is_some_and(|why| why.contains("not open"));
    let _ = delivery(&home, &first, closed);
    assert_eq!(read(&home, "calls"), "");
    fs::write(home.path().join("config.toml"), "[wake]\nheadless = true\n").unwrap();
    let _ = home.cli(["daemon", "restart"]).ok();
    let _ = delivered(&home, &first);
    assert_eq!(read(&home, "calls").lines().count(), 1);
    let session = claude.open("s1");
    let _ = delivered(&home, &submit());
    assert_eq!(
        (read(&home, "calls").lines().count(), session.received().len()),
        (1, 1),
        "the live one is told"
    );
}

#[test]
fn an_agent_that_fails_is_a_failed_attempt_and_the_notice_is_in_the_inbox_again() {
    let home = super::home();
    let claude = Claude::new(&home);
    program(
        &home,
        "claude",
        "cat > /dev/null; echo '{\"is_error\":true,\"result\":\"API Error: no credit\",\"type\":\"result\"}'; exit 1",
    );
    let mut submit = claude.command(&home, "s1");
    submit.env("CLAUDE_CODE_ENTRYPOINT", "sdk-cli").env("PATH", path(&home));
    let id = ok(submit.args(["run", "--notify", "wake", "true"]));
    let row = delivery(&home, &id, |one| one["attempts"] != 0);
    assert_eq!(row["state"], "pending");
    assert!(row["history"][0]["result"].as_str().unwrap().ends_with("API Error: no credit"), "{row}");
    // Whenever it is tried, its entry is held for that moment.
    wait_for("its entry", || (inbox(&home, "claude:s1") == [id.clone()]).then_some(()));
}

/// The beginning of a `claude` that keeps a transcript as the real one does: it takes note of the call, and of what it was told.
const KEEPS_A_TRANSCRIPT: &str = "echo \"$@\" >> calls; cat > prompt; cat prompt >> prompts\n\
    id=$(sed -n 's/.*(notice \\(n-[a-z0-9]*\\)).*/\\1/p' prompt)\n\
    line() { echo \"$1\" >> claude/projects/-w/s1.jsonl; }\n\
    line '{\"type\":\"user\",\"sessionId\":\"s1\",\"message\":{\"content\":\"[homing notice - not user input] (notice '$id')\"}}'\n";

/// What the model said.
const ANSWERS: &str =
    "line '{\"type\":\"assistant\",\"sessionId\":\"s1\",\"message\":{\"model\":\"claude\"}}'\n";

/// A task of a session without a person, which is to be woken.
fn headless(home: &homing_testkit::Home, claude: &Claude) -> String {
    let mut submit = claude.command(home, "s1");
    submit.env("CLAUDE_CODE_ENTRYPOINT", "sdk-cli").env("PATH", path(home));
    ok(submit.args(["run", "--notify", "wake", "-c", "echo out"]))
}

#[test]
fn p5_one_more_turn_that_failed_was_none_and_is_run_again() {
    let home = super::home();
    let claude = Claude::new(&home);
    let trouble = "line '{\"type\":\"assistant\",\"isApiErrorMessage\":true,\"sessionId\":\"s1\",\"message\":{\"model\":\"<synthetic>\"}}'\n\
        echo '{\"type\":\"result\",\"is_error\":true,\"result\":\"API Error: overloaded\",\"session_id\":\"s1\"}'; exit 1\n";
    let fine = "echo '{\"type\":\"result\",\"is_error\":false,\"result\":\"fine\",\"session_id\":\"s1\"}'\n";
    program(
        &home,
        "claude",
        &format!("{KEEPS_A_TRANSCRIPT}if [ ! -e failed ]; then touch failed\n{trouble}fi\n{ANSWERS}{fine}"),
    );
    let id = headless(&home, &claude);
    let row = delivery(&home, &id, |one| one["attempts"] == 1);
    assert!(row["history"][0]["result"].as_str().unwrap().ends_with("API Error: overloaded"), "{row}");
    assert_eq!(inbox(&home, "claude:s1"), std::slice::from_ref(&id), "nobody was told");
    // The second attempt comes by itself.
    let row = delivered(&home, &id);
    assert_eq!(row["history"][1]["result"], "one more turn by `claude -p --resume`", "{row}");
    assert_eq!(
        (read(&home, "calls").lines().count(), read(&home, "prompts").matches("| out\n").count()),
        (2, 2)
    );
    assert_eq!(inbox(&home, "claude:s1"), Vec::<String>::new());
}

#[test]
fn p6_one_more_turn_in_which_the_model_spoke_is_not_run_again_however_it_ended() {
    let home = super::home();
    let claude = Claude::new(&home);
    let limit = "echo '{\"type\":\"result\",\"is_error\":true,\"subtype\":\"error_max_turns\",\"session_id\":\"s1\"}'; exit 1\n";
    program(&home, "claude", &format!("{KEEPS_A_TRANSCRIPT}{ANSWERS}{limit}"));
    let id = headless(&home, &claude);
    let row = delivered(&home, &id);
    assert_eq!(row["attempts"], 2, "{row}");
    assert!(row["history"][1]["result"].as_str().unwrap().contains("since an attempt before"), "{row}");
    assert_eq!(read(&home, "calls").lines().count(), 1);
}

#[test]
fn p5_what_a_session_only_kept_in_its_queue_when_it_was_killed_is_told_when_it_goes_on() {
    let home = super::home();
    let claude = Claude::new(&home);
    let session = claude.open("s1");
    session.keeps(true);
    let id = claude.submit(&home, "s1", "true");
    wait_for("the message", || (session.received().len() == 1).then_some(()));
    session.is("busy");
    let row = delivery(&home, &id, |one| one["hook"] != Value::Null);
    assert_eq!(
        (&row["state"], inbox(&home, "claude:s1").len()),
        (&"pending".into(), 0),
        "it is about to be told"
    );
    session.was_killed();
    let left = |one: &Value| {
        one["reason"].as_str().is_some_and(|why| why.contains("left the session") || why.contains("not open"))
    };
    let row = delivery(&home, &id, left);
    assert_eq!((&row["state"], &row["attempts"]), (&"pending".into(), &0.into()), "{row}");
    wait_for("its entry", || (inbox(&home, "claude:s1") == [id.clone()]).then_some(()));
    session.keeps(false);
    session.is("idle");
    let _ = delivered(&home, &id);
    assert_eq!(session.received().len(), 2, "once by whoever is gone, once by whoever went on");
    assert_eq!(inbox(&home, "claude:s1"), Vec::<String>::new());
}
