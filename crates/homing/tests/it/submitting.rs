//! What `homing run` says of itself: input that nobody takes, an id that cannot be printed, a Ctrl-C in the middle.
#![expect(
    clippy::unwrap_used,
    reason = "in a test, a panic is the report; helpers outside of #[test] are tests too"
)]

use std::fs::File;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use homing_testkit::{Home, freeze, wait_for};
use rustix::process::{Pid, Signal, kill_process};

const UNREAD: &str = "the task gets none of it";

/// A call of `run`, with this on its input.
fn run(home: &Home, arguments: &[&str], input: impl Into<Stdio>) -> homing_testkit::Output {
    Home::finish(home.command().arg("run").args(arguments).stdin(input))
}

/// A pipe with these bytes in it, and no more to come.
fn pipe(bytes: &[u8]) -> std::io::PipeReader {
    let (reader, mut writer) = std::io::pipe().unwrap();
    writer.write_all(bytes).unwrap();
    reader
}

#[test]
fn input_that_nobody_takes_is_said_and_left_where_it_is() {
    let home = super::home();
    let file = home.scratch().join("data");
    std::fs::write(&file, "one\ntwo\n").unwrap();
    let reader = pipe(b"data");
    let mut left = reader.try_clone().unwrap();
    for arguments in [&["--", "true"][..], &["--wait", "--", "true"], &["--follow", "--", "true"]] {
        let piped = run(&home, arguments, reader.try_clone().unwrap()).ok();
        assert!(piped.stderr.contains(UNREAD) && piped.stderr.contains("`--stdin -`"), "{piped:?}");
        let redirected = run(&home, arguments, File::open(&file).unwrap()).ok();
        assert_eq!(redirected.stderr.matches(UNREAD).count(), 1, "{redirected:?}");
    }
    drop(reader);
    let mut text = String::new();
    left.read_to_string(&mut text).unwrap();
    assert_eq!(text, "data", "nothing of it was read");
    for said in [["--stdin", "none"], ["--stdin", "pipe"], ["--stdin", "-"]] {
        let told = run(&home, &[&said[..], &["--", "true"]].concat(), pipe(b"data")).ok();
        assert!(!told.stderr.contains(UNREAD), "{told:?}");
    }
    let (empty, writer) = std::io::pipe().unwrap();
    for input in [Stdio::null(), empty.into(), pipe(b"").into(), File::open("/dev/zero").unwrap().into()] {
        let quiet = run(&home, &["--", "true"], input).ok();
        assert!(!quiet.stderr.contains(UNREAD), "{quiet:?}");
    }
    drop(writer);
}

#[test]
fn the_input_of_a_loop_is_the_loops_and_nothing_is_said_or_taken_of_it() {
    let home = super::home();
    let loops = [
        "while read -r x; do \"$HOMING\" run -- echo \"$x\" || exit 9; echo \"$x\"; done < list",
        "cat list | while read -r x; do \"$HOMING\" run -- echo \"$x\" || exit 9; echo \"$x\"; done",
        "find . -name list -exec \"$HOMING\" run -- echo {} \\; ; cat",
    ];
    std::fs::write(home.scratch().join("list"), "one\ntwo\nthree\n").unwrap();
    for shell in ["sh", "bash"] {
        for line in loops {
            let mut command = Command::new(shell);
            command.args(["-c", line]).current_dir(home.scratch()).env("HOMING", home.program());
            command.env("HOMING_HOME", home.path()).stdin(File::open(home.scratch().join("list")).unwrap());
            let looped = Home::finish(&mut command).ok();
            let words: Vec<_> =
                looped.text().lines().map(str::to_owned).filter(|line| !line.starts_with("t-")).collect();
            assert_eq!(words, ["one", "two", "three"], "{shell}: {line}");
            assert!(!looped.stderr.contains(UNREAD), "{shell}: {line}: {looped:?}");
        }
    }
}

#[test]
fn an_id_that_cannot_be_printed_is_told_with_the_error() {
    let home = super::home();
    let full = || File::options().write(true).open("/dev/full").unwrap();
    for (arguments, code) in [
        (&["run", "-c", "true"][..], 1),
        (&["run", "--json", "-c", "true"], 1),
        (&["run", "--wait", "-c", "true"], 125),
        (&["track"], 1),
        (&["rerun", "--json", "first"], 1),
        (&["rerun", "first"], 1),
    ] {
        if arguments[0] == "rerun" {
            let _ = home.cli(["run", "--name", "first", "-c", "true"]).ok();
        }
        let mut command = home.command();
        let child = command.args(arguments).stdout(full()).stderr(Stdio::piped()).spawn().unwrap();
        let lost = child.wait_with_output().unwrap();
        let said = String::from_utf8(lost.stderr).unwrap();
        assert_eq!(lost.status.code(), Some(code), "{said}");
        let id = home.task("@last")["id"].as_str().unwrap().to_owned();
        assert!(said.contains("standard output cannot be written") && said.contains(&id), "{said}");
    }
}

