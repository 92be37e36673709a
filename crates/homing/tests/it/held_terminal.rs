//! A terminal that takes nothing, a pipe that nobody reads, a terminal that is gone: what is shown there waits, and no way out does.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};

use homing_testkit::{Home, gate, wait_for};
use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use super::seat::Seat;

/// Prints far more than lies anywhere between a task and a terminal, once it is let go.
fn flood(rest: &str) -> String {
    format!("echo up; {}; seq 1 300000; echo yes > printed; {rest}", gate("go"))
}

/// Runs this at a terminal that takes nothing from before the flood on.
fn held(home: &Home, words: &[&str]) -> Seat {
    for file in ["go", "printed"] {
        let _ = std::fs::remove_file(home.scratch().join(file));
    }
    let line = flood("exec sleep 1000");
    let seat = Seat::take(home, (80, 24), &[], &[words, &["-c", &line]].concat());
    let _ = seat.sees("up");
    seat.holds_output(true);
    home.open("go");
    assert_eq!(home.told("printed"), "yes");
    seat
}

fn last(home: &Home) -> String {
    home.cli(["show", "@last", "--json"]).ok().json()["id"].as_str().expect("an id").to_owned()
}

#[test]
fn exec_on_a_terminal_that_takes_nothing_is_left_by_every_signal() {
    let home = super::home();
    for (signal, code) in [("TERM", 143), ("HUP", 129), ("QUIT", 131)] {
        for words in [&["exec"][..], &["exec", "--pty"]] {
            let seat = held(&home, words);
            seat.signal(signal);
            assert_eq!(seat.ends().0, code, "{words:?}");
            let _ = home.until_status(&last(&home), "running");
        }
    }
    // The first interrupt goes to the task; when it has ended by it, the second one leaves.
    let seat = held(&home, &["exec"]);
    seat.signal("INT");
    assert_eq!(home.ended(&last(&home))["outcome"]["signal"], 2);
    seat.signal("INT");
    assert_eq!(seat.ends().0, 130);
}

#[test]
fn exec_on_a_terminal_that_takes_nothing_is_left_by_its_keys_and_by_its_time() {
    let home = super::home();
    let mut seat = held(&home, &["exec", "--pty"]);
    seat.press(b"\x1c");
    assert_eq!(seat.ends().0, 123);
    let seat = held(&home, &["exec", "--bg-after", "2s"]);
    assert_eq!(seat.ends().0, 123);
}

#[test]
fn what_waits_for_a_terminal_is_all_there_when_it_goes_on() {
    let home = super::home();
    let line = flood("exit 7");
    let seat = Seat::take(&home, (80, 24), &[], &["exec", "-c", &line]);
    let up = seat.sees("up");
    seat.holds_output(true);
    home.open("go");
    assert_eq!(home.told("printed"), "yes");
    assert_eq!(home.ended(&last(&home))["outcome"]["exit_code"], 7);
    seat.holds_output(false);
    let (code, seen) = seat.ends();
    assert_eq!(code, 7);
    let whole: String = (1..=300_000).map(|number| format!("{number}\r\n")).collect();
    let shown = String::from_utf8_lossy(&seen[up..]).replace("\r\u{1b}[K", "");
    assert!(shown.contains(&whole), "all of it, in order");
}

#[test]
fn exec_into_a_pipe_that_nobody_reads_hears_signals_and_loses_nothing_for_who_reads_late() {
    let home = super::home();
    let begin = |rest: &str| {
        for file in ["go", "printed"] {
            let _ = std::fs::remove_file(home.scratch().join(file));
        }
        let mut command = home.command();
        command.args(["exec", "-c", &flood(rest)]).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().expect("the binary runs");
        home.open("go");
        assert_eq!(home.told("printed"), "yes");
        child
    };
    let mut child = begin("exec sleep 1000");
    interrupt(&child);
    assert_eq!(home.ended(&last(&home))["outcome"]["signal"], 2);
    let ended = wait_for("the end of the command", || {
        interrupt(&child);
        child.try_wait().expect("a child")
    });
    assert_eq!(ended.code(), Some(130));
    let output = begin("exit 9").wait_with_output().expect("a child");
    let whole: String = (1..=300_000).map(|number| format!("{number}\n")).collect();
    assert!(output.stdout == format!("up\n{whole}").as_bytes());
    assert_eq!(output.status.code(), Some(9));
}

