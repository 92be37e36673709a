//! The panel on a real terminal: a pane of tmux, with the daemon behind it.

use homing_testkit::{Home, gate, wait_for};

use super::agents::Tmux;

/// A panel in a pane.
struct Pane {
    tmux: Tmux,
    id: String,
}

impl Pane {
    /// None where there is no tmux. What the shell says afterwards shows how the terminal was left.
    fn open(home: &Home, options: &str) -> Option<Self> {
        Self::open_after(home, "true", options)
    }

    /// The same, with something done to the terminal before.
    fn open_after(home: &Home, before: &str, options: &str) -> Option<Self> {
        // A daemon that is being started by two at once is another story.
        let _ = home.cli(["daemon", "start"]);
        let tmux = Tmux::new(home.scratch())?;
        let line = format!(
            "unset HOMING_TASK_ID HOMING_OWNER; {before}; HOMING_HOME='{}' LC_ALL=C.UTF-8 '{}' ui {options}; echo \"left with $?\"; stty -a; exec cat",
            home.path().display(),
            home.program().display(),
        );
        let id = tmux.pane(&line);
        Some(Self { tmux, id })
    }

    fn screen(&self) -> String {
        self.tmux.call(&["capture-pane", "-p", "-t", &self.id])
    }

    fn keys(&self, keys: &[&str]) {
        let mut words = vec!["send-keys", "-t", &self.id];
        words.extend(keys);
        self.tmux.call(&words);
    }

    fn asked(&self, what: &str) -> String {
        self.tmux.call(&["display-message", "-p", "-t", &self.id, what])
    }

    /// Waits until some line has all of these in it.
    fn shows(&self, parts: &[&str]) -> String {
        let mut last = String::new();
        wait_for(&format!("a line with {parts:?} on the screen"), || {
            last = self.screen();
            let found = last.lines().find(|line| parts.iter().all(|part| line.contains(part)));
            found.map(str::to_owned)
        })
    }

    fn resize(&self, width: &str, height: &str) {
        self.tmux.call(&["resize-window", "-t", &self.id, "-x", width, "-y", height]);
    }

    /// To the panel, which is the shell's only child.
    fn signal(&self, signal: rustix::process::Signal) {
        let pid = self.asked("#{pane_pid}");
        let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).expect("a shell");
        let panel = children.split_whitespace().next().expect("a panel").parse().expect("a pid");
        let panel = rustix::process::Pid::from_raw(panel).expect("a pid");
        rustix::process::kill_process(panel, signal).expect("a panel");
    }

    /// The terminal is as it was before.
    fn is_clean(&self) {
        self.is_clean_after(0);
    }

    /// The same, and the panel said how it was left.
    fn is_clean_after(&self, code: i32) {
        let screen = wait_for("the shell after the panel", || {
            Some(self.screen()).filter(|screen| screen.contains("left with") && screen.contains("iexten"))
        });
        assert!(screen.contains(&format!("left with {code}")), "{screen}");
        let modes: Vec<&str> = screen.split_whitespace().collect();
        assert!(["icanon", "echo", "isig", "opost"].iter().all(|mode| modes.contains(mode)), "{screen}");
        assert_eq!(self.asked("#{alternate_on} #{mouse_any_flag} #{cursor_flag}"), "0 0 1");
    }
}

#[test]
fn the_panel_shows_start_output_and_end_and_is_right_again_after_the_daemon_was_killed() {
    let home = super::home();
    let Some(pane) = Pane::open(&home, "") else { return };
    pane.shows(&["no tasks yet"]);
    let (go, end) = (home.scratch().join("go"), home.scratch().join("end"));
    let line = format!(
        "echo first words; {}; echo second words; {}; echo last words; exit 3",
        gate("go"),
        gate("end")
    );
    let id = home.submit(&["--name", "job"], &line);
    pane.shows(&[&id, "● running", "job", "first words"]);
    pane.shows(&["output of job", "following"]);
    std::fs::write(&go, "").unwrap();
    pane.shows(&[&id, "second words"]);
    home.kill(home.daemon_pid());
    let other = home.submit(&["--name", "other"], "echo of another daemon");
    pane.shows(&[&other, "✓ succeeded", "of another daemon"]);
    std::fs::write(&end, "").unwrap();
    pane.shows(&[&id, "✗ failed", "exit 3", "last words"]);
    pane.shows(&["0 running", "2 ended", "● live"]);
    pane.keys(&["q"]);
    pane.is_clean();
}

#[test]
fn a_terminal_of_an_absurd_size_is_drawn_on_as_far_as_a_screen_goes() {
    let home = super::home();
    let Some(pane) = Pane::open_after(&home, "stty cols 65535 rows 65535", "") else { return };
    wait_for("the panel", || {
        let dead = pane.screen().contains("left with");
        (dead || pane.asked("#{alternate_on}") == "1").then_some(())
    });
    pane.keys(&["q"]);
    pane.is_clean();
}

