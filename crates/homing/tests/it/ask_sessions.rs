//! Sessions of agents that are asked: they go on where they were, and go with the last task that has them.
#![expect(
    clippy::unwrap_used,
    reason = "in a test, a panic is the report; helpers outside of #[test] are tests too"
)]

use std::path::PathBuf;

use homing_testkit::{Home, gate};
use serde_json::json;

use super::ask::{SESSION, ask, fake, print, result};

/// What Claude Code would keep of the session.
fn transcript(home: &Home) -> PathBuf {
    home.scratch().join(".claude/projects/-work").join(format!("{SESSION}.jsonl"))
}

fn keeps_a_transcript(home: &Home) -> String {
    let path = transcript(home);
    format!("mkdir -p {}; echo turn >> {}", path.parent().unwrap().display(), path.display())
}

#[test]
fn a_session_goes_on_in_the_folder_that_it_was_in() {
    let home = super::home();
    let script = format!("echo \"$PWD $*\" >> calls; cat > /dev/null; {}", result("Because."));
    fake(&home, "claude", &script.replace(">> calls", &format!(">> {}/calls", home.scratch().display())));
    let elsewhere = home.scratch().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    let first = ask(&home, &["--cwd", elsewhere.to_str().unwrap(), "why?"]).ok().text();
    let _ = home.ended(&first);
    assert_eq!(ask(&home, &["--continue", &first, "--wait", "and why?"]).ok().text(), "Because.");
    let second = home.task("@last");
    assert_eq!((&second["agent"]["continue"], &second["agent"]["name"]), (&json!(first), &json!("claude")));
    let _ =
        ask(&home, &["--continue", "@last", "--wait", "--cwd", home.scratch().to_str().unwrap(), "x"]).ok();
    let calls = home.truth("calls");
    let plain = "-p --output-format stream-json --verbose";
    let (there, here) = (elsewhere.display(), home.scratch().display());
    assert_eq!(
        calls,
        format!("{there} {plain}\n{there} {plain} --resume {SESSION}\n{here} {plain} --resume {SESSION}\n")
    );
}

#[test]
fn what_cannot_go_on_is_refused_by_name() {
    let home = super::home();
    fake(&home, "claude", &format!("{}; {}", gate("go"), result("Because.")));
    let first = ask(&home, &["why?"]).ok().text();
    let refused = |arguments: &[&str], code: &str, why: &str| {
        let out = ask(&home, &[arguments, &["and?"]].concat());
        assert_eq!(out.code, if code == "(HM0001)" { 4 } else { 1 }, "{arguments:?}");
        assert!(out.stderr.contains(code) && out.stderr.contains(why), "{arguments:?}: {}", out.stderr);
    };
    refused(&["--continue", &first], "(HM0005)", "still live");
    home.open("go");
    let _ = home.ended(&first);
    refused(&["--continue", &first, "--agent", "codex"], "(HM0072)", "`claude` answered it");
    refused(&["--continue", &first, "--owner", "bob"], "(HM0001)", &first);
    refused(&["--continue", "t-2222222222"], "(HM0001)", "t-2222222222");
    let command = home.submit(&["--owner", "user"], "true");
    let _ = home.ended(&command);
    refused(&["--continue", &command], "(HM0072)", "no task of an agent");
    fake(&home, "claude", "true");
    let silent = ask(&home, &["why?"]).ok().text();
    let _ = home.ended(&silent);
    refused(&["--continue", &silent], "(HM0072)", "named no session");

    std::fs::remove_file(home.scratch().join("go")).unwrap();
    fake(&home, "claude", &format!("{}; {}", gate("go"), result("Because.")));
    let second = ask(&home, &["--continue", &first, "and?"]).ok().text();
    refused(&["--continue", &first], "(HM0005)", &second);
    home.open("go");
    let _ = home.ended(&second);
    let _ = home.cli(["forget", &first]).ok();
    refused(&["--continue", &first], "(HM0072)", "forgotten");
}

