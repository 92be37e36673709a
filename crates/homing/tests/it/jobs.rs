//! Jobs of a shell: signals that were ignored at the start stay so, and whoever is stopped, or in the background, is ended as any other.

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use homing_testkit::{Home, alive, gate, wait_for};

use super::home;
use super::seat::Seat;

/// What the kernel says of the signals of a process, by the name of the line.
fn has(pid: u32, line: &str, number: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let mask = status.lines().find_map(|found| found.strip_prefix(line));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .is_some_and(|mask| mask & (1 << (number - 1)) != 0)
}

#[test]
fn signals_that_were_ignored_at_the_start_stay_ignored() {
    let home = home();
    let line = format!("echo up > up; {}; echo survived", gate("go"));
    // As `nohup` and a shell without job control do it.
    let script = "trap '' HUP INT QUIT; exec \"$@\"";
    for words in [&["exec"][..], &["exec", "--pty"], &["run", "--follow"]] {
        for file in ["up", "go"] {
            let _ = std::fs::remove_file(home.scratch().join(file));
        }
        let mut command = Command::new("sh");
        command.args(["-c", script, "sh"]).arg(home.program()).args(words).args(["-c", &line]);
        command.env("HOMING_HOME", home.path()).current_dir(home.scratch()).process_group(0);
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("the binary runs");
        let _ = home.told("up");
        wait_for("it to be ready", || has(child.id(), "SigCgt:", 15).then_some(()));
        for name in ["-INT", "-HUP", "-QUIT", "-INT"] {
            let group = format!("-{}", child.id());
            assert!(Command::new("kill").args([name, "--", &group]).status().expect("kill").success());
        }
        assert!([1, 2, 3].iter().all(|number| has(child.id(), "SigIgn:", *number)), "{words:?}");
        home.open("go");
        let output = child.wait_with_output().expect("a child");
        let shown = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            output.status.success() && shown.contains("survived"),
            "{words:?}: {:?} {shown}",
            output.status
        );
    }
}

/// Types this at a shell, and waits until the terminal is the job's and shows the word.
fn begins(home: &Home, words: &str, word: &str) -> (Seat, u32) {
    let mut seat = Seat::shell(home, (80, 24));
    let prompt = seat.sees("> ");
    seat.press(format!("{} {words}\r", home.program().display()).as_bytes());
    let _ = seat.sees_after(prompt, word);
    let pid = wait_for("the job", || {
        let shell = seat.pid();
        let children = std::fs::read_to_string(format!("/proc/{shell}/task/{shell}/children")).ok()?;
        children.split_whitespace().next()?.parse().ok()
    });
    wait_for("the terminal to be taken", || seat.is_raw().then_some(()));
    (seat, pid)
}

#[test]
fn a_job_that_is_stopped_is_ended_by_the_shell_that_has_it() {
    let home = home();
    let id = home.submit(&["--pty", "--name", "drawn"], "echo word; exec sleep 1000");
    let _ = home.until_status(&id, "running");
    for (words, word) in [
        ("list --watch", id.as_str()),
        ("exec --pty -c 'echo up to now; exec sleep 1000'", "up to now\r\n"),
        ("attach drawn", "word"),
    ] {
        for way in ["TSTP", "STOP"] {
            let (mut seat, pid) = begins(&home, words, word);
            let begun = seat.seen().len();
            let sent = Command::new("kill").args([format!("-{way}"), pid.to_string()]).status();
            assert!(sent.expect("kill").success());
            let _ = seat.sees_after(begun, "Stopped");
            seat.press(b"kill %1\r");
            wait_for("the end of the job", || (!alive(pid)).then_some(()));
            // Not by `exit`, which a shell refuses that has not looked after its jobs yet.
            seat.press(b"exec sh -c 'exit 7'\r");
            assert_eq!(seat.ends().0, 7, "{words} {way}");
        }
    }
}

#[test]
fn a_job_that_is_stopped_stays_so_in_the_background_and_goes_on_in_the_foreground() {
    let home = home();
    let id = home.submit(&[], "exec sleep 1000");
    let (mut seat, pid) = begins(&home, "list --watch", &id);
    let begun = seat.seen().len();
    seat.press(b"\x1a");
    let mut stopped = seat.sees_after(begun, "Stopped");
    seat.press(b"bg\r");
    stopped = seat.sees_after(stopped, "&");
    wait_for("the job to stand still again", || {
        homing_sys::process::stat(pid).is_some_and(|found| found.frozen).then_some(())
    });
    seat.press(b"fg\r");
    let entered = seat.sees_after(stopped, "\u{1b}[?1049h");
    let _ = seat.sees_after(entered, &id);
    wait_for("the terminal to be taken", || seat.is_raw().then_some(()));
    seat.press(b"q");
    let left = seat.sees_after(entered, "\u{1b}[?1049l");
    let _ = seat.sees_after(left, "> ");
    seat.press(b"exit 7\r");
    assert_eq!(seat.ends().0, 7);
}
