//! Codex by its queue, opencode by its server, a pane of tmux by its keys; and where nobody can be woken, that is said at once.

use std::fs;
use std::path::Path;
use std::process::Command;

use homing_testkit::{Home, copy_program, wait_for};
use serde_json::{Value, json};

use super::agents::{Opencode, Tmux, delivered, delivery, inbox, ok, path, program, read};

fn codex(home: &Home) -> Command {
    let mut command = home.command();
    command
        .env_remove("CLAUDE_CODE_SESSION_ID")
        .env("CODEX_THREAD_ID", "t-1")
        .env("CODEX_HOME", home.scratch().join("codex"));
    command.env("PATH", path(home));
    command
}

#[test]
fn p5_codex_is_woken_by_its_queue_in_the_thread_that_submitted() {
    let home = super::home();
    program(
        &home,
        "codex",
        "case $1 in --version) echo codex-cli 0.166.0;; queue) shift; printf '%s\\n' \"$@\" >> queued; echo \"$CODEX_HOME\" > env;\
         echo 'Queued message 1 for thread t-1.';; *) exit 9;; esac",
    );
    let id = ok(codex(&home).args(["run", "--notify", "wake", "-c", "echo out; exit 3"]));
    let row = delivered(&home, &id);
    assert_eq!(row["target"], "wake:codex:t-1");
    assert_eq!(row["history"][0]["result"], "codex queue: Queued message 1 for thread t-1.");
    let queued = read(&home, "queued");
    assert!(queued.starts_with("--thread\nt-1\n--message\n[homing notice - not user input] "), "{queued}");
    assert!(queued.contains(&id) && queued.contains("exit code 3") && queued.contains("| out\n"), "{queued}");
    assert_eq!(read(&home, "env").trim(), home.scratch().join("codex").to_str().unwrap());
    assert_eq!(inbox(&home, "codex:t-1").len(), 0);
}

#[test]
fn a_codex_without_a_queue_is_run_where_that_is_allowed_and_else_says_what_to_do() {
    let home = super::home();
    program(
        &home,
        "codex",
        "case $1 in --version) echo codex-cli 0.150.0;; exec) echo \"$@\" >> calls; cat >> prompts; echo '{\"type\":\"turn.completed\"}';;\
         *) exit 9;; esac",
    );
    let id = ok(codex(&home).args(["run", "--notify", "wake", "true"]));
    let row = delivery(&home, &id, |one| one["attempts"] == 1);
    assert!(row["history"][0]["result"].as_str().unwrap().contains("has no queue"), "{row}");
    assert_eq!(inbox(&home, "codex:t-1"), std::slice::from_ref(&id));
    fs::write(home.path().join("config.toml"), "[wake]\nheadless = true\n").unwrap();
    let _ = home.cli(["daemon", "restart"]).ok();
    // The second attempt comes by itself.
    assert_eq!(delivered(&home, &id)["attempts"], 2);
    assert_eq!(read(&home, "calls"), "exec resume --json --skip-git-repo-check t-1 -\n");
    assert!(read(&home, "prompts").contains(&id));
}

#[test]
fn where_nothing_of_codex_runs_it_is_run_if_that_is_allowed_and_else_its_queue_keeps_the_message() {
    let home = super::home();
    program(
        &home,
        "codex",
        "case $1 in --version) echo codex-cli 0.166.0;; exec) cat >> prompts; echo '{\"type\":\"turn.completed\"}';;\
         queue) echo queued >> calls; echo 'Queued.';; *) exit 9;; esac",
    );
    let submit = || ok(codex(&home).args(["run", "--notify", "wake", "true"]));
    let _ = delivered(&home, &submit());
    assert_eq!((read(&home, "calls").as_str(), read(&home, "prompts").as_str()), ("queued\n", ""));
    fs::write(home.path().join("config.toml"), "[wake]\nheadless = true\n").unwrap();
    let _ = home.cli(["daemon", "restart"]).ok();
    let id = submit();
    let row = delivered(&home, &id);
    assert!(row["history"][0]["result"].as_str().unwrap().contains("one more turn"), "{row}");
    assert!(read(&home, "prompts").contains(&id));
    // Its server runs again: that has the thread, and takes up what is queued.
    let socket = home.scratch().join("codex/app-server-control/app-server-control.sock");
    fs::create_dir_all(socket.parent().unwrap()).unwrap();
    let _server = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let _ = delivered(&home, &submit());
    assert_eq!(read(&home, "calls"), "queued\nqueued\n");
}

