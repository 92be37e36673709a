//! What is piped into `exec` reaches the task, whatever is the matter with the pipe, the shim or the one who reads it.

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Stdio};

use homing_testkit::Home;
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
fn piped(home: &Home, words: &[&str]) -> (Child, std::io::PipeWriter, std::io::PipeReader) {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    let mut command = home.command();
    command.args(words).stdin(reader.try_clone().expect("a pipe"));
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary runs");
    (child, writer, reader)
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
