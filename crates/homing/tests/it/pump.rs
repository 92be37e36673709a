//! What is piped into `exec` reaches the task, whatever is the matter with the pipe, the shim or the one who reads it.

use std::fs::File;
use std::io::{BufRead, BufReader, PipeWriter, Read, Write};
use std::process::{Child, Stdio};

use homing_testkit::{Home, freeze, thaw, wait_for};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

use super::home;
use super::seat::Seat;

/// Reads from a child until this has come.
fn until(child: &mut Child, text: &str) {
    let stdout = child.stdout.as_mut().expect("stdout");
    let mut seen = Vec::new();
    while !seen.ends_with(text.as_bytes()) {
        let mut byte = [0];
        assert_eq!(stdout.read(&mut byte).expect("stdout"), 1, "{}", String::from_utf8_lossy(&seen));
        seen.push(byte[0]);
    }
}

/// Runs this with a pipe as its stdin.
fn piped(home: &Home, words: &[&str]) -> (Child, PipeWriter) {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    let mut command = home.command();
    command.args(words).stdin(reader).stdout(Stdio::piped()).stderr(Stdio::piped());
    (command.spawn().expect("the binary runs"), writer)
}

#[test]
fn stdin_that_does_not_wait_is_waited_for() {
    let home = home();
    let (reader, mut writer) = std::io::pipe().unwrap();
    fcntl_setfl(&reader, fcntl_getfl(&reader).unwrap() | OFlags::NONBLOCK).unwrap();
    let mut command = home.command();
    command.args(["exec", "--stdin", "-", "-c", "cat; echo END"]).stdin(reader);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // Each is seen before the next is written, so that there is a time without anything to read.
    for line in ["one\n", "two\n"] {
        writer.write_all(line.as_bytes()).unwrap();
        until(&mut child, line);
    }
    drop(writer);
    until(&mut child, "END\n");
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn stdin_that_cannot_be_read_is_told_and_the_task_sees_its_end() {
    let home = home();
    let with_folder = |words: &[&str]| {
        let mut command = home.command();
        Home::finish(command.args(words).stdin(File::open("/").unwrap()))
    };
    let told = |text: &str| text.contains("standard input cannot be read: Is a directory");
    let output = with_folder(&["exec", "--stdin", "-", "-c", "cat; echo END; exit 3"]);
    assert_eq!((output.code, output.text().as_str()), (3, "END"), "the code is the task's: {output:?}");
    assert!(told(&output.stderr), "{output:?}");
    let output = with_folder(&["run", "--stdin", "-", "-c", "cat; echo END"]);
    assert!(output.code == 1 && told(&output.stderr), "{output:?}");
    assert_eq!(home.ended(&output.text())["status"], "succeeded");
}

#[test]
fn a_terminal_that_was_left_so_that_it_does_not_wait_is_typed_on_as_any_other() {
    let home = home();
    let line = "stty -echo; echo up; read -r line; echo \"got $line\"; exec cat";
    let mut seat = Seat::unwaiting(&home, (80, 24), &["exec", "--pty", "-c", line]);
    let up = seat.sees("up\r\n");
    seat.press(b"words\r");
    let _ = seat.sees_after(up, "got words\r\n");
    seat.press(b"\x1c");
    assert_eq!(seat.ends().0, 123);
    let id = home.submit(&[], "exec sleep 1000");
    let mut seat = Seat::unwaiting(&home, (80, 24), &["list", "--watch"]);
    let _ = seat.sees(&id);
    seat.press(b"q");
    assert_eq!(seat.ends().0, 0);
}

/// Has the shim of the last task stand still, and a daemon that has never heard it.
fn silence(home: &Home) -> u32 {
    let id = home.cli(["show", "@last", "--json"]).ok().json()["id"].as_str().expect("an id").to_owned();
    let shim = home.shim_pid(&id);
    freeze(shim);
    let daemon = home.kill_daemon();
    let _ = home.next_daemon(daemon);
    shim
}

/// A home whose daemon soon finds a shim again that goes on.
fn attentive() -> Home {
    let home = home();
    let _ = home.daemon_pid();
    std::fs::write(home.path().join("config.toml"), "[reconcile]\ninterval = \"1s\"\n").expect("a file");
    home
}

#[test]
fn a_shim_that_is_not_heard_holds_up_stdin_and_gets_all_of_it_and_its_end_when_it_goes_on() {
    let home = attentive();
    let (mut child, mut writer) = piped(&home, &["exec", "--stdin", "-", "-c", "cat; echo END"]);
    writer.write_all(b"one\n").unwrap();
    until(&mut child, "one\n");
    let shim = silence(&home);
    writer.write_all(b"two\n").unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut told = String::new();
    stderr.read_line(&mut told).unwrap();
    assert!(told.contains("does not answer; the input waits until it does (HM0303)"), "{told}");
    writer.write_all(b"three\n").unwrap();
    drop(writer);
    thaw(shim);
    until(&mut child, "two\nthree\nEND\n");
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_shim_that_is_not_heard_holds_up_what_is_typed_and_not_the_detach_keys() {
    let home = attentive();
    let line = "stty -echo; echo up; while read -r line; do echo \"got $line\"; done";
    for way in ["goes on", "is left"] {
        let mut seat = Seat::take(&home, (80, 24), &[], &["exec", "--pty", "-c", line]);
        let up = seat.sees("up\r\n");
        wait_for("the terminal to be taken", || seat.is_raw().then_some(()));
        let shim = silence(&home);
        seat.press(b"one\r");
        let told = seat.sees_after(up, "(HM0303)");
        let told = seat.sees_after(told, "next: ");
        let seen = seat.seen();
        let lone = seen[up..told].windows(2).any(|pair| pair[1] == b'\n' && pair[0] != b'\r');
        assert!(!lone, "{:?}", String::from_utf8_lossy(&seen[up..told]));
        seat.press(b"two\r");
        if way == "goes on" {
            thaw(shim);
            let one = seat.sees_after(told, "got one\r\n");
            let _ = seat.sees_after(one, "got two\r\n");
        }
        seat.press(b"\x1c");
        assert_eq!(seat.ends().0, 123, "{way}");
        thaw(shim);
    }
}
