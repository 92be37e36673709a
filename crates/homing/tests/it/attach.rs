//! A terminal on a task's, as people have it: real programs, in real terminals (tmux), of different sizes, through the daemon's death.

use std::path::Path;
use std::process::Command;

use homing_testkit::{Home, wait_for};

use super::agents::Tmux;
use super::home;

/// A terminal with `homing attach` in it, and a shell around it.
struct Pane<'a> {
    tmux: &'a Tmux,
    id: String,
}

fn there(program: &str) -> bool {
    Command::new("sh")
        .args(["-c", &format!("command -v {program}")])
        .output()
        .is_ok_and(|done| done.status.success())
}

/// A server of tmux, if it and the program are there that a test needs.
fn tmux(home: &Home, program: &str) -> Option<Tmux> {
    Tmux::new(home.scratch()).filter(|_| there(program))
}

fn line(home: &Home, words: &str) -> String {
    let binary = env!("CARGO_BIN_EXE_homing");
    format!("HOMING_HOME='{}' '{binary}' {words}", home.path().display())
}

impl<'a> Pane<'a> {
    /// A terminal of this size with this line of shell in it.
    fn new(tmux: &'a Tmux, (cols, rows): (u16, u16), line: &str) -> Self {
        let (cols, rows) = (cols.to_string(), rows.to_string());
        let shell = format!("PS1=; {line}; exec sh");
        let id =
            tmux.call(&["new-session", "-d", "-P", "-F", "#{pane_id}", "-x", &cols, "-y", &rows, &shell]);
        Self { tmux, id }
    }

    fn attached(tmux: &'a Tmux, home: &Home, size: (u16, u16), id: &str) -> Self {
        let line = line(home, &format!("attach {id}"));
        // What the shell finds afterwards must be what was there before.
        let compare = "[ \"$modes\" = \"$(stty -g)\" ] && echo modes=same";
        Self::new(tmux, size, &format!("modes=$(stty -g); {line}; echo code=$?; {compare}"))
    }

    /// What it shows, line by line, without what is blank at the end of each.
    fn lines(&self) -> Vec<String> {
        let text = self.tmux.call(&["capture-pane", "-p", "-t", &self.id]);
        text.lines().map(|line| line.trim_end().to_owned()).collect()
    }

    fn shows(&self, part: &str) {
        wait_for(&format!("{part:?} on the screen"), || {
            self.lines().iter().any(|line| line.contains(part)).then_some(())
        });
    }

    fn begins(&self, expected: &[&str]) {
        wait_for(&format!("a screen that begins with {expected:?}"), || {
            let lines = self.lines();
            let fits = expected.iter().zip(&lines).all(|(wanted, line)| wanted == line);
            (fits && lines.len() >= expected.len()).then_some(())
        });
    }

    /// Waits until vim, which has shown what was typed into its text, has taken the Escape behind it too: keys from another terminal may
    /// come in between, and be read as one with it.
    fn has_left_insert_mode(&self) {
        wait_for("the end of the insert mode", || {
            (!self.lines().iter().any(|line| line.contains("-- INSERT --"))).then_some(())
        });
    }

    fn types(&self, keys: &[&str]) {
        self.tmux.call(&[&["send-keys", "-t", &self.id], keys].concat());
    }

    fn fact(&self, name: &str) -> String {
        self.tmux.call(&["display-message", "-p", "-t", &self.id, &format!("#{{{name}}}")])
    }
}

fn notes(path: &Path, count: usize) {
    let lines: String = (1..=count).map(|number| format!("line {number}\n")).collect();
    std::fs::write(path, lines).expect("the notes are written");
}

fn vim(home: &Home) -> String {
    notes(&home.scratch().join("notes"), 100);
    home.submit(
        &["--pty", "--env", "TERM=xterm-256color"],
        "exec vim -u NONE -N -n -c 'set nomodeline ttimeout ttimeoutlen=10' notes",
    )
}