#[test]
fn p6_what_codex_has_in_its_thread_is_not_queued_again_though_its_queue_said_nothing_of_it() {
    let home = super::home();
    // It takes the message, and fails before it has said so.
    program(
        &home,
        "codex",
        "case $1 in --version) echo codex-cli 0.166.0;; queue) echo queued >> calls; day=codex/sessions/2026/01/02; mkdir -p $day\n\
         id=$(printf '%s' \"$5\" | sed -n 's/.*(notice \\(n-[a-z0-9]*\\)).*/\\1/p')\n\
         echo '{\"type\":\"response_item\",\"payload\":{\"type\":\"message\",\"role\":\"user\",\"content\":\"[homing notice - not user input] '$id'\"}}' \
         >> $day/rollout-2026-01-02T03-04-05-t-1.jsonl; exit 1;; *) exit 9;; esac",
    );
    let id = ok(codex(&home).args(["run", "--notify", "wake", "true"]));
    let row = delivered(&home, &id);
    assert_eq!(row["attempts"], 2, "{row}");
    assert!(row["history"][1]["result"].as_str().unwrap().contains("since an attempt before"), "{row}");
    assert_eq!(read(&home, "calls"), "queued\n");
}

#[test]
fn p6_what_opencode_has_among_its_messages_is_not_sent_again_though_it_answered_otherwise() {
    let home = super::home();
    let server = Opencode::new("ses_1", None);
    server.breaks();
    let id = home.submit(&["--notify", &format!("wake:opencode:{}#ses_1", server.url)], "true");
    let row = delivered(&home, &id);
    assert_eq!(row["attempts"], 2, "{row}");
    assert!(row["history"][0]["result"].as_str().unwrap().contains("500"), "{row}");
    assert!(row["history"][1]["result"].as_str().unwrap().contains("since an attempt before"), "{row}");
    assert_eq!(server.prompts().len(), 1);
}

#[test]
fn p5_opencode_is_woken_by_its_server_when_the_session_has_time() {
    let home = super::home();
    let server = Opencode::new("ses_1", None);
    server.is_busy(true);
    let target = format!("wake:opencode:{}#ses_1", server.url);
    let ids: Vec<_> = (0..2).map(|_| home.submit(&["--notify", &target], "echo out")).collect();
    for id in &ids {
        let _ = delivery(&home, id, |one| {
            one["reason"].as_str().is_some_and(|why| why.contains("middle of a turn"))
        });
    }
    assert_eq!(server.prompts(), Vec::new());
    server.is_busy(false);
    for id in &ids {
        let row = delivered(&home, id);
        assert_eq!(
            (&row["attempts"], &row["history"][0]["result"]),
            (&1.into(), &"prompt_async of opencode answered 204".into())
        );
    }
    let prompts = server.prompts();
    assert_eq!(prompts.len(), 1, "one turn");
    let text = prompts[0].1["parts"][0]["text"].as_str().unwrap();
    assert!(ids.iter().all(|id| text.contains(id.as_str())), "{text}");
}

