//! What a task reads: nothing, a file, a pipe that is written to later, or a terminal.

use std::io::Write;
use std::process::Stdio;
use std::time::Duration;

use homing_testkit::{Home, drift, freeze, thaw, wait_for};

use super::home;

fn until_output(home: &Home, id: &str, part: &str) {
    wait_for(&format!("{part:?} in the output"), || {
        String::from_utf8_lossy(&home.output(id)).contains(part).then_some(())
    });
}

#[test]
fn without_stdin_a_task_reads_the_end_at_once() {
    let home = home();
    let id = home.submit(&[], "cat; echo end");
    assert_eq!(home.ended(&id)["status"], "succeeded");
    assert_eq!(home.output(&id), b"end\n");
    let sent = home.cli(["input", &id, "x"]);
    assert!(sent.code == 1 && sent.stderr.contains("HM0006"), "{}", sent.stderr);
}

#[test]
fn a_live_task_without_a_pipe_refuses_input_and_says_how_to_get_one() {
    let home = home();
    let id = home.submit(&[], "sleep 300");
    let _ = home.until_status(&id, "running");
    let sent = home.cli(["input", &id, "x"]);
    assert!(
        sent.code == 1 && sent.stderr.contains("HM0007") && sent.stderr.contains("pipe"),
        "{}",
        sent.stderr
    );
}

#[test]
fn a_file_is_read_byte_for_byte() {
    let home = home();
    let bytes: Vec<u8> = (0..300_000_u32).flat_map(u32::to_le_bytes).collect();
    std::fs::write(home.scratch().join("in"), &bytes).unwrap();
    let id = home.submit(&["--stdin", "in"], "cat");
    assert_eq!(home.ended(&id)["status"], "succeeded");
    assert!(home.output(&id) == bytes);
}

#[test]
fn a_file_that_is_not_there_is_a_start_failure() {
    let home = home();
    let output = home.cli(["run", "--wait", "--stdin", "missing", "-c", "echo run >> ran"]);
    assert!(output.code == 126 && output.stderr.contains("missing"), "{} {}", output.code, output.stderr);
    assert_eq!(home.truth("ran"), "");
}

#[test]
fn a_pipe_is_written_in_order_and_closed_when_asked() {
    let home = home();
    let id = home.submit(&["--stdin", "pipe"], "while read -r line; do echo \"got $line\"; done; echo end");
    home.does(["input", &id, "one", "--enter"]);
    until_output(&home, &id, "got one\n");
    home.does(["input", &id, "tw"]);
    home.does(["input", &id, "o\n-x", "--enter"]);
    home.does(["input", &id, "--eof"]);
    assert_eq!(home.ended(&id)["status"], "succeeded");
    assert_eq!(home.output(&id), b"got one\ngot two\ngot -x\nend\n");
}

#[test]
fn input_that_reaches_the_shim_together_with_the_launch_is_not_lost() {
    let home = home();
    let keeper = home.keeper_pid();
    freeze(keeper);
    let id = home.submit(&["--stdin", "pipe"], "cat");
    let sending = home.spawn(["input", &id, "early", "--eof"]);
    drift(Duration::from_millis(100));
    thaw(keeper);
    assert!(sending.wait_with_output().unwrap().status.success());
    assert_eq!(home.ended(&id)["status"], "succeeded");
    assert_eq!(home.output(&id), b"early");
}

#[test]
fn p3_a_pipe_stays_open_when_the_daemon_is_killed() {
    let home = home();
    let id = home.submit(&["--stdin", "pipe"], "while read -r line; do echo \"got $line\"; done; exit 3");
    home.does(["input", &id, "before", "--enter"]);
    until_output(&home, &id, "got before\n");
    home.kill_at_once(&[home.daemon_pid(), home.keeper_pid()]);
    home.does(["input", &id, "after", "--enter", "--eof"]);
    assert_eq!(home.ended(&id)["outcome"]["exit_code"], 3);
    assert_eq!(home.output(&id), b"got before\ngot after\n");
}