fn interrupt(child: &Child) {
    let _ = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill runs");
}

#[test]
fn a_second_interrupt_leaves_a_daemon_that_stands_still() {
    let home = super::home();
    let mut command = home.command();
    command.args(["exec", "-c", "echo up > up; exec sleep 1000"]).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the binary runs");
    let _ = home.told("up");
    let id = last(&home);
    let daemon = home.daemon_pid();
    homing_testkit::freeze(daemon);
    interrupt(&child);
    let mut stderr = BufReader::new(child.stderr.take().expect("stderr"));
    let mut line = String::new();
    stderr.read_line(&mut line).expect("stderr");
    assert!(line.contains(&format!("once more stops {id}, or leaves if that is not answered")), "{line}");
    interrupt(&child);
    let status = child.wait().expect("a child");
    homing_testkit::thaw(daemon);
    let mut rest = String::new();
    stderr.read_to_string(&mut rest).expect("stderr");
    assert_eq!(status.code(), Some(125), "{rest}");
    assert!(rest.contains("is not known (HM0019)") && rest.contains(&format!("homing wait {id}")), "{rest}");
}

#[test]
fn a_second_interrupt_stops_a_task_whose_shim_did_not_answer_the_first() {
    let home = super::home();
    let mut command = home.command();
    command.args(["exec", "-c", "echo up > up; exec sleep 1000"]).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the binary runs");
    let _ = home.told("up");
    let id = last(&home);
    homing_testkit::freeze(home.shim_pid(&id));
    interrupt(&child);
    let mut stderr = BufReader::new(child.stderr.take().expect("stderr"));
    let mut line = String::new();
    stderr.read_line(&mut line).expect("stderr");
    assert!(line.contains(&format!("once more stops {id}, or leaves if that is not answered")), "{line}");
    interrupt(&child);
    // A stop continues the shim, which then passes the first one on too.
    let code = child.wait().expect("a child").code();
    assert!(matches!(code, Some(122 | 130)), "{code:?}");
    assert!(home.task(&id)["ended_at"].is_string());
}

#[test]
fn a_submit_that_nobody_answers_is_left_by_a_second_interrupt() {
    let home = super::home();
    let daemon = home.daemon_pid();
    homing_testkit::freeze(daemon);
    let mut command = home.command();
    command.args(["exec", "--", "true"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the binary runs");
    wait_for("the interrupt to be caught", || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).ok()?;
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"))?;
        (u64::from_str_radix(caught.trim(), 16).ok()? & 0b10 != 0).then_some(())
    });
    let status = wait_for("the end of the command", || {
        interrupt(&child);
        child.try_wait().expect("a child")
    });
    homing_testkit::thaw(daemon);
    let output = child.wait_with_output().expect("a child");
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(status.code(), Some(125), "{told}");
    assert!(told.contains("whether the task was submitted is not known (HM0019)"), "{told}");
}

#[test]
fn a_list_that_is_watched_on_a_terminal_that_takes_nothing_is_left_and_is_right_when_it_goes_on() {
    let home = super::home();
    let id = home.submit(&[], "exec sleep 1000");
    for (way, code) in [("TERM", 143), ("HUP", 129), ("QUIT", 131), ("INT", 0), ("q", 0)] {
        let mut seat = Seat::take(&home, (80, 24), &[], &["list", "--watch"]);
        let drawn = seat.sees(&id);
        seat.holds_output(true);
        let others: Vec<_> = (0..3).map(|_| home.submit(&[], "true")).collect();
        if code == 143 {
            seat.holds_output(false);
            for other in &others {
                let _ = seat.sees_after(drawn, other);
            }
            seat.holds_output(true);
            let _ = home.submit(&[], "true");
        }
        match way {
            "q" => seat.press(b"q"),
            signal => seat.signal(signal),
        }
        assert_eq!(seat.ends().0, code, "{way}");
    }
}