#[test]
fn a_session_that_opencode_does_not_know_is_never_spoken_to_and_a_password_comes_from_the_home() {
    let home = super::home();
    let server = Opencode::new("ses_1", Some("b3BlbmNvZGU6aHVudGVyMg=="));
    let other = home.submit(&["--notify", &format!("wake:opencode:{}#ses_2", server.url)], "true");
    let row =
        delivery(&home, &other, |one| one["reason"].as_str().is_some_and(|why| why.contains("password")));
    assert_eq!(row["state"], "pending");
    assert!(server.refused() > 0);
    fs::write(home.path().join("opencode.password"), "hunter2\n").unwrap();
    let _ = delivery(&home, &other, |one| {
        one["reason"].as_str().is_some_and(|why| why.contains("does not know the session"))
    });
    let id = home.submit(&["--notify", &format!("wake:opencode:{}#ses_1", server.url)], "true");
    let _ = delivered(&home, &id);
    assert_eq!(server.prompts().len(), 1);
    assert_eq!(inbox(&home, "user"), [other]);
}

#[test]
fn a_pane_is_typed_into_while_the_same_program_runs_there_and_never_else() {
    let home = super::home();
    let Some(tmux) = Tmux::new(home.scratch()) else { return };
    let pane = tmux.pane(&format!("cd '{}'; exec cat > typed", home.scratch().display()));
    let submit = || {
        let mut command = home.command();
        command
            .env("TMUX", tmux.variable())
            .env("TMUX_PANE", "%99")
            .env("PATH", "/usr/local/bin:/usr/bin:/bin");
        ok(command.args(["run", "--name", "a job", "--notify", &format!("wake:tmux:{pane}"), "true"]))
    };
    wait_for("cat to run", || {
        (tmux.call(&["display-message", "-p", "-t", &pane, "#{pane_current_command}"]) == "cat").then_some(())
    });
    let id = submit();
    let row = delivered(&home, &id);
    assert!(row["history"][0]["result"].as_str().unwrap().contains("`cat` still runs"), "{row}");
    let typed = wait_for("the line", || Some(read(&home, "typed")).filter(|typed| typed.ends_with('\n')));
    assert_eq!(typed.lines().count(), 1);
    assert!(
        typed.starts_with(&format!("[homing notice - not user input] {id} 'a job' succeeded")),
        "{typed}"
    );
    // Another program takes its place, by the same name.
    for next in [submit(), submit()] {
        let _ = delivered(&home, &next);
        wait_for("its line", || read(&home, "typed").contains(&next).then_some(()));
    }
    fs::write(home.path().join("hold"), "").unwrap();
    let held = {
        let mut command = home.command();
        command.env("TMUX", tmux.variable()).env("PATH", "/usr/local/bin:/usr/bin:/bin");
        let line = "while [ -e \"$HOLD\" ]; do sleep 0.01; done";
        command.env("HOLD", home.path().join("hold"));
        ok(command.args(["run", "--notify", &format!("wake:tmux:{pane}"), "-c", line]))
    };
    let _ = tmux.call(&[
        "respawn-pane",
        "-k",
        "-t",
        &pane,
        &format!("cd '{}'; exec cat > other", home.scratch().display()),
    ]);
    fs::remove_file(home.path().join("hold")).unwrap();
    let row = delivery(&home, &held, |one| {
        one["reason"].as_str().is_some_and(|why| why.contains("no longer the `cat`"))
    });
    assert_eq!((&row["state"], read(&home, "other").as_str()), (&"pending".into(), ""));
    // Whenever it is tried, its entry is held for that moment.
    let waits = || wait_for("its entry", || (inbox(&home, "user") == [held.clone()]).then_some(()));
    waits();
    // What the new program asks for is typed into it, and nothing of what the one before it waits for.
    wait_for("cat to run", || {
        (tmux.call(&["display-message", "-p", "-t", &pane, "#{pane_current_command}"]) == "cat").then_some(())
    });
    let id = submit();
    let _ = delivered(&home, &id);
    let typed = wait_for("the line", || Some(read(&home, "other")).filter(|typed| typed.ends_with('\n')));
    assert!(typed.lines().count() == 1 && typed.contains(&id) && !typed.contains(&held), "{typed}");
    waits();
}