#[test]
fn input_is_passed_on_though_the_id_cannot_be_printed() {
    let home = super::home();
    let full = File::options().write(true).open("/dev/full").unwrap();
    let mut command = home.command();
    command.args(["run", "--stdin", "-", "--", "cat"]).stdin(pipe(b"all of it")).stdout(full);
    let lost = command.stderr(Stdio::piped()).spawn().unwrap().wait_with_output().unwrap();
    assert_eq!(lost.status.code(), Some(1), "{lost:?}");
    let id = home.task("@last")["id"].as_str().unwrap().to_owned();
    assert!(String::from_utf8(lost.stderr).unwrap().contains(&id));
    assert_eq!(home.ended(&id)["status"], "succeeded");
    assert_eq!(home.output(&id), b"all of it");
}

#[test]
fn ctrl_c_while_the_input_is_read_says_what_was_submitted() {
    let home = super::home();
    let _ = home.daemon_pid();
    let (input, mut typed) = std::io::pipe().unwrap();
    let mut command = home.command();
    command
        .args(["run", "--stdin", "-", "--", "cat"])
        .stdin(input)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    typed.write_all(b"half").unwrap();
    let id = wait_for("the task with its first bytes", || {
        let task = home.cli(["show", "@last", "--json"]);
        let id = (task.code == 0).then(|| task.json()["id"].as_str().map(str::to_owned))??;
        (home.output(&id) == b"half").then_some(id)
    });
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let left = child.wait_with_output().unwrap();
    assert_eq!(left.status.code(), Some(130), "{left:?}");
    assert_eq!(String::from_utf8(left.stdout).unwrap().trim(), id);
    let said = String::from_utf8(left.stderr).unwrap();
    assert!(
        said.contains(&format!("{id} goes on")) && said.contains(&format!("`homing input {id} --eof`")),
        "{said}"
    );
    drop(typed);
    let _ = home.until_status(&id, "running");
    let _ = home.cli(["input", &id, "--eof"]).ok();
    assert_eq!(home.ended(&id)["status"], "succeeded");
}

#[test]
fn ctrl_c_before_anybody_answers_says_that_it_is_not_known() {
    let home = super::home();
    let daemon = home.daemon_pid();
    let stopped =
        |signal| kill_process(Pid::from_raw(i32::try_from(daemon).unwrap()).unwrap(), signal).unwrap();
    stopped(Signal::STOP);
    let mut command = home.command();
    let (input, typed) = std::io::pipe().unwrap();
    command
        .args(["run", "--stdin", "-", "--", "cat"])
        .stdin(input)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    wait_for("Ctrl-C to be caught", || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).ok()?;
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"))?;
        (u64::from_str_radix(caught.trim(), 16).ok()? & 0b10 != 0).then_some(())
    });
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let left = child.wait_with_output();
    stopped(Signal::CONT);
    let left = left.unwrap();
    drop(typed);
    assert_eq!(left.status.code(), Some(130), "{left:?}");
    assert!(left.stdout.is_empty());
    let said = String::from_utf8(left.stderr).unwrap();
    assert!(said.contains("interrupted before the daemon answered"), "{said}");
}

/// Whether a process has a connection: a descriptor beyond the standard three that is a socket.
pub(crate) fn is_connected(pid: u32) -> bool {
    let open = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    open.filter(|fd| fd.file_name().to_str().is_some_and(|number| number.len() > 1 || number > "2"))
        .filter_map(|fd| std::fs::read_link(fd.path()).ok())
        .any(|target| target.as_os_str().as_encoded_bytes().starts_with(b"socket:"))
}

#[test]
fn p10_a_submit_whose_daemon_dies_before_it_answers_is_one_task() {
    let home = super::home();
    for before in 0..5 {
        let daemon = home.daemon_pid();
        freeze(daemon);
        let child = home.spawn(["run", "--", "sh", "-c", "echo ran >> ran"]);
        wait_for("the question", || is_connected(child.id()).then_some(()));
        home.kill(daemon);
        let told = child.wait_with_output().unwrap();
        assert_eq!(told.status.code(), Some(0), "{told:?}");
        let id = String::from_utf8(told.stdout).unwrap().trim().to_owned();
        assert_eq!(home.ended(&id)["status"], "succeeded");
        let tasks = home.cli(["list", "--json"]).ok().json();
        assert_eq!(tasks["items"].as_array().map(Vec::len), Some(before + 1), "{tasks}");
    }
    assert_eq!(home.truth("ran").lines().count(), 5);
}