#[test]
fn p3_vim_in_two_terminals_of_different_sizes_outlives_the_daemon_and_does_not_notice() {
    let home = home();
    let Some(tmux) = tmux(&home, "vim") else { return };
    let id = vim(&home);
    let large = Pane::attached(&tmux, &home, (200, 60), &id);
    large.begins(&["line 1", "line 2"]);
    wait_for("vim to use the large terminal", || large.lines().contains(&"line 59".to_owned()).then_some(()));
    let small = Pane::attached(&tmux, &home, (80, 24), &id);
    // The smallest decides: 23 lines of text in both.
    for pane in [&large, &small] {
        wait_for("23 lines of text", || {
            let lines = pane.lines();
            (lines.contains(&"line 23".to_owned()) && !lines.contains(&"line 24".to_owned())).then_some(())
        });
    }
    large.types(&["O", "typed in the large one", "Escape"]);
    for pane in [&large, &small] {
        pane.begins(&["typed in the large one", "line 1"]);
        pane.has_left_insert_mode();
    }
    small.types(&["o", "typed in the small one", "Escape"]);
    for pane in [&large, &small] {
        pane.begins(&["typed in the large one", "typed in the small one", "line 1"]);
        pane.has_left_insert_mode();
    }
    let process = home.task(&id)["pid"].clone();
    home.kill_at_once(&[home.daemon_pid()]);
    // Those who were attached are again, by themselves. What is typed before they notice may not arrive: here, the question for the file's name.
    wait_for("vim to answer what is typed in the small one", || {
        small.types(&["C-g"]);
        small.lines().iter().any(|line| line.contains("\"notes\"") && line.contains("Modified")).then_some(())
    });
    small.types(&["o", "typed after the death", "Escape"]);
    let expected =
        ["typed in the large one", "typed in the small one", "typed after the death", "line 1", "line 2"];
    for pane in [&large, &small] {
        pane.begins(&expected);
        pane.has_left_insert_mode();
    }
    // Who attaches anew sees the same.
    let third = Pane::attached(&tmux, &home, (80, 24), &id);
    third.begins(&expected);
    third.types(&["O", "typed in the third", "Escape"]);
    let expected = [
        "typed in the large one",
        "typed in the small one",
        "typed in the third",
        "typed after the death",
        "line 1",
    ];
    for pane in [&large, &small, &third] {
        pane.begins(&expected);
        pane.has_left_insert_mode();
    }
    assert_eq!(home.task(&id)["pid"], process);
    // The small ones go: the large one has all of its lines again.
    for pane in [&small, &third] {
        pane.types(&["C-\\"]);
        pane.shows("code=0");
        pane.shows("modes=same");
        assert_eq!(
            (pane.fact("alternate_on"), pane.fact("mouse_any_flag"), pane.fact("cursor_flag")),
            ("0".into(), "0".into(), "1".into())
        );
    }
    wait_for("59 lines of text", || large.lines().contains(&"line 55".to_owned()).then_some(()));
    large.types(&[":wq", "Enter"]);
    large.shows("code=0");
    let written = std::fs::read_to_string(home.scratch().join("notes")).unwrap();
    assert!(written.starts_with("typed in the large one\ntyped in the small one\n"), "{written}");
    assert_eq!(home.ended(&id)["outcome"]["exit_code"], 0);
}

#[test]
fn a_shell_is_as_it_would_be_here_and_hears_of_the_size() {
    let home = home();
    let Some(tmux) = tmux(&home, "sh") else { return };
    let id = home.submit(&["--pty"], "echo before anybody looked; exec env PS1='> ' sh");
    let pane = Pane::attached(&tmux, &home, (100, 30), &id);
    pane.begins(&["before anybody looked", ">"]);
    // What is there is shown before the task's terminal has the size of this one.
    let hears_of = |size: &str| {
        wait_for(size, || {
            pane.types(&["stty size", "Enter"]);
            pane.lines().iter().any(|line| line == size).then_some(())
        });
    };
    hears_of("30 100");
    let _ = tmux.call(&["resize-window", "-t", &pane.id, "-x", "70", "-y", "20"]);
    hears_of("20 70");
    // A line longer than the screen is wide, edited at its end.
    pane.types(&["echo ", &"x".repeat(80), "BSpace", "y", "Enter"]);
    pane.shows("xxxxxxxxxy");
    pane.types(&["exit 7", "Enter"]);
    pane.shows("code=7");
    assert_eq!(home.ended(&id)["outcome"]["exit_code"], 7);
    pane.shows("modes=same");
}