/// Waits until this is seen. The panel writes only what is new on the screen, so that no word of it need be written whole.
fn shows(seat: &Seat, word: &str) {
    wait_for(&format!("{word} on the screen"), || seat.screen().contains(word).then_some(()));
}

#[test]
fn the_panel_on_a_terminal_that_takes_nothing_is_left_and_is_right_when_it_goes_on() {
    let home = super::home();
    let id = home.submit(&[], "exec sleep 1000");
    for (way, code) in [("TERM", 143), ("HUP", 129), ("QUIT", 131), ("INT", 0), ("q", 0)] {
        let mut seat = Seat::take(&home, (80, 24), &[], &["ui"]);
        shows(&seat, &id);
        seat.holds_output(true);
        let other = home.submit(&["--name", "other"], "true");
        if code == 143 {
            seat.holds_output(false);
            shows(&seat, &other);
            seat.holds_output(true);
            let _ = home.submit(&[], "true");
        }
        match way {
            "q" => seat.press(b"q"),
            signal => seat.signal(signal),
        }
        assert_eq!(seat.ends().0, code, "{way}");
    }
}

#[test]
fn a_signal_to_a_panel_that_lent_its_terminal_ends_both() {
    let home = super::home();
    let id = home.submit(&["--pty"], "stty -echo; printf 'inside %s' words; exec cat");
    let mut seat = Seat::take(&home, (80, 24), &[], &["ui"]);
    shows(&seat, &id);
    let drawn = seat.seen().len();
    wait_for("the panel to have taken the keys", || seat.is_raw().then_some(()));
    seat.press(b"t");
    let lent = seat.sees_after(drawn, "\u{1b}[?1049l");
    let _ = seat.sees_after(lent, "inside words");
    seat.signal("TERM");
    assert_eq!(seat.ends().0, 143);
    let _ = home.until_status(&id, "running");
}

/// Runs this at a terminal, waits for a word, and hangs the terminal up. With `ours` it is the one that its session is controlled by, which is told so.
fn hung_up(home: &Home, ours: bool, words: &[&str], word: &str) -> i32 {
    let seat = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("a terminal");
    grantpt(&seat).and_then(|()| unlockpt(&seat)).expect("a terminal");
    let name = ptsname(&seat, Vec::new()).expect("a terminal");
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let terminal = File::from(rustix::fs::open(name.as_c_str(), flags, Mode::empty()).expect("a terminal"));
    tcsetwinsize(&seat, Winsize { ws_col: 80, ws_row: 24, ws_xpixel: 0, ws_ypixel: 0 }).expect("a terminal");
    let mut command = Command::new("setsid");
    if ours {
        command.arg("--ctty");
    }
    command.arg("--wait").arg(home.program()).args(words).current_dir(home.scratch());
    command.env_remove("CI").env("HOMING_HOME", home.path()).env("TERM", "xterm").env("LC_ALL", "C.UTF-8");
    for set in [Command::stdin, Command::stdout, Command::stderr] {
        set(&mut command, terminal.try_clone().expect("a terminal"));
    }
    let mut child = command.spawn().expect("the binary runs");
    // It keeps what it was given for the child.
    drop((command, terminal));
    let mut seat = File::from(seat);
    let number = |number| std::num::NonZeroU16::new(number).expect("a size");
    let mut screen = vt100::Parser::new(number(24), number(80), 0);
    while !screen.screen().contents().contains(word) {
        let mut piece = [0; 4096];
        let count = seat.read(&mut piece).expect("a terminal");
        screen.process(&piece[..count]);
    }
    drop(seat);
    let status = wait_for("the end of the command", || child.try_wait().expect("a child"));
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
}