/// Submits something that is told in a pane.
fn told_in(home: &Home, tmux: &Tmux, pane: &str) -> String {
    let mut command = home.command();
    command.env("TMUX", tmux.variable()).env("PATH", "/usr/local/bin:/usr/bin:/bin");
    ok(command.args(["run", "--notify", &format!("wake:tmux:{pane}"), "true"]))
}

/// A program that does this as soon as it gets the first key of a line, and only then shows and keeps what is typed. It says when it is there.
fn at_first_key(home: &Home, tmux: &Tmux, does: &str) -> String {
    let script = format!(
        "cd '{}'; stty -icanon -icrnl -echo min 1; touch there; first=$(head -c 1)\n\
         tmux -S tmux {does}\n\
         printf %s \"$first\" | tee typed; exec tee -a typed",
        home.scratch().display()
    );
    fs::write(home.scratch().join("program"), script).expect("the ground of the test");
    // Into what is called a shell nothing is typed.
    let own = home.scratch().join("own");
    copy_program(Path::new("/bin/sh"), &own);
    let pane = tmux.pane(&format!("exec '{}' '{}'", own.display(), home.scratch().join("program").display()));
    wait_for("the program", || home.scratch().join("there").exists().then_some(()));
    pane
}

#[test]
fn p5_enter_is_not_typed_where_the_program_has_gone_since_the_line() {
    let home = super::home();
    let Some(tmux) = Tmux::new(home.scratch()) else { return };
    let pane = at_first_key(&home, &tmux, "respawn-pane -k -c \"$PWD\" 'cat > other'");
    let id = told_in(&home, &tmux, &pane);
    let since = |one: &Value| {
        one["reason"]
            .as_str()
            .is_some_and(|why| why.contains("no longer") && why.contains("since the line was typed"))
    };
    let row = delivery(&home, &id, since);
    assert_eq!((&row["state"], &row["attempts"]), (&"pending".into(), &0.into()), "{row}");
    assert_eq!(read(&home, "other"), "", "the one that came after it got nothing");
    wait_for("its entry", || (inbox(&home, "user") == [id.clone()]).then_some(()));
}

#[test]
fn p6_a_line_that_waits_for_its_enter_is_not_typed_again() {
    let home = super::home();
    let Some(tmux) = Tmux::new(home.scratch()) else { return };
    // Somebody begins to scroll: from then on keys are no longer the program's.
    let pane = at_first_key(&home, &tmux, "copy-mode");
    let id = told_in(&home, &tmux, &pane);
    let scrolls = |one: &Value| {
        one["reason"]
            .as_str()
            .is_some_and(|why| why.contains("scrolls") && why.contains("since the line was typed"))
    };
    let row = delivery(&home, &id, scrolls);
    assert_eq!((&row["state"], &row["attempts"]), (&"pending".into(), &0.into()), "{row}");
    let _ = tmux.call(&["send-keys", "-t", &pane, "-X", "cancel"]);
    let _ = delivered(&home, &id);
    let typed = wait_for("Enter", || Some(read(&home, "typed")).filter(|typed| typed.ends_with('\r')));
    assert_eq!(typed.matches(&format!("] {id} ")).count(), 1, "{typed:?}");
}