#[test]
fn input_after_its_end_is_refused() {
    let home = home();
    let id = home.submit(&["--stdin", "pipe"], "cat > taken; echo end; sleep 300");
    home.does(["input", &id, "last", "--eof"]);
    until_output(&home, &id, "end");
    assert_eq!(home.cli(["input", &id, "more"]).code, 1);
    assert_eq!(home.truth("taken"), "last");
}

#[test]
fn the_callers_own_stdin_reaches_the_task_whole() {
    let home = home();
    let bytes: Vec<u8> = (0..400_000_u32).flat_map(u32::to_be_bytes).collect();
    let mut command = home.command();
    command.args(["run", "--stdin", "-", "--follow", "-c", "cat > copy; echo copied"]);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let written = bytes.clone();
    let writer = std::thread::spawn(move || stdin.write_all(&written).unwrap());
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    assert_eq!((output.status.code(), output.stdout), (Some(0), b"copied\n".to_vec()));
    assert!(std::fs::read(home.scratch().join("copy")).unwrap() == bytes);
}

#[test]
fn p3_what_is_piped_in_comes_whole_and_once_though_the_daemon_is_killed_under_it() {
    let home = home();
    let daemon = home.daemon_pid();
    for words in [
        &["exec", "--stdin", "-", "-c", "cat > copy; echo copied"][..],
        &["run", "--stdin", "-", "--follow", "-c", "cat > copy; echo copied"],
    ] {
        let bytes: Vec<u8> = (0..400_000_u32).flat_map(u32::to_be_bytes).collect();
        let mut command = home.command();
        let mut child = command
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let copy = home.scratch().join("copy");
        let copied = || std::fs::metadata(&copy).map_or(0, |found| found.len());
        let quarter = bytes.len() / 4;
        for (number, part) in bytes.chunks(quarter).enumerate() {
            stdin.write_all(part).unwrap();
            // Whatever is under way then: written, answered, or neither.
            wait_for("the first of it", || (copied() > (number * quarter) as u64).then_some(()));
            home.kill(home.daemon_pid());
        }
        drop(stdin);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.stdout, b"copied\n");
        assert!(std::fs::read(&copy).unwrap() == bytes, "{words:?}");
        std::fs::remove_file(copy).unwrap();
    }
    assert_ne!(home.daemon_pid(), daemon);
}

#[test]
fn a_terminal_is_a_terminal_on_all_three_and_has_a_size() {
    let home = home();
    let line = "[ -t 0 ] && [ -t 1 ] && [ -t 2 ] && echo all; stty size; tty; echo to-stderr >&2; : < /dev/tty && echo controlling";
    let id = home.submit(&["--pty"], line);
    assert_eq!(home.ended(&id)["status"], "succeeded");
    let output = String::from_utf8(home.output(&id)).unwrap();
    let lines: Vec<_> = output.lines().collect();
    assert_eq!(
        (lines[0], lines[1], lines[3], lines[4]),
        ("all", "24 80", "to-stderr", "controlling"),
        "{output}"
    );
    assert!(lines[2].starts_with("/dev/pts/"), "{output}");
}

#[test]
fn a_terminal_takes_lines_and_its_end_and_the_exit_code_is_kept() {
    let home = home();
    let id = home.submit(&["--pty"], "stty -echo; echo ready; read -r a; echo \"a=$a\"; cat; exit 14");
    until_output(&home, &id, "ready");
    home.does(["input", &id, "hello", "--enter"]);
    until_output(&home, &id, "a=hello");
    home.does(["input", &id, "--eof"]);
    assert_eq!(home.ended(&id)["outcome"]["exit_code"], 14);
    assert_eq!(home.output(&id), b"ready\r\na=hello\r\n");
}