/// A home whose socket hands everything on to another's, and loses the first answer to a submit.
fn forgetful(home: &Home) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o700)).unwrap();
    let listener = UnixListener::bind(folder.path().join("homing.sock")).unwrap();
    let (real, lost) = (home.path().join("homing.sock"), Arc::new(AtomicBool::new(false)));
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let (mut client, mut daemon) = (client.unwrap(), UnixStream::connect(&real).unwrap());
            let (mut asks, mut asked) = (client.try_clone().unwrap(), daemon.try_clone().unwrap());
            std::thread::spawn(move || {
                let _ = std::io::copy(&mut asks, &mut asked);
                let _ = asked.shutdown(Shutdown::Both);
            });
            let lost = Arc::clone(&lost);
            std::thread::spawn(move || {
                let mut answer = vec![0; 1 << 16];
                while let Ok(count @ 1..) = daemon.read(&mut answer) {
                    let loses = answer.starts_with(b"HTTP/1.1 201") && !lost.swap(true, Ordering::Relaxed);
                    if loses || client.write_all(&answer[..count]).is_err() {
                        break;
                    }
                }
                let _ = client.shutdown(Shutdown::Both);
                let _ = daemon.shutdown(Shutdown::Both);
            });
        }
    });
    folder
}

#[test]
fn p10_a_submit_whose_answer_is_lost_is_answered_again_as_if_it_were_the_first() {
    let home = super::home();
    let _ = home.daemon_pid();
    for key in [None, Some("--key=build")] {
        let between = forgetful(&home);
        let mut command = home.command();
        command.env("HOMING_HOME", between.path()).args(["run", "--stdin", "-"]).args(key);
        let told = Home::finish(command.args(["--", "cat"]).stdin(pipe(b"hello\n"))).ok();
        assert!(!told.stderr.contains("joined"), "{}", told.stderr);
        assert_eq!(home.ended(&told.text())["status"], "succeeded");
        assert_eq!(home.output(&told.text()), b"hello\n");
    }
    assert_eq!(home.cli(["list", "--json"]).ok().json()["items"].as_array().map(Vec::len), Some(2));
}

#[test]
fn a_command_without_standard_descriptors_gets_none_of_another_kind() {
    let home = super::home();
    let id = home.submit(&[], "sleep 600");
    let mut shell = Command::new("sh");
    shell.args(["-c", "exec \"$HOMING\" wait \"$ID\" <&- >&- 2>&-"]).env("HOMING", home.program());
    let mut waiting = shell.env("ID", &id).env("HOMING_HOME", home.path()).spawn().unwrap();
    let pid = waiting.id();
    wait_for("the waiter", || is_connected(pid).then_some(()));
    for descriptor in 0..3 {
        let target = std::fs::read_link(format!("/proc/{pid}/fd/{descriptor}")).unwrap();
        assert_eq!(target, std::path::Path::new("/dev/null"), "{descriptor}");
    }
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap().trim();
    let pipe = 1_u64 << (Signal::PIPE.as_raw() - 1);
    assert_ne!(u64::from_str_radix(ignored, 16).unwrap() & pipe, 0, "a write that nobody reads is an error");
    let _ = home.cli(["stop", &id]).ok();
    assert_eq!(waiting.wait().unwrap().code(), Some(122));
}

#[test]
fn a_pipe_that_nobody_writes_to_is_no_input() {
    let home = super::home();
    let pipe = home.scratch().join("pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    let name = pipe.to_str().unwrap().to_owned();
    let failed = home.cli(["run", "--wait", "--stdin", &name, "--", "cat"]);
    assert_eq!(failed.code, 126, "{}", failed.stderr);
    assert!(failed.stderr.contains("nobody writes to the pipe"), "{}", failed.stderr);
    // Both ends: it is opened without anybody else.
    let mut writer = File::options().read(true).write(true).open(&pipe).unwrap();
    writer.write_all(b"hello\n").unwrap();
    let id = home.cli(["run", "--stdin", &name, "--", "head", "-n1"]).ok().text();
    assert_eq!(home.ended(&id)["status"], "succeeded");
    assert_eq!(home.output(&id), b"hello\n");
}