#[test]
fn nothing_is_typed_into_a_shell_and_nobody_is_woken_where_there_is_nobody() {
    let home = super::home();
    let refused = |words: &[&str], variables: &[(&str, &str)]| {
        let mut command = home.command();
        for name in ["CLAUDE_CODE_SESSION_ID", "CODEX_THREAD_ID", "GEMINI_SESSION_ID", "TMUX", "TMUX_PANE"] {
            command.env_remove(name);
        }
        let output = command
            .envs(variables.iter().copied())
            .args(["run", "--notify"])
            .args(words)
            .arg("true")
            .output()
            .unwrap();
        assert!(!output.status.success(), "{words:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let said = refused(&["wake"], &[]);
    assert!(
        said.contains("HM0060") && said.contains("in no session of an agent") && said.contains("exec:"),
        "{said}"
    );
    assert!(refused(&["wake"], &[("GEMINI_SESSION_ID", "g1")]).contains("homing install gemini"));
    assert!(refused(&["wake"], &[("OPENCODE_SESSION_ID", "s1")]).contains("--port"));
    assert!(refused(&["wake:nobody"], &[]).contains("names nobody"));
    assert!(refused(&["wake:tmux:%7"], &[]).contains("what runs in that pane"));
    assert!(refused(&["wake:opencode:http://10.0.0.1:1#s"], &[]).contains("https"));
    if let Some(tmux) = Tmux::new(home.scratch()) {
        let pane = tmux.pane("exec /bin/sh");
        // A pane that was just made is refused as well, but has nobody in the foreground yet.
        wait_for("a shell in the pane", || {
            let said = refused(&[&format!("wake:tmux:{pane}")], &[("TMUX", &tmux.variable())]);
            said.contains("a shell would run what is typed").then_some(())
        });
    }
    assert_eq!(
        home.cli(["list", "--all", "--json"]).ok().json()["items"],
        json!([]),
        "nothing was submitted"
    );
    let answer = home
        .post("/v1/tasks", &json!({ "argv": ["true"], "notify": { "on": "always", "targets": ["wake"] } }));
    assert_eq!((answer.status, &answer.json()["code"]), (422, &"HM0060".into()));
}

#[test]
fn whoever_names_a_session_as_its_owner_can_have_it_woken() {
    let home = super::home();
    let _ = home.daemon_pid();
    let spec =
        json!({ "argv": ["true"], "owner": "claude:s1", "notify": { "on": "always", "targets": ["wake"] } });
    let task = home.post("/v1/tasks", &spec).json();
    let row = delivery(&home, task["id"].as_str().unwrap(), |one| one["reason"] != Value::Null);
    assert_eq!((&row["target"], &row["state"]), (&"wake:claude:s1".into(), &"pending".into()));
}

#[test]
fn the_id_is_there_before_it_is_looked_whether_a_session_is_known() {
    let home = super::home();
    let both = home.scratch().join("both");
    for command in [&["run"][..], &["run", "--wait"]] {
        let file = fs::File::create(&both).unwrap();
        let mut submitting = home.command();
        submitting.env("HOME", home.scratch()).args(command).args(["--notify", "wake:claude:TYPO", "true"]);
        assert!(submitting.stdout(file.try_clone().unwrap()).stderr(file).status().unwrap().success());
        let said = fs::read_to_string(&both).unwrap();
        assert!(said.starts_with("t-") && said.contains("no session `claude:TYPO`"), "{said}");
    }
}

#[test]
fn a_session_that_nobody_has_heard_of_is_told_to_whoever_names_it() {
    let home = super::home();
    let user = home.scratch().join("user");
    let told = |target: &str| {
        let output =
            home.command().env("HOME", &user).args(["run", "--notify", target, "true"]).output().unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (accepted, said) = told("wake:claude:TYPO");
    assert!(accepted && said.contains("no session `claude:TYPO` is known here"), "{said}");
    assert!(said.contains("UUIDs") && said.contains("next: "), "{said}");
    let (accepted, said) = told("wake:codex:0b6e2f0a-1c2d-4e5f-8a9b-0c1d2e3f4a5b");
    assert!(accepted && said.contains("no session `codex:0b6e") && !said.contains("UUIDs"), "{said}");
    for malformed in ["wake:claude:", "wake:claude:a b", "wake:claude:--resume", "wake:codex:../x"] {
        let (accepted, said) = told(malformed);
        assert!(!accepted && said.contains("HM00"), "{malformed}: {said}");
    }
    fs::create_dir_all(user.join(".claude/projects/-here")).unwrap();
    fs::write(user.join(".claude/projects/-here/known.jsonl"), "").unwrap();
    assert_eq!(told("wake:claude:known"), (true, String::new()), "its agent has a file of it");
    let _ = home.cli(["run", "--owner", "claude:asked", "true"]).ok();
    assert_eq!(told("wake:claude:asked"), (true, String::new()), "it has asked for something before");
}