#[test]
fn a_terminal_that_is_hung_up_ends_what_is_shown_on_it_and_nothing_else() {
    let home = super::home();
    let id = home.submit(&[], "exec sleep 1000");
    for ours in [true, false] {
        for words in [&["list", "--watch"][..], &["ui"]] {
            assert_eq!(hung_up(&home, ours, words, &id), 129, "{words:?} {ours}");
        }
        let prints = ["exec", "-c", "while :; do echo word; sleep 0.01; done"];
        assert_eq!(hung_up(&home, ours, &prints, "word"), 129, "exec {ours}");
        let _ = home.until_status(&last(&home), "running");
        // One that draws, and one that is only looked at: the way to what is shown, and that to the keys.
        for line in ["while :; do echo word; sleep 0.01; done", "echo word; exec sleep 1000"] {
            let drawn = home.submit(&["--pty"], line);
            let _ = home.until_status(&drawn, "running");
            assert_eq!(hung_up(&home, ours, &["attach", &drawn], "word"), 129, "attach {ours} {line}");
            let _ = home.until_status(&drawn, "running");
        }
    }
    let _ = home.until_status(&id, "running");
}

/// A program with a screen of its own, that says what it reads.
const DRAWS: &str = "stty -echo; printf '\\033[?1049h\\033[?2004hdrawn'; while read -r line; do printf 'got %s' \"$line\"; done; exit 7";

#[test]
fn exec_that_is_stopped_gives_the_terminal_to_the_shell_and_takes_it_and_its_screen_again() {
    let home = super::home();
    let mut seat = Seat::take(&home, (80, 24), &[], &["exec", "--pty", "-c", DRAWS]);
    let mut begun = seat.sees("drawn");
    for way in ["TSTP", "STOP"] {
        wait_for("the terminal to be taken", || seat.is_raw().then_some(()));
        seat.signal(way);
        wait_for("the command to be stopped", || seat.is_stopped().then_some(()));
        if way == "TSTP" {
            begun = seat.sees_after(begun, "\u{1b}[?1049l");
            assert!(!seat.is_raw(), "the shell has it");
        } else {
            // Nobody was told; a shell takes it as it needs it.
            seat.makes_sane();
        }
        seat.signal("CONT");
        wait_for("the terminal to be taken again", || seat.is_raw().then_some(()));
        begun = seat.sees_after(begun, "\u{1b}[?1049h");
        begun = seat.sees_after(begun, "drawn");
        seat.press(format!("{way}\r").as_bytes());
        begun = seat.sees_after(begun, &format!("got {way}"));
    }
    // It goes on through the death of the daemon, and ends as ever.
    home.kill(home.daemon_pid());
    seat.press(b"after\r");
    let _ = seat.sees_after(begun, "got after");
    seat.press(b"\x04");
    let (code, seen) = seat.ends();
    assert_eq!(code, 7, "{}", String::from_utf8_lossy(&seen));
}

#[test]
fn exec_that_was_stopped_on_a_screen_of_lines_shows_them_again_and_is_left_by_its_keys() {
    let home = super::home();
    let line = "stty -echo; echo first words; while read -r line; do echo \"got $line\"; done";
    let mut seat = Seat::take(&home, (80, 24), &[], &["exec", "--pty", "-c", line]);
    let mut begun = seat.sees("first words");
    wait_for("the terminal to be taken", || seat.is_raw().then_some(()));
    seat.signal("TSTP");
    wait_for("the command to be stopped", || (seat.is_stopped() && !seat.is_raw()).then_some(()));
    seat.resize((60, 20));
    seat.signal("CONT");
    begun = seat.sees_after(begun, "first words");
    seat.press(b"it\r");
    let _ = seat.sees_after(begun, "got it");
    let id = last(&home);
    wait_for("the task's terminal to be as large as this one", || {
        home.path().join("tasks").join(&id).join("sizes").exists().then_some(())
    });
    seat.press(b"\x1c");
    assert_eq!(seat.ends().0, 123);
    let _ = home.until_status(&id, "running");
}