#[test]
fn a_terminal_passes_ctrl_c_on_as_a_signal() {
    let home = home();
    let id =
        home.submit(&["--pty"], "trap 'echo int; exit 15' INT; echo ready; while :; do sleep 0.01; done");
    until_output(&home, &id, "ready");
    home.does(["input", &id, "\u{3}"]);
    assert_eq!(home.ended(&id)["outcome"]["exit_code"], 15);
}

#[test]
fn p3_a_terminal_survives_daemon_and_keeper() {
    let home = home();
    let id = home.submit(&["--pty"], "stty -echo; echo ready; read -r a; echo \"a=$a\"; exit 4");
    until_output(&home, &id, "ready");
    home.kill_at_once(&[home.daemon_pid(), home.keeper_pid()]);
    home.does(["input", &id, "still here", "--enter"]);
    assert_eq!(home.ended(&id)["outcome"]["exit_code"], 4);
    until_output(&home, &id, "a=still here");
}

#[test]
fn what_is_piped_in_with_the_end_of_the_input_is_sent_before_it() {
    let home = home();
    let id = home.submit(&["--stdin", "pipe"], "cat; echo end");
    std::fs::write(home.scratch().join("in"), "a\nb\n").unwrap();
    let mut command = home.command();
    command.args(["input", &id, "--eof", "--json"]);
    let sent = command.stdin(std::fs::File::open(home.scratch().join("in")).unwrap()).output().unwrap();
    assert_eq!(String::from_utf8(sent.stdout).unwrap(), "{\"written\":4}\n");
    assert_eq!(home.ended(&id)["status"], "succeeded");
    assert_eq!(home.output(&id), b"a\nb\nend\n");
}

#[test]
fn a_pipe_that_does_not_end_is_told_of_before_the_input_is_closed() {
    let home = home();
    let id = home.submit(&["--stdin", "pipe"], "cat; echo end");
    let mut command = home.command();
    command.args(["input", &id, "--eof"]).stdin(Stdio::piped()).stderr(Stdio::piped());
    let mut call = command.spawn().unwrap();
    let mut stdin = call.stdin.take().unwrap();
    stdin.write_all(b"a\n").unwrap();
    until_output(&home, &id, "a\n");
    let mut told = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(call.stderr.take().unwrap()), &mut told)
        .unwrap();
    assert!(told.contains("once this command's own stdin has ended"), "{told}");
    drop(stdin);
    assert!(call.wait().unwrap().success());
    let _ = home.ended(&id);
    assert_eq!(home.output(&id), b"a\nend\n");
}

#[test]
fn p7_a_command_that_lets_go_of_its_terminal_and_opens_it_again_loses_nothing() {
    let home = home();
    let line = "echo first; exec </dev/null >/dev/null 2>&1; until [ -e go ]; do sleep 0.01; done; seq 1 20000 > /dev/tty; exit 7";
    let id = home.submit(&["--pty"], line);
    wait_for("the first line", || (!home.output(&id).is_empty()).then_some(()));
    std::fs::write(home.scratch().join("go"), b"").unwrap();
    let task = home.ended(&id);
    assert_eq!(task["outcome"]["exit_code"], 7);
    let text = String::from_utf8(home.output(&id)).unwrap();
    assert!(text.starts_with("first") && text.trim_end().ends_with("20000"), "{} bytes", text.len());
    assert_eq!(text.lines().count(), 20_001);
}

#[test]
fn keys_by_name_are_what_a_terminal_would_send() {
    let home = home();
    let id = home.submit(&["--pty"], "stty raw -echo; echo ready; head -c 8 > typed; exit 6");
    until_output(&home, &id, "ready");
    home.does(["input", &id, "a", "--keys", "ctrl-c,up,alt-x,enter"]);
    assert_eq!(home.ended(&id)["outcome"]["exit_code"], 6);
    assert_eq!(home.truth("typed"), "a\u{3}\u{1b}[A\u{1b}x\r");
    let wrong = home.cli(["input", &id, "--keys", "hyper-x"]);
    assert!(wrong.code == 2 && wrong.stderr.contains("there is no key `hyper-x`"), "{}", wrong.stderr);
}
