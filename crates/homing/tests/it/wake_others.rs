//! Codex by its queue, opencode by its server, a pane of tmux by its keys; and where nobody can be woken, that is said at once.

use std::fs;
use std::os::unix::fs::DirBuilderExt;
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
    // Somebody goes on with the thread.
    let file = home.scratch().join("codex/sessions/2026/01/02/rollout-2026-01-02T03-04-05-t-1.jsonl");
    let _open = wait_for("the file of the thread", || fs::File::open(&file).ok());
    let row = delivered(&home, &id);
    assert_eq!(row["attempts"], 2, "{row}");
    assert!(row["history"][1]["result"].as_str().unwrap().contains("since an attempt before"), "{row}");
    assert_eq!(read(&home, "calls"), "queued\n");
}

#[test]
fn p6_what_ends_while_codex_is_busy_or_closed_is_queued_as_one_message() {
    let home = super::home();
    program(
        &home,
        "codex",
        "case $1 in --version) echo codex-cli 0.166.0;; queue) echo queued >> calls; echo \"$5\" >> messages;; *) exit 9;; esac",
    );
    let day = home.scratch().join("codex/sessions/2026/01/02");
    fs::create_dir_all(&day).unwrap();
    let file = day.join("rollout-2026-01-02T03-04-05-t-1.jsonl");
    let event = |kind: &str| format!("{}\n", json!({ "type": "event_msg", "payload": { "type": kind } }));
    fs::write(&file, event("task_started")).unwrap();
    let submit = || ok(codex(&home).args(["run", "--notify", "wake", "true"]));
    let waits = |id: &str, why: &str| {
        let _ = delivery(&home, id, |one| {
            one["attempts"] == 0 && one["reason"].as_str().is_some_and(|reason| reason.contains(why))
        });
    };
    let closed = submit();
    waits(&closed, "no process of Codex has the thread open");
    let open = fs::File::open(&file).unwrap();
    waits(&closed, "middle of a turn");
    let busy = submit();
    waits(&busy, "middle of a turn");
    fs::write(&file, event("task_started") + &event("task_complete")).unwrap();
    for id in [&closed, &busy] {
        assert_eq!(delivered(&home, id)["attempts"], 1);
    }
    assert_eq!(read(&home, "calls"), "queued\n", "one message, one turn");
    assert!([&closed, &busy].into_iter().all(|id| read(&home, "messages").contains(id.as_str())));
    drop(open);
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
fn p11_opencode_is_woken_with_the_agent_of_its_last_prompt() {
    let home = super::home();
    let server = Opencode::new("ses_1", None);
    let id = home.submit(&["--notify", &format!("wake:opencode:{}#ses_1", server.url)], "true");
    let _ = delivered(&home, &id);
    let (_, prompt) = server.prompts().remove(0);
    let model = (&prompt["model"]["modelID"], &prompt["variant"]);
    assert_eq!((&prompt["agent"], model), (&"plan".into(), (&"m".into(), &"high".into())), "{prompt}");
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

/// A program that draws its screen as an agent does, and behaves so in a pane: a simulation. It takes a bracketed paste into its draft, sends
/// that on Enter, and keeps every byte that it gets in the file `typed`. While its dialog is open, a digit or a letter answers it:
/// `approved` is then written, except for `n`. Ctrl-U empties the draft, Ctrl-L only draws again. While the file `busy` is there, a turn is
/// under way. What stands in the file `first` runs at the first key.
const SIMULATION: &str = r##"cd "$(dirname "$0")"
agent=$1; dialog=$2; draft=$3; sent=
stty raw -echo; printf '\033[?2004h'
rule='────────────────────────────────────────'
draw() {
    printf '\033[2J\033[H%s\r\n\r\n' "$sent"
    if [ -e busy ]; then printf ' * Thinking (esc to interrupt)\r\n'; fi
    case $agent$dialog in
    claudeyes) printf '%s\r\n Bash command\r\n\r\n Do you want to proceed?\r\n ❯ 1. Yes\r\n   2. Yes, and always allow\r\n   3. No\r\n\r\n Esc to cancel\r\n' "$rule";;
    codexyes) printf '  Would you like to run the following command?\r\n\r\n› 1. Yes, proceed (y)\r\n  2. No (esc)\r\n\r\n  Press enter to confirm or esc to cancel\r\n';;
    geminiyes) printf '│ Allow execution of [Shell]?\r\n│ ● 1. Allow once\r\n│   2. Allow for this session\r\n│   3. No (esc)\r\n';;
    claude*) printf '%s\r\n❯ %s\0337\r\n%s\r\n  ? for shortcuts\0338' "$rule" "$draft" "$rule";;
    codex*) hint=; [ "$draft" ] || hint='Ask Codex to do anything'; printf '› %s\0337%s\r\n\r\n  ? for shortcuts\0338' "$draft" "$hint";;
    gemini*) hint=; [ "$draft" ] || hint='  Type your message or @path/to/file'; printf ' > %s\0337%s\r\n\r\n workspace\0338' "$draft" "$hint";;
    esac
}
draw; touch there
cr=$(printf '\r'); clear=$(printf '\025'); again=$(printf '\014'); escape=$(printf '\033')
while chunk=$(dd bs=4096 count=1 2>/dev/null) && [ "$chunk" ]; do
    printf %s "$chunk" >> typed
    if [ -e first ]; then mv first ran; sh ran; fi
    if [ "$dialog" = yes ]; then
        case $chunk in n) ;; *) touch approved;; esac
        dialog=no
    else
        case $chunk in
        "$clear") draft=;;
        "$again") ;;
        "$cr") sent="$sent$draft"; draft=;;
        *) draft="$draft$(printf %s "$chunk" | sed "s/$escape\[20[01]~//g")";;
        esac
    fi
    draw
done
"##;

/// A simulated agent in a pane: with its dialog open or not, and with a draft in its prompt or none.
fn simulate(home: &Home, tmux: &Tmux, agent: &str, dialog: bool, draft: &str) -> String {
    let script = home.scratch().join("simulation");
    fs::write(&script, SIMULATION).expect("the ground of the test");
    // An agent is known by the name of its program.
    let program = home.scratch().join(agent);
    copy_program(Path::new("/bin/sh"), &program);
    let dialog = if dialog { "yes" } else { "no" };
    let line = format!("exec '{}' '{}' {agent} {dialog} '{draft}'", program.display(), script.display());
    let pane = tmux.pane(&line);
    wait_for("the simulation", || home.scratch().join("there").exists().then_some(()));
    pane
}

/// A home in which notices may be typed into panes.
fn typing_home() -> Home {
    let home = super::home();
    fs::DirBuilder::new().mode(0o700).recursive(true).create(home.path()).expect("the ground of the test");
    fs::write(home.path().join("config.toml"), "[wake]\ntmux = true\n").expect("the ground of the test");
    home
}

/// Submits something that is told in a pane.
fn told_in(home: &Home, tmux: &Tmux, pane: &str) -> String {
    let mut command = home.command();
    command.env("TMUX", tmux.variable()).env("PATH", "/usr/local/bin:/usr/bin:/bin");
    ok(command.args(["run", "--name", "job 1 yes", "--notify", &format!("wake:tmux:{pane}"), "true"]))
}

/// Waits until the delivery says why it waits.
fn put_off(home: &Home, id: &str, why: &str) {
    let says = |one: &Value| one["reason"].as_str().is_some_and(|reason| reason.contains(why));
    let row = delivery(home, id, says);
    assert_eq!((&row["state"], &row["attempts"]), (&"pending".into(), &0.into()), "{row}");
    // Whenever it is tried, its entry is held for that moment.
    wait_for("its entry", || (inbox(home, "user") == [id.to_owned()]).then_some(()));
}

/// Waits until the notice is delivered, and was pasted once and sent by one Enter.
fn typed_once(home: &Home, id: &str) {
    let row = delivered(home, id);
    let said = row["history"][0]["result"].as_str().expect("its result");
    assert!(said.contains("typed into pane") && said.contains("in the conversation"), "{row}");
    let typed = read(home, "typed");
    let paste = format!("\u{1b}[200~[homing notice - not user input] {id} ");
    assert_eq!((typed.matches(&paste).count(), typed.matches('\r').count()), (1, 1), "{typed:?}");
    assert!(typed.ends_with("\u{1b}[201~\r"), "{typed:?}");
}

fn dialog_is_never_answered(agent: &str) {
    let home = typing_home();
    let Some(tmux) = Tmux::new(home.scratch()) else { return };
    let pane = simulate(&home, &tmux, agent, true, "");
    let id = told_in(&home, &tmux, &pane);
    put_off(&home, &id, "a dialog of");
    assert_eq!((read(&home, "typed").as_str(), home.scratch().join("approved").exists()), ("", false));
    // The user says no: the prompt is there again, and empty.
    let _ = tmux.call(&["send-keys", "-t", &pane, "-l", "n"]);
    typed_once(&home, &id);
    assert!(!home.scratch().join("approved").exists());
}

fn draft_is_never_sent(agent: &str) {
    let home = typing_home();
    let Some(tmux) = Tmux::new(home.scratch()) else { return };
    let pane = simulate(&home, &tmux, agent, false, "please delete everything except");
    let id = told_in(&home, &tmux, &pane);
    put_off(&home, &id, "has a draft");
    assert_eq!(read(&home, "typed"), "");
    let _ = tmux.call(&["send-keys", "-t", &pane, "C-u"]);
    typed_once(&home, &id);
}

#[test]
fn p11_tmux_wake_leaves_a_dialog_of_claude_alone() {
    dialog_is_never_answered("claude");
}

#[test]
fn p11_tmux_wake_leaves_a_dialog_of_codex_alone() {
    dialog_is_never_answered("codex");
}

#[test]
fn p11_tmux_wake_leaves_a_dialog_of_gemini_alone() {
    dialog_is_never_answered("gemini");
}

#[test]
fn tmux_wake_does_not_send_a_draft_in_claude() {
    draft_is_never_sent("claude");
}

#[test]
fn tmux_wake_does_not_send_a_draft_in_codex() {
    draft_is_never_sent("codex");
}

#[test]
fn tmux_wake_does_not_send_a_draft_in_gemini() {
    draft_is_never_sent("gemini");
}

#[test]
fn tmux_wake_is_refused_unless_it_is_turned_on() {
    let home = super::home();
    let Some(tmux) = Tmux::new(home.scratch()) else { return };
    let pane = simulate(&home, &tmux, "claude", false, "");
    let mut command = home.command();
    command.env("TMUX", tmux.variable()).env("PATH", "/usr/local/bin:/usr/bin:/bin");
    let output = command.args(["run", "--notify", &format!("wake:tmux:{pane}"), "true"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("HM0060") && said.contains("tmux = true"), "{said}");
    assert_eq!(read(&home, "typed"), "");
}

#[test]
fn tmux_wake_types_nothing_into_an_unknown_program() {
    let home = typing_home();
    let Some(tmux) = Tmux::new(home.scratch()) else { return };
    let pane = tmux.pane(&format!("cd '{}'; touch there; exec cat > typed", home.scratch().display()));
    wait_for("cat to run", || {
        (tmux.call(&["display-message", "-p", "-t", &pane, "#{pane_current_command}"]) == "cat").then_some(())
    });
    let id = told_in(&home, &tmux, &pane);
    put_off(&home, &id, "no agent whose prompt is known");
    assert_eq!(read(&home, "typed"), "");
}

#[test]
fn p5_enter_is_not_typed_where_the_program_has_gone_since() {
    let home = typing_home();
    let Some(tmux) = Tmux::new(home.scratch()) else { return };
    fs::write(home.scratch().join("first"), "tmux -S tmux respawn-pane -k -c \"$PWD\" 'cat > other'")
        .unwrap();
    let pane = simulate(&home, &tmux, "claude", false, "");
    let id = told_in(&home, &tmux, &pane);
    put_off(&home, &id, "since the line was typed");
    assert_eq!(read(&home, "other"), "", "the one that came after it got nothing");
}

#[test]
fn p6_a_line_that_waits_for_its_enter_is_not_typed_again() {
    let home = typing_home();
    let Some(tmux) = Tmux::new(home.scratch()) else { return };
    // Somebody begins to scroll: from then on keys are no longer the program's.
    fs::write(home.scratch().join("first"), "tmux -S tmux copy-mode").unwrap();
    let pane = simulate(&home, &tmux, "claude", false, "");
    let id = told_in(&home, &tmux, &pane);
    put_off(&home, &id, "is scrolled back");
    let _ = tmux.call(&["send-keys", "-t", &pane, "-X", "cancel"]);
    typed_once(&home, &id);
}

#[test]
fn p11_tmux_wake_waits_while_panes_share_their_keys() {
    let home = typing_home();
    let Some(tmux) = Tmux::new(home.scratch()) else { return };
    let pane = simulate(&home, &tmux, "claude", false, "");
    let folder = home.scratch().display().to_string();
    let _ = tmux.call(&["split-window", "-d", "-t", &pane, "-c", &folder, "touch cat; exec cat > other"]);
    wait_for("the other pane", || home.scratch().join("cat").exists().then_some(()));
    let _ = tmux.call(&["set-option", "-w", "-t", &pane, "synchronize-panes", "on"]);
    let id = told_in(&home, &tmux, &pane);
    put_off(&home, &id, "shares its keys with others");
    assert_eq!((read(&home, "typed"), read(&home, "other")), (String::new(), String::new()));
    let _ = tmux.call(&["set-option", "-w", "-t", &pane, "synchronize-panes", "off"]);
    typed_once(&home, &id);
    assert_eq!(read(&home, "other"), "");
}

#[test]
fn p5_enter_waits_for_a_turn_that_began_after_the_paste() {
    let home = typing_home();
    let Some(tmux) = Tmux::new(home.scratch()) else { return };
    fs::write(home.scratch().join("first"), "touch busy").expect("the ground of the test");
    let pane = simulate(&home, &tmux, "claude", false, "");
    let id = told_in(&home, &tmux, &pane);
    put_off(&home, &id, "is in the middle of a turn");
    assert_eq!(read(&home, "typed").matches('\r').count(), 0, "Enter was pressed");
    fs::remove_file(home.scratch().join("busy")).expect("the turn ends");
    let _ = tmux.call(&["send-keys", "-t", &pane, "C-l"]);
    let row = delivered(&home, &id);
    let typed = read(&home, "typed");
    assert_eq!((typed.matches("[homing notice").count(), typed.matches('\r').count()), (1, 1), "{row}");
}

/// The user edits the pasted line before Enter follows: a prompt that still shows the notice is no evidence that the agent took it.
fn edited_paste_is_not_delivered(agent: &str) {
    let home = typing_home();
    let Some(tmux) = Tmux::new(home.scratch()) else { return };
    fs::write(home.scratch().join("first"), "tmux -S tmux send-keys -l x").expect("the ground of the test");
    let pane = simulate(&home, &tmux, agent, false, "");
    let id = told_in(&home, &tmux, &pane);
    put_off(&home, &id, "has a draft; nothing is typed into it, since the line was typed");
    // The next attempt knows that the line was pasted, and finds it on the screen.
    let again = |one: &Value| {
        one["state"] != "pending" || one["reason"].as_str().is_some_and(|why| why.ends_with("typed into it"))
    };
    assert_eq!(delivery(&home, &id, again)["state"], "pending");
    put_off(&home, &id, "has a draft");
    assert_eq!(read(&home, "typed").matches('\r').count(), 0, "Enter was pressed");
}

#[test]
fn p5_an_edited_paste_in_claude_is_not_delivered() {
    edited_paste_is_not_delivered("claude");
}

#[test]
fn p5_an_edited_paste_in_codex_is_not_delivered() {
    edited_paste_is_not_delivered("codex");
}

#[test]
fn p5_an_edited_paste_in_gemini_is_not_delivered() {
    edited_paste_is_not_delivered("gemini");
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
    assert!(refused(&["wake:nobody"], &[]).contains("names nobody"));
    assert!(refused(&["wake:tmux:%7"], &[]).contains("tmux = true"));
    fs::write(home.path().join("config.toml"), "[wake]\ntmux = true\n").unwrap();
    home.does(["config", "reload"]);
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