#[test]
fn an_agent_of_ones_own_goes_on_in_the_session_that_it_named_last() {
    let home = super::home();
    let _ = home.daemon_pid();
    let config = "[agents.mine]\nargv = [\"mine\"]\nresume = [\"mine\", \"--in\", \"{session}\"]\nanswer = \"/said\"\nsession = \"/id\"\n\
        [agents.mute]\nargv = [\"mine\"]\nresume = [\"mine\", \"--in\", \"{session}\"]\nanswer = \"/said\"\n";
    std::fs::write(home.path().join("config.toml"), config).unwrap();
    home.does(["daemon", "restart"]);
    let names = |id: &str| {
        let line = print(&json!({ "said": "yes", "id": id }));
        fake(
            &home,
            "mine",
            &format!("echo \"$*\" >> {}/calls; cat > /dev/null; {line}", home.scratch().display()),
        );
    };
    let asked = |words: &[&str]| {
        let id = ask(&home, &[&["--agent", "mine"], words, &["why?"]].concat()).ok().text();
        (id.clone(), home.ended(&id)["agent"]["session_id"].clone())
    };
    names("first-session");
    let (first, session) = asked(&[]);
    assert_eq!(session, "first-session");
    // Some go on under another id, and say so.
    names("second-session");
    let (second, session) = asked(&["--continue", &first]);
    assert_eq!(session, "second-session");
    // One that says nothing of it is still in the one that it was given.
    names("");
    let (third, session) = asked(&["--continue", &second]);
    assert_eq!(session, "second-session");
    assert_eq!(asked(&["--continue", &third]).1, "second-session");
    assert_eq!(asked(&["--continue", &first]).1, "first-session", "what was asked for is what goes on");
    let calls: Vec<_> = home.truth("calls").lines().map(str::to_owned).collect();
    assert_eq!(
        calls,
        ["", "--in first-session", "--in second-session", "--in second-session", "--in first-session"]
    );
    let mute = ask(&home, &["--agent", "mute", "why?"]).ok().text();
    assert_eq!(home.ended(&mute)["agent"]["session_id"], json!(null), "nobody said where to look");
    let refused = ask(&home, &["--continue", &mute, "and?"]);
    assert!(
        refused.stderr.contains("HM0072") && refused.stderr.contains("`session` in its part of config.toml"),
        "{}",
        refused.stderr
    );
}

#[test]
fn what_an_agent_kept_of_a_session_goes_with_its_last_task() {
    let home = super::home();
    let kept = keeps_a_transcript(&home);
    fake(&home, "claude", &format!("{kept}; {}", result("Because.")));
    let other = transcript(&home).with_file_name("11111111-9232-4361-8416-ce03ab341f08.jsonl");
    let first = ask(&home, &["why?"]).ok().text();
    let _ = home.ended(&first);
    let second = ask(&home, &["--continue", &first, "and?"]).ok().text();
    let _ = home.ended(&second);
    std::fs::write(&other, "somebody else's").unwrap();
    let _ = home.cli(["forget", &first]).ok();
    assert!(transcript(&home).exists(), "another task is in that session");
    let _ = home.cli(["forget", &second]).ok();
    assert!(!transcript(&home).exists() && other.exists());

    // After a failure too, and by retention.
    let failed = print(&json!({ "type": "result", "is_error": true, "result": "no", "session_id": SESSION }));
    fake(&home, "claude", &format!("{kept}; {failed}; exit 1"));
    let third = ask(&home, &["why?"]).ok().text();
    assert_eq!(home.ended(&third)["status"], "failed");
    assert!(transcript(&home).exists());
    std::fs::write(home.path().join("config.toml"), "[retention]\ncount = 0\n").unwrap();
    home.does(["daemon", "restart"]);
    let _ = home.cli(["gc"]).ok();
    assert!(!transcript(&home).exists() && other.exists());
    let tombstone = home.task(&third);
    assert_eq!((&tombstone["forgotten"], &tombstone["agent"]["name"]), (&true.into(), &"claude".into()));
    assert_eq!((&tombstone["answer"], &tombstone["agent"]["prompt"]), (&().into(), &().into()));
}

#[test]
fn p11_forget_keeps_a_transcript_the_task_did_not_create() {
    let home = super::home();
    let kept = keeps_a_transcript(&home);
    fake(&home, "claude", &format!("{kept}; {}", result("Because.")));
    let path = transcript(&home);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, "a session of the user's own\n").unwrap();
    let id = ask(&home, &["why?"]).ok().text();
    assert_eq!(home.ended(&id)["agent"]["session_id"], SESSION);
    let _ = home.cli(["forget", &id]).ok();
    assert!(path.exists(), "it was there before the task");
}

#[test]
fn a_session_that_could_not_be_removed_yet_goes_with_the_folder_later() {
    let home = super::home();
    let path = transcript(&home);
    fake(&home, "claude", &format!("{}; {}", keeps_a_transcript(&home), result("Because.")));
    let id = ask(&home, &["why?"]).ok().text();
    let _ = home.ended(&id);
    // As a daemon leaves it that dies between the ledger and the folder.
    let folder = home.path().join("tasks").join(&id);
    let aside = home.scratch().join("aside");
    std::fs::rename(&folder, &aside).unwrap();
    let _ = home.cli(["forget", &id]).ok();
    assert!(path.exists());
    std::fs::rename(&aside, &folder).unwrap();
    home.does(["daemon", "restart"]);
    homing_testkit::wait_for("the folder to go", || (!folder.exists()).then_some(()));
    assert!(!path.exists());
}