#[test]
fn a_task_is_looked_at_stopped_and_acknowledged_by_keys() {
    let home = super::home();
    let foreign = home.submit(&["--name", "else"], "true");
    let _ = home.ended(&foreign);
    let Some(pane) = Pane::open(&home, "--filter wanted") else { return };
    let id = home.submit(&["--name", "wanted"], "echo out; echo err >&2; exec sleep 600");
    pane.shows(&[&id, "● running"]);
    assert!(!pane.screen().contains(&foreign), "what the filter leaves out");
    let lines = wait_for("both streams", || {
        let screen = pane.screen();
        (screen.contains("\n  out") && screen.contains("\n▌ err")).then_some(screen)
    });
    assert!(lines.contains("1 running"), "{lines}");
    pane.keys(&["d"]);
    pane.shows(&["command", "sleep 600"]);
    pane.keys(&["x"]);
    pane.shows(&["[y/n] Stop wanted"]);
    pane.keys(&["y"]);
    pane.shows(&[&id, "■ stopped", "by user"]);
    pane.shows(&["notices", "waits in the inbox"]);
    pane.keys(&["a"]);
    pane.shows(&["acknowledged"]);
    wait_for("the inbox to be empty of it", || {
        (home.task(&id)["notices"][0]["inbox"] == "acknowledged").then_some(())
    });
    pane.keys(&["C-c"]);
    pane.is_clean();
}

#[test]
fn one_key_pauses_a_task_and_lets_it_go_on() {
    let home = super::home();
    let Some(pane) = Pane::open(&home, "") else { return };
    let id = home.submit(&["--name", "job"], "exec sleep 600");
    pane.shows(&[&id, "● running"]);
    for _ in 0..2 {
        pane.keys(&["p"]);
        pane.shows(&[&id, "‖ paused"]);
        assert_eq!(home.task(&id)["status"], "paused");
        pane.keys(&["p"]);
        pane.shows(&[&id, "● running"]);
    }
    pane.keys(&["?"]);
    pane.shows(&["p", "pause, or let go on"]);
}

#[test]
fn hostile_output_stays_in_the_panel_on_a_real_terminal_and_so_does_every_size() {
    let home = super::home();
    let Some(pane) = Pane::open(&home, "") else { return };
    let nasty = r"printf '\033[2J\033[HEVIL-A\033]2;EVIL-T\007\033[?1049l\033[31mred\033[0m\000\342\200\256x\n'; head -c 70000 /dev/zero | tr '\0' y; echo; echo harmless; exec sleep 600";
    let id = home.submit(&["--name", "nasty"], nasty);
    pane.shows(&[&id, "● running", "harmless"]);
    // What it wrote is shown where it belongs.
    let line = pane.shows(&["EVIL-Ared"]);
    assert!(line.starts_with("  EVIL-Ared"), "{line}");
    let screen = pane.screen();
    assert!(screen.trim_start().starts_with("homing · 1 running"), "the first line is ours: {screen}");
    assert_ne!(pane.asked("#{pane_title}"), "EVIL-T");
    assert_eq!(pane.asked("#{alternate_on}"), "1");
    for (width, height) in [("20", "5"), ("2", "2"), ("300", "90"), ("1", "1"), ("80", "24")] {
        pane.resize(width, height);
        pane.keys(&["Tab", "PageUp", "Enter", "Escape", "Escape"]);
    }
    pane.shows(&[&id, "● running"]);
    pane.signal(rustix::process::Signal::TERM);
    pane.is_clean_after(143);
}

#[test]
fn every_signal_that_can_be_caught_gives_the_terminal_back() {
    use rustix::process::Signal;

    let home = super::home();
    for (signal, code) in [(Signal::INT, 0), (Signal::QUIT, 131), (Signal::HUP, 129), (Signal::TERM, 143)] {
        let Some(pane) = Pane::open(&home, "") else { return };
        pane.shows(&["no tasks yet"]);
        pane.signal(signal);
        pane.is_clean_after(code);
    }
}

#[test]
fn where_nothing_can_be_drawn_it_is_said_what_shows_the_same() {
    let home = super::home();
    let told = home.cli(["ui"]);
    assert_eq!((told.code, told.stdout.len()), (1, 0));
    assert!(told.stderr.contains("HM0292") && told.stderr.contains("homing list"), "{}", told.stderr);
    let told = home.cli(["ui", "--json"]);
    assert!(told.code != 0 && told.stderr.contains("homing list --json"), "{}", told.stderr);
    assert!(home.find_daemon().is_none(), "nothing was started for that");
}

#[test]
fn the_terminal_is_lent_to_a_task_and_comes_back() {
    let home = super::home();
    let Some(pane) = Pane::open(&home, "") else { return };
    // On the other screen: what it leaves on this one would be there again before the next has the terminal.
    let line = "stty -echo; printf '\\033[?1049hinside %s' words; exec cat";
    let id = home.submit(&["--pty", "--name", "shell"], line);
    pane.shows(&[&id, "● running"]);
    for _ in 0..3 {
        pane.keys(&["t"]);
        wait_for("the task's terminal alone", || {
            let screen = pane.screen();
            (screen.contains("inside words") && !screen.contains("● live")).then_some(())
        });
        pane.keys(&["C-\\"]);
        pane.shows(&["homing", "1 running", "● live"]);
        pane.shows(&["detached from", &id]);
    }
    pane.keys(&["q"]);
    pane.is_clean();
}
