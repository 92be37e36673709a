//! The hooks of agents: told once, in the session that asked, and never in the agent's way.

use std::io::Write;
use std::process::{Child, Command, Stdio};

use homing_testkit::{Home, Output, gate, wait_for};
use serde_json::{Value, json};

/// Starts a command with this on its stdin, and closes it.
fn start(mut command: Command, input: &str) -> Child {
    command.env_remove("CLAUDE_PID").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it runs");
    let mut stdin = child.stdin.take().expect("a pipe");
    // One that leaves without reading closes the pipe.
    let _ = stdin.write_all(input.as_bytes());
    child
}

fn end(child: Child) -> Output {
    let output = child.wait_with_output().expect("it ends");
    Output {
        code: output.status.code().expect("an exit code"),
        stdout: output.stdout,
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

fn started(home: &Home, words: &[&str], input: &str) -> Child {
    let mut command = home.command();
    command.arg("hook").args(words);
    start(command, input)
}

/// A hook with this input, to its end.
fn hook(home: &Home, words: &[&str], input: &Value) -> Output {
    end(started(home, words, &input.to_string()))
}

fn session(id: &str) -> Value {
    json!({ "session_id": id, "cwd": "/", "hook_event_name": "x", "something_new": [1] })
}

fn with(id: &str, name: &str, value: impl Into<Value>) -> Value {
    let mut input = session(id);
    input[name] = value.into();
    input
}

/// What Claude Code is told.
fn context(output: &Output) -> String {
    assert_eq!((output.code, output.stderr.as_str()), (0, ""));
    output.json()["hookSpecificOutput"]["additionalContext"].as_str().expect("a text").to_owned()
}

#[track_caller]
fn silent(output: &Output) {
    assert_eq!((output.code, output.text().as_str(), output.stderr.as_str()), (0, "", ""));
}

/// A task of this owner that has ended.
fn done(home: &Home, owner: &str, line: &str) -> String {
    let id = home.submit(&["--owner", owner], line);
    wait_for("its end", || {
        let task = home.get(&format!("/v1/tasks/{id}")).json();
        (!task["ended_at"].is_null()).then_some(())
    });
    id
}

/// How many entries an owner has, held or not; asked by nobody in particular.
fn open_entries(home: &Home, owner: &str) -> u64 {
    let owners = home.get("/v1/inbox").json();
    let found = owners["items"].as_array().expect("a list").iter().find(|one| one["owner"] == owner);
    found.map_or(0, |one| one["open"].as_u64().expect("a number"))
}

#[test]
fn p6_the_end_of_a_turn_tells_what_has_ended_once_and_the_next_call_acknowledges_it() {
    let home = super::home();
    let id = done(&home, "claude:s1", "echo hello; exit 3");
    let told = hook(&home, &["claude", "Stop"], &session("s1"));
    assert_eq!(told.json()["hookSpecificOutput"]["hookEventName"], "Stop");
    let text = context(&told);
    for part in [id.as_str(), "not user input", "exit code 3", "hello", "untrusted"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(open_entries(&home, "claude:s1"), 1, "held, not gone");
    silent(&hook(&home, &["claude", "Stop"], &with("s1", "stop_hook_active", true)));
    assert_eq!(open_entries(&home, "claude:s1"), 0);
}

#[test]
fn p6_two_sessions_in_one_folder_never_hear_each_others_ends() {
    let home = super::home();
    let ids: Vec<_> = (0..6).map(|n| (n % 2, done(&home, &format!("claude:s{}", n % 2), "true"))).collect();
    silent(&hook(&home, &["claude", "Stop"], &session("s2")));
    silent(&hook(&home, &["codex", "Stop"], &session("s0")));
    for own in 0..2 {
        let text = context(&hook(&home, &["claude", "Stop"], &session(&format!("s{own}"))));
        for (of, id) in &ids {
            assert_eq!(text.contains(id), *of == own, "{id} of s{of} in the turn of s{own}");
        }
    }
}

#[test]
fn each_agent_is_told_in_its_own_words() {
    let home = super::home();
    for (agent, event, decision) in [("codex", "Stop", "block"), ("gemini", "AfterAgent", "deny")] {
        let id = done(&home, &format!("{agent}:s"), "true");
        let answer = hook(&home, &[agent, event], &session("s")).ok().json();
        assert_eq!(answer["decision"], decision);
        assert!(answer["reason"].as_str().is_some_and(|text| text.contains(&id)), "{answer}");
    }
}

#[test]
fn a_session_that_goes_on_after_a_break_hears_what_ended_and_what_still_runs() {
    let home = super::home();
    let running = home.submit(&["--owner", "claude:s", "--name", "server"], &gate("never"));
    let ended = done(&home, "claude:s", "true");
    let text = context(&hook(&home, &["claude", "SessionStart"], &with("s", "source", "resume")));
    assert!(text.contains(&ended) && text.contains(&running) && text.contains("still runs"), "{text}");
    let text = context(&hook(&home, &["claude", "SessionStart"], &with("s", "source", "compact")));
    assert!(!text.contains(&ended) && text.contains(&running), "{text}");
    silent(&hook(&home, &["claude", "SessionStart"], &with("s", "source", "startup")));
    silent(&hook(&home, &["claude", "UserPromptSubmit"], &session("s")));
    let ended = done(&home, "claude:s", "true");
    let told = hook(&home, &["claude", "UserPromptSubmit"], &session("s"));
    assert_eq!(told.json()["hookSpecificOutput"]["hookEventName"], "UserPromptSubmit");
    assert!(context(&told).contains(&ended));
}

#[test]
fn p5_a_resumed_gemini_session_is_told_with_its_next_prompt() {
    let home = super::home();
    let ended = done(&home, "gemini:s", "true");
    // Gemini CLI drops what SessionStart prints when it is resumed in a terminal.
    silent(&hook(&home, &["gemini", "SessionStart"], &with("s", "source", "resume")));
    assert_eq!(open_entries(&home, "gemini:s"), 1);
    let told = hook(&home, &["gemini", "BeforeAgent"], &session("s"));
    assert_eq!(told.json()["hookSpecificOutput"]["hookEventName"], "BeforeAgent");
    assert!(context(&told).contains(&ended));
}

#[test]
fn p5_a_gemini_turn_without_an_answer_acknowledges_nothing() {
    let home = super::home();
    let ended = done(&home, "gemini:s", "true");
    let prompt = || hook(&home, &["gemini", "BeforeAgent"], &session("s"));
    let turn_ends = |response: &str| {
        silent(&hook(&home, &["gemini", "AfterAgent"], &with("s", "prompt_response", response)));
    };
    assert!(context(&prompt()).contains(&ended));
    turn_ends("[no response text]");
    // Gemini CLI has dropped the prompt with the notice in it.
    assert!(context(&prompt()).contains(&ended));
    turn_ends("");
    assert!(context(&prompt()).contains(&ended));
    turn_ends("The build is done.");
    assert_eq!(open_entries(&home, "gemini:s"), 0);
}

#[test]
fn p5_a_gemini_turn_that_goes_on_and_fails_confirms_nothing() {
    let home = super::home();
    let turn_ends = |response: &str, continued: bool| {
        let mut input = with("s", "prompt_response", response);
        input["stop_hook_active"] = continued.into();
        hook(&home, &["gemini", "AfterAgent"], &input)
    };
    for fails in [true, false] {
        let ended = done(&home, "gemini:s", "true");
        let told = turn_ends("Begun.", false).ok().json();
        assert!(told["reason"].as_str().is_some_and(|text| text.contains(&ended)), "{told}");
        // What comes is the answer of the whole turn.
        silent(&turn_ends(if fails { "Begun." } else { "Begun.\nDone." }, true));
        assert_eq!(open_entries(&home, "gemini:s"), u64::from(fails));
        if fails {
            assert!(context(&hook(&home, &["gemini", "BeforeAgent"], &session("s"))).contains(&ended));
            silent(&turn_ends("Seen.", false));
            assert_eq!(open_entries(&home, "gemini:s"), 0);
        }
    }
}

#[test]
fn p5_only_the_end_of_a_turn_proves_that_a_hook_was_read() {
    let home = super::home();
    let ended = done(&home, "claude:s", "true");
    assert!(
        context(&hook(&home, &["claude", "SessionStart"], &with("s", "source", "startup"))).contains(&ended)
    );
    // The session ends before its model was asked anything.
    silent(&hook(&home, &["claude", "SessionEnd"], &session("s")));
    assert_eq!(open_entries(&home, "claude:s"), 1, "nothing shows that a model read it");
    let text = context(&hook(&home, &["claude", "SessionStart"], &with("s", "source", "resume")));
    assert!(text.contains(&ended), "{text}");
    silent(&hook(&home, &["claude", "Stop"], &session("s")));
    assert_eq!(open_entries(&home, "claude:s"), 0, "the turn that had it in its context has ended");
}

#[test]
fn p5_no_call_and_no_other_hook_proves_that_a_hook_was_read() {
    let home = super::home();
    let ended = done(&home, "claude:s", "true");
    let told = hook(&home, &["claude", "SessionStart"], &with("s", "source", "startup"));
    assert!(context(&told).contains(&ended));
    let _ = home.command().arg("list").env("HOMING_OWNER", "claude:s").output().expect("it runs");
    silent(&hook(&home, &["claude", "UserPromptSubmit"], &session("s")));
    assert_eq!(open_entries(&home, "claude:s"), 1, "no turn has ended");
    silent(&hook(&home, &["claude", "Stop"], &session("s")));
    assert_eq!(open_entries(&home, "claude:s"), 0);
}

#[test]
fn the_plugin_in_opencode_is_given_what_waits_for_the_session_of_the_prompt() {
    let home = super::home();
    let (own, other) = (done(&home, "opencode:ses_1", "true"), done(&home, "opencode:ses_2", "true"));
    let told = context(&hook(&home, &["opencode", "UserPromptSubmit"], &json!({ "session_id": "ses_1" })));
    assert!(told.contains(&own) && !told.contains(&other), "{told}");
    silent(&hook(&home, &["opencode", "UserPromptSubmit"], &json!({ "session_id": "ses_1" })));
}

#[test]
fn p5_opencode_confirms_only_by_a_turn_that_its_model_answered() {
    let home = super::home();
    let id = done(&home, "opencode:ses_1", "true");
    let told = context(&hook(&home, &["opencode", "UserPromptSubmit"], &json!({ "session_id": "ses_1" })));
    assert!(told.contains(&id), "{told}");
    let failed = json!({ "session_id": "ses_1", "homing_unanswered": true });
    silent(&hook(&home, &["opencode", "Stop"], &failed));
    assert_eq!(open_entries(&home, "opencode:ses_1"), 1, "no answer of a model");
    silent(&hook(&home, &["opencode", "Stop"], &json!({ "session_id": "ses_1" })));
    assert_eq!(open_entries(&home, "opencode:ses_1"), 0);
}

#[test]
fn p6_what_is_among_the_messages_of_opencode_is_not_told_again() {
    let home = super::home();
    let old = done(&home, "opencode:ses_1", "true");
    let entries = home.get("/v1/inbox/opencode:ses_1").json();
    let notice = entries["items"][0]["id"].as_str().expect("an id").to_owned();
    let known = |event: &str| {
        let input = json!({ "session_id": "ses_1", "homing_known": [notice], "homing_unanswered": true });
        hook(&home, &["opencode", event], &input)
    };
    silent(&known("Stop"));
    assert_eq!(open_entries(&home, "opencode:ses_1"), 1, "it is told, and nothing confirms it yet");
    let new = done(&home, "opencode:ses_1", "true");
    let told = context(&known("UserPromptSubmit"));
    assert!(told.contains(&new) && !told.contains(&old), "{told}");
}

#[test]
fn what_makes_no_sense_is_met_with_silence_and_never_with_the_code_that_blocks() {
    let home = super::home();
    let id = done(&home, "claude:s", "true");
    for input in ["", "{", "[1]", "null", "\u{0}", "{\"session_id\":7}", "{\"session_id\":\"../x\"}"] {
        silent(&end(started(&home, &["claude", "Stop"], input)));
    }
    silent(&hook(&home, &["claude", "SubagentStop"], &session("s")));
    silent(&hook(&home, &["claude", "Stop"], &with("s", "agent_id", "a1")));
    silent(&hook(&home, &["claude", "UserPromptSubmit"], &with("s", "agent_id", "a1")));
    for words in
        [&["hermes", "Stop"][..], &["claude"], &["claude", "Stop", "--nonsense"], &["nobody", "Stop"]]
    {
        let refused = hook(&home, words, &session("s"));
        assert_eq!(refused.code, 1, "{words:?}");
        assert!(refused.stdout.is_empty());
    }
    let long = with("s", "prompt", "x".repeat(9 << 20));
    silent(&hook(&home, &["claude", "Stop"], &long));
    let large = with("s", "prompt", "x".repeat(2 << 20));
    assert!(context(&hook(&home, &["claude", "Stop"], &large)).contains(&id), "nothing of that took it");
}

#[test]
fn a_hook_that_makes_no_sense_is_kept_for_the_doctor_and_told_to_whoever_types_it() {
    let home = super::home();
    let doctor = || {
        let answer = home.cli(["doctor", "--json"]).json();
        let checks = answer["checks"].as_array().unwrap().clone();
        checks.into_iter().find(|check| check["name"] == "hook")
    };
    silent(&hook(&home, &["claude", "Stpo"], &session("s")));
    assert!(!home.path().exists(), "no home is made for it");
    let _ = home.daemon_pid();
    assert_eq!(doctor(), None);
    for words in [["claude", "Stpo"], ["calude", "Stop"]] {
        let output = hook(&home, &words, &session("s"));
        assert!(output.code < 2 && output.stdout.is_empty(), "{output:?}");
        let told = doctor().unwrap();
        let line = format!("`homing hook {}`", words.join(" "));
        assert!(told["state"] == "warn" && told["detail"].as_str().unwrap().contains(&line), "{told}");
    }
    // Typed on a terminal.
    let typed =
        home.submit(&["--pty"], &format!("'{}' hook claude Stpo; echo code $?", home.program().display()));
    let _ = home.ended(&typed);
    let said = String::from_utf8_lossy(&home.output(&typed)).into_owned();
    assert!(said.contains("did you mean `Stop`?") && said.contains("code 1"), "{said}");
}

#[test]
fn a_hook_starts_no_daemon_and_says_nothing_where_none_runs() {
    let home = super::home();
    for event in ["Stop", "SessionStart", "UserPromptSubmit", "SessionEnd", "rewake"] {
        silent(&hook(&home, &["claude", event], &session("s")));
    }
    assert!(home.find_daemon().is_none() && !home.path().exists());
    let id = done(&home, "claude:s", "true");
    home.stop_daemon();
    for event in ["Stop", "SessionStart", "UserPromptSubmit", "SessionEnd", "rewake"] {
        silent(&hook(&home, &["claude", event], &session("s")));
    }
    assert!(home.find_daemon().is_none());
    let _ = home.cli(["daemon", "start"]).ok();
    assert!(context(&hook(&home, &["claude", "Stop"], &session("s"))).contains(&id), "it was not lost");
}

#[test]
fn p6_what_a_hook_printed_for_nobody_was_told_to_nobody() {
    let home = super::home();
    done(&home, "claude:s", "true");
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let mut command = home.command();
    command.args(["hook", "claude", "Stop"]).stdin(Stdio::piped()).stdout(writer);
    let mut child = command.spawn().expect("it runs");
    child.stdin.take().expect("a pipe").write_all(session("s").to_string().as_bytes()).expect("it reads");
    assert!(child.wait().expect("it ends").success());
    // No later call of the session acknowledges it.
    silent(&hook(&home, &["claude", "UserPromptSubmit"], &session("s")));
    assert_eq!(open_entries(&home, "claude:s"), 1);
}

/// Starts a script in a process of its own, which is the agent: `hook EVENT` there is what Claude Code would run.
fn agent(home: &Home, script: &str, input: &Value) -> Child {
    called(home, script, input, &[])
}

/// The same with these words on its command line.
fn called(home: &Home, script: &str, input: &Value, words: &[&str]) -> Child {
    let program = home.program().display();
    let hook = format!("hook() {{ printf %s \"$input\" | CLAUDE_PID=$$ '{program}' hook claude \"$@\"; }}");
    let mut shell = Command::new("bash");
    shell.args(["-c", &format!("input=$(cat); {hook}; {script}"), "claude"]).args(words);
    shell.current_dir(home.scratch());
    shell.env_remove("HOMING_OWNER").env("HOMING_HOME", home.path()).env("HOMING_HOOK_PATIENCE", "30s");
    start(shell, &input.to_string())
}

#[test]
fn p5_what_an_agent_was_told_that_then_died_is_told_again_when_its_session_goes_on() {
    let home = super::home();
    let id = done(&home, "claude:s", "true");
    let first = end(agent(&home, "hook SessionStart", &with("s", "source", "startup")));
    assert_eq!(first.text().matches(&format!("{id} succeeded")).count(), 1, "{}", first.stderr);
    let again = end(agent(&home, "hook SessionStart; hook Stop", &with("s", "source", "resume")));
    assert_eq!(again.text().matches(&format!("{id} succeeded")).count(), 1, "{}", again.text());
    let last = end(agent(&home, "hook SessionStart; hook Stop", &with("s", "source", "resume")));
    assert_eq!(last.text(), "", "the end of that turn said that it was heard");
    assert_eq!(open_entries(&home, "claude:s"), 0);
}

#[test]
fn p6_what_a_tool_told_a_process_before_any_hook_of_it_is_not_told_again_by_the_first() {
    let home = super::home();
    let _ = home.submit(&[], "true");
    assert_eq!(end(agent(&home, "hook SessionStart", &with("s", "source", "startup"))).text(), "");
    // The session goes on in another process, whose first hook found no daemon; a tool of it waits.
    let id = done(&home, "claude:s", "true");
    let waited = format!("/v1/tasks/{id}/wait?confirm=call");
    let waited = home.http("GET", &waited, &[("Homing-Owner", "claude:s")], b"").whole();
    assert_eq!(waited.json()["status"], "succeeded");
    let stop = end(agent(&home, "hook Stop; hook Stop", &session("s")));
    assert_eq!(stop.text(), "", "{}", stop.stderr);
    assert_eq!(open_entries(&home, "claude:s"), 0, "it was told, and the hook says that it was heard");
}

#[test]
fn claude_is_not_kept_from_ending_more_often_than_it_listens() {
    let home = super::home();
    for n in 0..7 {
        let id = done(&home, "claude:s", "true");
        let text = context(&hook(&home, &["claude", "Stop"], &with("s", "stop_hook_active", n > 0)));
        assert!(text.contains(&id), "{n}");
    }
    let id = done(&home, "claude:s", "true");
    silent(&hook(&home, &["claude", "Stop"], &with("s", "stop_hook_active", true)));
    let text = context(&hook(&home, &["claude", "UserPromptSubmit"], &session("s")));
    assert!(text.contains(&id), "it waits for the next turn");
}

#[test]
fn an_end_of_a_turn_can_wait_for_marked_work_and_for_no_other() {
    let home = super::home();
    let _other = home.submit(&["--owner", "claude:s"], &gate("never"));
    silent(&hook(&home, &["claude", "Stop", "--hold", "10m"], &session("s")));
    let marked = home.submit(&["--owner", "claude:s", "--label", "hold=true"], &gate("open"));
    let held = started(&home, &["claude", "Stop", "--hold", "10m"], &session("s").to_string());
    std::fs::write(home.scratch().join("open"), "").expect("a gate opens");
    assert!(context(&end(held)).contains(&marked));
    silent(&hook(&home, &["claude", "Stop", "--hold", "1ms"], &session("s")));
}

#[test]
fn p6_fifty_hooks_at_once_tell_everything_once() {
    let home = super::home();
    let ids: Vec<_> = (0..20).map(|_| done(&home, "claude:s", "true")).collect();
    let input = session("s").to_string();
    let hooks: Vec<_> = (0..50).map(|_| started(&home, &["claude", "Stop"], &input)).collect();
    let mut said: String = hooks.into_iter().map(|hook| end(hook).ok().text()).collect();
    // What one of them took that had no patience to hear it is free again in seconds.
    wait_for("everything to be told", || {
        said += &hook(&home, &["claude", "Stop"], &session("s")).ok().text();
        ids.iter().all(|id| said.contains(id)).then_some(())
    });
    for id in &ids {
        assert_eq!(said.matches(&format!("{id} succeeded")).count(), 1, "{id}");
    }
}

#[test]
fn a_run_for_one_prompt_is_not_kept_from_ending_and_one_that_takes_more_is_woken() {
    let home = super::home();
    let _ = home.submit(&["--owner", "claude:s"], &gate("never"));
    let mut once = home.command();
    once.args(["hook", "claude", "rewake"]).env("CLAUDE_CODE_ENTRYPOINT", "sdk-cli");
    silent(&end(start(once, &session("s").to_string())));
    let more = ["--input-format", "stream-json"];
    let script = "export CLAUDE_CODE_ENTRYPOINT=sdk-cli; hook rewake; exit $?";
    let waiter = called(&home, script, &session("s"), &more);
    seen_waiting(&home, "s");
    let id = done(&home, "claude:s", "true");
    let woken = end(waiter);
    assert_eq!(woken.code, 2);
    assert!(woken.stderr.contains(&id), "{}", woken.stderr);
}

/// A hook whose words go where this redirection of the shell leads, to its end.
fn redirected(home: &Home, event: &str, redirection: &str, input: &Value) -> Output {
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("exec \"$0\" hook claude {event} {redirection}")]).arg(home.program());
    shell.env_remove("HOMING_OWNER").env("HOMING_HOME", home.path()).env("HOMING_HOOK_PATIENCE", "30s");
    end(start(shell, &input.to_string()))
}

#[test]
fn p5_a_hook_that_nobody_could_read_has_told_nobody() {
    let home = super::home();
    for (event, redirection) in [("Stop", ">&-"), ("UserPromptSubmit", "> /dev/null"), ("rewake", "2>&-")] {
        let id = done(&home, "claude:s", "true");
        silent(&redirected(&home, event, redirection, &session("s")));
        let text = context(&hook(&home, &["claude", "Stop"], &session("s")));
        assert!(text.contains(&id), "{event} {redirection}: {text}");
    }
    for (number, redirection) in ["Stop > /dev/full", "rewake 2> /dev/full"].iter().enumerate() {
        let (id, owner) = (format!("full{number}"), format!("claude:full{number}"));
        let _ = done(&home, &owner, "true");
        silent(&redirected(&home, redirection, "", &session(&id)));
        let _ = home.command().arg("list").env("HOMING_OWNER", &owner).output().expect("it runs");
        assert_eq!(open_entries(&home, &owner), 1, "{redirection}: the next call has heard nothing");
    }
}

/// A waiter, once it is seen by the daemon.
fn waiting(home: &Home, id: &str) -> Child {
    let child = started(home, &["claude", "rewake"], &session(id).to_string());
    seen_waiting(home, id);
    child
}

fn seen_waiting(home: &Home, id: &str) {
    wait_for("the waiter", || {
        let info = home.get(&format!("/v1/sessions/claude:{id}")).json();
        (info["waiter"] == true).then_some(())
    });
}

#[test]
fn p5_a_waiter_wakes_its_session_with_the_next_end_through_a_crash_of_the_daemon() {
    let home = super::home();
    let id = home.submit(&["--owner", "claude:s"], &format!("{}; echo hello", gate("open")));
    let waiter = waiting(&home, "s");
    let daemon = home.daemon_pid();
    home.kill(daemon);
    wait_for("the next daemon", || home.find_daemon().filter(|found| found.pid != daemon));
    std::fs::write(home.scratch().join("open"), "").expect("a gate opens");
    let woken = end(waiter);
    assert_eq!((woken.code, woken.text().as_str()), (2, ""), "{}", woken.stderr);
    assert!(woken.stderr.contains(&id) && woken.stderr.contains("hello"), "{}", woken.stderr);
    silent(&hook(&home, &["claude", "Stop"], &session("s")));
    assert_eq!(open_entries(&home, "claude:s"), 0);
}

#[test]
fn p5_a_waiter_stays_for_what_a_sub_agent_left_running() {
    let home = super::home();
    let inside = format!("{} --home {}", home.program().display(), home.path().display());
    let script = format!("env -i {inside} run --owner claude:own -- sh -c '{}' > late", gate("open"));
    let asked = home.submit(&["--agent-session", "--owner", "claude:s"], &script);
    let _ = home.ended(&asked);
    assert!(context(&hook(&home, &["claude", "Stop"], &session("s"))).contains(&asked));
    let waiter = waiting(&home, "s");
    let late = home.truth("late");
    std::fs::write(home.scratch().join("open"), "").expect("a gate opens");
    let woken = end(waiter);
    assert_eq!(woken.code, 2, "{}", woken.stderr);
    assert!(woken.stderr.contains(late.trim()), "{late}: {}", woken.stderr);
}

#[test]
fn p6_ends_that_are_close_together_wake_a_session_once() {
    let home = super::home();
    let options = ["--owner", "claude:s"];
    let ids: Vec<_> = (0..3).map(|_| home.submit(&options, &gate("open"))).collect();
    let _runs_on = home.submit(&options, &gate("never"));
    let waiter = waiting(&home, "s");
    std::fs::write(home.scratch().join("open"), "").expect("a gate opens");
    let woken = end(waiter);
    assert_eq!(woken.code, 2, "{}", woken.stderr);
    assert!(ids.iter().all(|id| woken.stderr.contains(id.as_str())), "{ids:?}: {}", woken.stderr);
}

#[test]
fn p6_the_waiter_in_opencode_takes_nothing_and_no_wake_comes_before_its_plugin() {
    let home = super::home();
    let target = ["--owner", "opencode:ses_1", "--notify", "wake:opencode:ses_1"];
    let id = home.submit(&target, &gate("end"));
    let mut command = home.command();
    command.args(["hook", "opencode", "rewake"]);
    let waiter = start(command, &json!({ "session_id": "ses_1" }).to_string());
    wait_for("a waiter", || {
        let session = home.get("/v1/sessions/opencode:ses_1").json();
        (session["waiter"] == true).then_some(())
    });
    std::fs::write(home.scratch().join("end"), "").expect("a gate opens");
    let woken = end(waiter);
    assert_eq!((woken.code, woken.text().as_str(), woken.stderr.as_str()), (2, "", ""));
    let told = context(&hook(&home, &["opencode", "Stop"], &json!({ "session_id": "ses_1" })));
    assert!(told.contains(&id), "{told}");
}

#[test]
fn p6_a_session_that_a_waiter_tells_is_not_woken_besides() {
    let home = super::home();
    let options = ["--owner", "claude:s", "--notify", "inbox", "--notify", "wake:claude:s"];
    let id = home.submit(&options, &gate("open"));
    let waiter = waiting(&home, "s");
    std::fs::write(home.scratch().join("open"), "").expect("a gate opens");
    let woken = end(waiter);
    assert_eq!(woken.code, 2, "{}", woken.stderr);
    assert!(woken.stderr.contains(&id));
    wait_for("the wake to be given up", || {
        let deliveries = home.get(&format!("/v1/deliveries?task={id}")).json();
        let wake =
            deliveries["items"].as_array()?.iter().find(|one| one["target"] == "wake:claude:s").cloned()?;
        (wake["state"] == "superseded" && wake["attempts"] == 0).then_some(())
    });
}

#[test]
fn p6_an_end_that_the_agents_own_client_polls_for_is_left_to_that() {
    let home = super::home();
    let _ = home.submit(&[], "true");
    let spec = json!({ "shell": "true", "owner": "claude:s", "reserve": "poll", "notify": { "on": "always", "targets": ["inbox"] } });
    let id = home.post("/v1/tasks", &spec).json()["id"].as_str().expect("an id").to_owned();
    wait_for("its entry", || (open_entries(&home, "claude:s") == 1).then_some(()));
    silent(&hook(&home, &["claude", "Stop"], &session("s")));
    silent(&hook(&home, &["claude", "UserPromptSubmit"], &session("s")));
    let poll = format!("/v1/tasks/{id}/wait?confirm=call");
    let polled = home.http("GET", &poll, &[("Homing-Owner", "claude:s")], b"").whole();
    assert_eq!(polled.json()["status"], "succeeded");
    silent(&hook(&home, &["claude", "Stop"], &session("s")));
    assert_eq!(open_entries(&home, "claude:s"), 0, "the poll told it");
}

#[test]
fn one_waiter_waits_for_each_session_and_none_where_nothing_runs() {
    let home = super::home();
    let _ = home.submit(&[], "true");
    silent(&hook(&home, &["claude", "rewake"], &session("none")));
    let id = home.submit(&["--owner", "claude:s"], &gate("open"));
    let first = waiting(&home, "s");
    silent(&hook(&home, &["claude", "rewake"], &session("s")));
    silent(&hook(&home, &["claude", "rewake"], &session("t")));
    std::fs::write(home.scratch().join("open"), "").expect("a gate opens");
    let woken = end(first);
    assert_eq!(woken.code, 2);
    assert!(woken.stderr.contains(&id));
    assert_eq!(std::fs::read_dir(home.path().join("waiters")).expect("a folder").count(), 0);
}

#[test]
fn p5_a_waiter_whose_agent_is_gone_leaves_and_tells_nobody() {
    let home = super::home();
    let id = home.submit(&["--owner", "claude:s"], &gate("open"));
    let script = format!("{{ hook rewake 2> said; echo $? > code; }} & {}; kill -9 $$", gate("die"));
    let agent = agent(&home, &script, &session("s"));
    seen_waiting(&home, "s");
    let open = |name: &str| std::fs::write(home.scratch().join(name), "").expect("a gate opens");
    open("die");
    let _ = agent.wait_with_output().expect("it ends, and its waiter");
    open("open");
    let read = |name: &str| std::fs::read_to_string(home.scratch().join(name)).expect("written");
    assert_eq!((read("code").trim(), read("said").as_str()), ("0", ""));
    let _ = home.until_status(&id, "succeeded");
    assert!(context(&hook(&home, &["claude", "SessionStart"], &with("s", "source", "resume"))).contains(&id));
}

#[test]
fn p6_a_waiter_tells_nothing_to_another_conversation_of_its_process() {
    for begun in [true, false] {
        let home = super::home();
        let id = home.submit(&["--owner", "claude:s"], &gate("open"));
        silent(&hook(&home, &["claude", "SessionStart"], &with("s", "source", "startup")));
        let waiter = waiting(&home, "s");
        silent(&hook(&home, &["claude", "SessionEnd"], &with("s", "reason", "clear")));
        if begun {
            silent(&hook(&home, &["claude", "SessionStart"], &with("t", "source", "clear")));
        }
        std::fs::write(home.scratch().join("open"), "").expect("a gate opens");
        silent(&end(waiter));
        let resumed = hook(&home, &["claude", "SessionStart"], &with("s", "source", "resume"));
        assert!(context(&resumed).contains(&format!("{id} succeeded")), "it waits for its own conversation");
    }
}

#[test]
fn a_process_is_in_the_session_that_a_hook_of_its_ancestor_named() {
    let home = super::home();
    let _ = home.submit(&[], "true");
    assert_eq!(home.get("/v1/session").json(), Value::Null);
    silent(&hook(&home, &["claude", "SessionStart"], &with("s1", "source", "startup")));
    let info = home.get("/v1/session").json();
    assert_eq!((&info["owner"], &info["pid"]), (&json!("claude:s1"), &json!(std::process::id())));
    silent(&hook(&home, &["claude", "SessionStart"], &with("s2", "source", "clear")));
    assert_eq!(home.get("/v1/session").json()["owner"], "claude:s2");
    silent(&hook(&home, &["claude", "SessionEnd"], &session("s2")));
    assert_eq!(home.get("/v1/session").json(), Value::Null);
    // The process of Codex serves several conversations at once: it is in none that could be told.
    silent(&hook(&home, &["codex", "SessionStart"], &session("a")));
    assert_eq!(home.get("/v1/session").json(), Value::Null);
    assert_eq!(home.get("/v1/sessions/codex:a").json()["pid"], std::process::id());
    // What is known survives the daemon, and says nothing of processes that the agent did not start.
    silent(&hook(&home, &["gemini", "SessionStart"], &session("g")));
    let _ = home.cli(["daemon", "restart"]).ok();
    assert_eq!(home.get("/v1/session").json()["owner"], "gemini:g");
    let ask = "import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); \
               s.sendall(b'GET /v1/session HTTP/1.0\\r\\n\\r\\n'); print(s.recv(4096).decode().split('\\r\\n')[-1])";
    let socket = home.path().join("homing.sock");
    let inside = home.submit(&[], &format!("python3 -c \"{ask}\" '{}'", socket.display()));
    let _ = home.ended(&inside);
    assert_eq!(String::from_utf8_lossy(&home.output(&inside)).trim(), "null");
}