#[test]
fn a_repl_and_top_work_and_detaching_leaves_the_terminal_as_it_was() {
    let home = home();
    let Some(tmux) = tmux(&home, "python3") else { return };
    let id = home.submit(&["--pty", "--env", "TERM=xterm-256color"], "exec python3 -q");
    let attach = line(&home, &format!("attach {id} --detach-keys ctrl-p,ctrl-q"));
    let pane = Pane::new(&tmux, (80, 24), &format!("{attach}; echo code=$?"));
    pane.shows(">>>");
    pane.types(&["6*7", "Enter"]);
    pane.shows("42");
    // One of the two keys alone is the program's: Ctrl-P brings the last line back.
    pane.types(&["C-p"]);
    pane.types(&["+1", "Enter"]);
    pane.shows("43");
    pane.types(&["C-p", "C-q"]);
    pane.shows("code=0");
    pane.shows("detached from");
    let _ = home.until_status(&id, "running");
    let again = Pane::attached(&tmux, &home, (80, 24), &id);
    again.shows("43");
    again.types(&["exit()", "Enter"]);
    again.shows("code=0");
    if there("top") {
        let id = home.submit(&["--pty", "--env", "TERM=xterm-256color"], "exec top -d 1");
        let pane = Pane::attached(&tmux, &home, (90, 20), &id);
        pane.shows("PID");
        pane.types(&["q"]);
        pane.shows("code=0");
        assert_eq!(home.ended(&id)["status"], "succeeded");
    }
}

#[test]
fn what_cannot_be_attached_to_is_refused_with_what_to_do() {
    let home = home();
    let piped = home.submit(&[], "sleep 300");
    let refused = |id: &str| {
        let shown = String::from_utf8(home.on_terminal(["attach", id])).unwrap();
        let plain = home.cli(["attach", id]);
        assert!(
            plain.code == 1 && plain.stderr.contains("HM0292") && plain.stderr.contains("homing output"),
            "{}",
            plain.stderr
        );
        shown
    };
    let _ = refused(&piped);
    assert_eq!(home.cli(["attach", "t-nosuchtask"]).code, 1);
    assert_eq!(home.cli(["attach", &piped, "--detach-keys", "nokey"]).code, 2);
    let Some(tmux) = Tmux::new(home.scratch()) else { return };
    let without = Pane::attached(&tmux, &home, (100, 20), &piped);
    without.shows("HM0290");
    without.shows("--pty");
    without.shows("code=1");
    let ended = home.submit(&["--pty"], "true");
    let _ = home.ended(&ended);
    let over = Pane::attached(&tmux, &home, (100, 20), &ended);
    over.shows("HM0006");
    over.shows("code=1");
    let unknown = Pane::attached(&tmux, &home, (100, 20), "t-2222222222");
    unknown.shows("code=4");
}

#[test]
fn a_signal_gives_the_terminal_back_and_leaves_the_task_running() {
    let home = home();
    let Some(tmux) = tmux(&home, "vim") else { return };
    let id = vim(&home);
    for (signal, code) in [("TERM", 143), ("HUP", 129), ("INT", 130), ("QUIT", 131)] {
        let pane = Pane::attached(&tmux, &home, (80, 24), &id);
        pane.begins(&["line 1", "line 2"]);
        assert_eq!(pane.fact("alternate_on"), "1");
        let shell = pane.fact("pane_pid");
        let found = Command::new("pgrep").args(["-P", shell.trim(), "-f", "attach"]).output().unwrap();
        let attach = String::from_utf8(found.stdout).unwrap();
        let sent = Command::new("kill").args([&format!("-{signal}"), attach.trim()]).status().unwrap();
        assert!(sent.success(), "{attach}");
        pane.shows(&format!("code={code}"));
        pane.shows("modes=same");
        assert_eq!((pane.fact("alternate_on"), pane.fact("cursor_flag")), ("0".into(), "1".into()));
    }
    let _ = home.until_status(&id, "running");
}

#[test]
fn who_is_suspended_gives_the_terminal_back_and_finds_the_screen_again() {
    let home = home();
    let Some(tmux) = tmux(&home, "vim") else { return };
    let id = vim(&home);
    let attach = line(&home, &format!("attach {id}"));
    let pane = Pane::new(&tmux, (80, 24), "set -m");
    pane.types(&[&attach, "Enter"]);
    pane.begins(&["line 1", "line 2"]);
    let shell = pane.fact("pane_pid");
    let found = Command::new("pgrep").args(["-P", shell.trim(), "-f", "attach"]).output().unwrap();
    let attach = String::from_utf8(found.stdout).unwrap();
    assert!(Command::new("kill").args(["-TSTP", attach.trim()]).status().unwrap().success());
    wait_for("the shell's screen", || (pane.fact("alternate_on") == "0").then_some(()));
    pane.types(&["echo here", "Enter"]);
    pane.shows("here");
    pane.types(&["fg", "Enter"]);
    pane.begins(&["line 1", "line 2"]);
    pane.types(&["O", "still typing", "Escape"]);
    pane.begins(&["still typing", "line 1"]);
}
