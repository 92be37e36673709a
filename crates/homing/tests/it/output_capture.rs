//! What a task prints: every byte, in its place, whoever reads and however much it is.
#![expect(
    clippy::unwrap_used,
    reason = "in a test, a panic is the report; helpers outside of #[test] are tests too"
)]

use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use homing_engine::{Caller, Engine, OutputQuery};
use homing_model::Spec;
use homing_testkit::{Home, PATIENCE, drift, gate, wait_for};

const MIB: usize = 1 << 20;

/// Bytes without any pattern, and all values among them.
fn noise(len: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    std::iter::repeat_with(next).flat_map(u64::to_le_bytes).take(len).collect()
}

fn file(home: &Home, bytes: &[u8]) -> PathBuf {
    let path = home.scratch().join("noise");
    std::fs::write(&path, bytes).unwrap();
    path
}

/// Not `assert_eq`: nobody wants to read megabytes of difference.
fn assert_same(got: &[u8], want: &[u8]) {
    let differs = got.iter().zip(want).position(|(got, want)| got != want);
    assert_eq!((got.len(), differs), (want.len(), None), "length, and where the first difference is");
}

/// The most memory that a process has ever had, in KiB.
fn most_memory(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// The path of a task's output file, as it says itself.
fn output_file(home: &Home, id: &str) -> PathBuf {
    Path::new(home.task(id)["output"]["path"].as_str().unwrap()).to_owned()
}

#[test]
fn p7_binary_output_is_kept_byte_for_byte() {
    let home = super::home();
    let bytes = noise(3 * MIB + 7);
    file(&home, &bytes);
    let id = home.submit(&[], "cat noise");
    assert_eq!(home.ended(&id)["output"]["bytes"], bytes.len());
    assert_same(&home.output(&id), &bytes);
    assert_same(&home.cli(["output", &id]).ok().stdout, &bytes);
    assert_same(&std::fs::read(output_file(&home, &id)).unwrap(), &bytes);
}

#[test]
fn p7_a_line_of_100_mib_is_kept_whole_in_bounded_memory() {
    let home = super::home();
    let size = 100 * MIB;
    let id = home.submit(&["--stdin", "pipe"], &format!("head -c {size} /dev/zero | tr '\\0' x; read line"));
    let shim = home.shim_pid(&id);
    let file = output_file(&home, &id);
    wait_for("all of the line", || (std::fs::metadata(&file).ok()?.len() == size as u64).then_some(()));
    assert!(most_memory(shim) < 8 * 1024, "the shim had {} KiB", most_memory(shim));
    let _ = home.cli(["input", &id, "--eof"]).ok();
    assert_eq!(home.ended(&id)["output"]["bytes"], size);
    let output = home.output(&id);
    assert_eq!((output.len(), output.iter().all(|byte| *byte == b'x')), (size, true));
    let daemon = most_memory(home.daemon_pid());
    assert!(daemon < 64 * 1024, "the daemon had {daemon} KiB");
}

#[test]
fn p7_a_gibibyte_is_kept_whole_and_read_back_in_bounded_memory() {
    let home = super::home();
    let line = "seq 1 1000000000 | head -c 1073741824";
    let sum = |mut producer: Command| {
        let mut producer = producer.stdout(Stdio::piped()).spawn().unwrap();
        let output = producer.stdout.take().unwrap();
        let sum = Command::new("sha256sum").stdin(output).output().unwrap();
        assert!(producer.wait().unwrap().success());
        String::from_utf8(sum.stdout).unwrap()
    };
    let plain = |program: &str, arguments: &[&OsStr]| {
        let mut command = Command::new(program);
        command.args(arguments);
        command
    };
    let id = home.submit(&["--max-output", "2GiB"], line);
    let want = sum(plain("sh", &["-c".as_ref(), line.as_ref()]));
    let task = home.ended(&id);
    assert_eq!((&task["output"]["bytes"], &task["output"]["dropped"]), (&(1u64 << 30).into(), &0.into()));
    let mut reader = home.command();
    reader.args(["output", &id]);
    assert_eq!(sum(reader), want, "what is read out");
    let file = output_file(&home, &id);
    assert_eq!(sum(plain("cat", &[file.as_os_str()])), want, "what the file holds");
    let daemon = most_memory(home.daemon_pid());
    assert!(daemon < 64 * 1024, "the daemon had {daemon} KiB");
}

#[test]
fn p7_past_the_cap_the_head_and_the_tail_stay_at_their_offsets_and_the_gap_is_marked() {
    let home = super::home();
    let truth = noise(10 * MIB);
    file(&home, &truth);
    let id = home.submit(&["--max-output", "1MiB"], "cat noise");
    let task = home.ended(&id);
    assert_eq!(task["output"]["bytes"], truth.len());
    let dropped = task["output"]["dropped"].as_u64().unwrap();
    let (mut at, mut kept, mut gaps) = (0, 0, Vec::new());
    while at < truth.len() as u64 {
        let part = home.get(&format!("/v1/tasks/{id}/output?offset={at}"));
        let (offset, end) = (part.number("Homing-Offset"), part.number("Homing-End"));
        assert_eq!(part.number("Homing-Dropped"), dropped);
        assert_eq!(part.number("Homing-Gap"), offset - at);
        assert_eq!(end - offset, part.body.len() as u64);
        assert_same(&part.body, &truth[offset as usize..end as usize]);
        assert_eq!(part.header("Homing-Complete") == "true", end == truth.len() as u64);
        kept += end - offset;
        gaps.extend((offset > at).then_some((at, offset - at)));
        assert!(end > at, "the reader gets on");
        at = end;
    }
    assert_eq!(gaps, [(MIB as u64 / 2, dropped)], "one gap, after the head");
    assert_eq!(kept + dropped, truth.len() as u64);
    assert!(kept <= MIB as u64 && kept > 3 * MIB as u64 / 4, "{kept}");
    let shown = home.cli(["output", &id]).ok();
    let tail_at = MIB / 2 + dropped as usize;
    assert_same(&shown.stdout, &[&truth[..MIB / 2], &truth[tail_at..]].concat());
    assert!(shown.stderr.contains("not kept"), "{}", shown.stderr);
    let tail = home.get(&format!("/v1/tasks/{id}/output?tail=1000"));
    assert_same(&tail.body, &truth[truth.len() - 1000..]);
    // Plain files for any other tool.
    assert_same(&std::fs::read(output_file(&home, &id)).unwrap(), &truth[..MIB / 2]);
}

#[test]
fn a_gap_at_the_very_end_is_marked_before_the_end() {
    let home = super::home();
    let id = home.submit(&[], "printf 0123456789");
    let _ = home.ended(&id);
    // As a disk leaves it that was full until the end.
    std::fs::OpenOptions::new().write(true).open(output_file(&home, &id)).unwrap().set_len(4).unwrap();
    let look = |query: &str| {
        let part = home.get(&format!("/v1/tasks/{id}/output?{query}"));
        let numbers = ["Homing-Offset", "Homing-End", "Homing-Gap"].map(|name| part.number(name));
        (part.body.clone(), numbers, part.header("Homing-Complete") == "true")
    };
    assert_eq!(look("offset=0"), (b"0123".to_vec(), [0, 4, 0], false));
    assert_eq!(look("offset=4"), (Vec::new(), [10, 10, 6], true));
    assert_eq!(look("offset=4&stream=stdout"), (Vec::new(), [10, 10, 6], true));
    assert_eq!(look("offset=10"), (Vec::new(), [10, 10, 0], true));
    assert_eq!(look("tail=3"), (b"123".to_vec(), [1, 4, 0], true), "a tail is of what is kept");
    let follow = home.http("GET", &format!("/v1/tasks/{id}/follow"), &[], b"").whole().body;
    let follow = String::from_utf8(follow).unwrap();
    let events: Vec<_> = follow.lines().filter_map(|line| line.strip_prefix("event: ")).collect();
    assert_eq!(events, ["output", "gap", "end"], "{follow}");
    let shown = home.cli(["output", "-f", &id]).ok();
    assert!(shown.stdout == b"0123" && shown.stderr.contains("not kept"), "{}", shown.stderr);
}

#[test]
fn p7_a_follower_gets_every_byte_once() {
    let home = super::home();
    let bytes = noise(20 * MIB);
    file(&home, &bytes);
    let id = home.submit(&["--stdin", "pipe"], "read line; cat noise");
    let mut followers: Vec<_> = (0..2).map(|_| home.spawn(["output", "-f", "--raw", &id])).collect();
    let out = followers.iter_mut().map(|follower| follower.stdout.take().unwrap());
    let readers: Vec<_> = out
        .map(|mut out| {
            std::thread::spawn(move || {
                let mut seen = Vec::new();
                std::io::Read::read_to_end(&mut out, &mut seen).unwrap();
                seen
            })
        })
        .collect();
    let _ = home.cli(["input", &id, "go", "--enter"]).ok();
    for (follower, reader) in followers.iter_mut().zip(readers) {
        assert_same(&reader.join().unwrap(), &bytes);
        assert!(follower.wait().unwrap().success());
    }
    assert_eq!(home.ended(&id)["output"]["dropped"], 0);
}

#[test]
fn p7_output_of_a_grandchild_after_the_end_is_kept_too() {
    let home = super::home();
    let id = home.submit(&[], "mkfifo gate; (read line < gate; echo late; echo worse >&2) & echo early");
    let task = home.ended(&id);
    assert_eq!(
        (&task["status"], &task["outcome"]["survivors"][0]["name"]),
        (&"succeeded".into(), &"bash".into())
    );
    assert_eq!(home.output(&id), b"early\n");
    std::fs::File::options()
        .write(true)
        .open(home.scratch().join("gate"))
        .unwrap()
        .write_all(b"go\n")
        .unwrap();
    wait_for("the late words", || (home.output(&id).len() == 17).then_some(()));
    assert_eq!(home.cli(["output", &id, "--stderr"]).ok().stdout, b"worse\n");
    assert_eq!(home.cli(["output", &id, "--offset", "6"]).ok().stdout.len(), 11);
    assert_eq!(home.task(&id)["status"], "succeeded");
}

#[test]
fn a_grandchild_that_keeps_the_pipe_open_does_not_hold_up_the_end() {
    let home = super::home();
    // Until it executes its program, a child has its parent's name.
    let id =
        home.submit(&[], "sleep 1000 & until grep -q sleep /proc/$!/comm; do :; done; echo done; exit 4");
    let task = home.ended(&id);
    assert_eq!((&task["status"], &task["outcome"]["exit_code"]), (&"failed".into(), &4.into()));
    assert_eq!(task["outcome"]["survivors"][0]["name"], "sleep");
    assert_eq!(home.output(&id), b"done\n");
}

#[test]
fn p7_the_streams_are_kept_apart_and_in_order() {
    let home = super::home();
    let seen = |word: &str| format!("until grep -q {word} \"$HOMING_OUTPUT\"; do :; done");
    let line = format!("echo one; {}; echo two >&2; {}; echo three", seen("one"), seen("two"));
    let id = home.submit(&[], &line);
    let _ = home.ended(&id);
    assert_eq!(home.output(&id), b"one\ntwo\nthree\n");
    assert_eq!(home.cli(["output", &id, "--stderr"]).ok().stdout, b"two\n");
    assert_eq!(home.get(&format!("/v1/tasks/{id}/output?stream=stdout")).body, b"one\nthree\n");
    let index = home.get(&format!("/v1/tasks/{id}/output/index")).json();
    let spans: Vec<_> =
        index["spans"].as_array().unwrap().iter().map(|span| (&span["offset"], &span["stream"])).collect();
    let (out, err) = (&"stdout".into(), &"stderr".into());
    assert_eq!(spans, [(&0.into(), out), (&4.into(), err), (&8.into(), out)]);
    let times: Vec<_> =
        index["spans"].as_array().unwrap().iter().map(|span| span["at"].as_str().unwrap()).collect();
    assert!(times.is_sorted(), "{times:?}");
}

#[test]
fn much_on_a_stream_that_nobody_reads_blocks_nothing() {
    let home = super::home();
    let id = home.submit(&["--timeout", "20s"], "head -c 2000000 /dev/zero >&2; echo done");
    assert_eq!(home.ended(&id)["status"], "succeeded");
    assert_eq!(home.output(&id).len(), 2_000_005);
    assert_eq!(home.get(&format!("/v1/tasks/{id}/output?stream=stdout")).body, b"done\n");
}

#[test]
fn the_last_lines_a_part_and_the_times_can_be_asked_for() {
    let home = super::home();
    let id = home.submit(&[], "seq 1 1000; printf last");
    let _ = home.ended(&id);
    assert_eq!(home.cli(["output", &id, "--tail", "3"]).ok().stdout, b"999\n1000\nlast");
    assert_eq!(home.cli(["output", &id, "--tail", "0"]).ok().stdout, b"");
    assert_eq!(home.cli(["output", &id, "--offset", "0"]).ok().stdout, home.output(&id));
    assert_eq!(home.cli(["output", &id, "--offset", "3888"]).ok().stdout, b"1000\nlast");
    assert_eq!(home.cli(["output", &id, "--offset", "99999"]).ok().stdout, b"");
    let timed = home.cli(["output", &id, "--timestamps"]).ok().text();
    assert_eq!(timed.lines().count(), 1001);
    let year = home.task(&id)["started_at"].as_str().unwrap()[..4].to_owned();
    for (line, number) in timed.lines().zip(1..=1000) {
        assert!(line.starts_with(&year) && line.ends_with(&format!("Z {number}")), "{line}");
    }
}

#[test]
fn split_characters_come_whole_to_a_terminal_and_as_they_are_to_a_pipe() {
    let home = super::home();
    let line = r#"printf '\xe2\x82'; until [ -s "$HOMING_OUTPUT" ]; do :; done; printf '\xac\xff\n'"#;
    let id = home.submit(&[], line);
    let _ = home.ended(&id);
    assert_eq!(home.output(&id), b"\xe2\x82\xac\xff\n");
    assert_eq!(home.on_terminal(["output", &id]), "€\u{fffd}\n".as_bytes());
    assert_eq!(home.on_terminal(["output", "-f", &id]), "€\u{fffd}\n".as_bytes());
    assert_eq!(home.on_terminal(["output", "--raw", &id]), b"\xe2\x82\xac\xff\n");
}

#[test]
fn a_terminal_is_never_given_what_it_would_obey() {
    let home = super::home();
    let nasty = "\u{1b}]0;owned\u{7}\u{1b}[2J\u{1b}[6nsafe\r\u{1b}cEVIL\u{9b}31m\u{202e}\u{8}\u{7f}";
    let id = home.submit(&[], &format!("printf '%s\\n' '{nasty}'"));
    let _ = home.ended(&id);
    let bytes = format!("{nasty}\n").into_bytes();
    assert_eq!(home.output(&id), bytes);
    assert_eq!(home.cli(["output", &id]).ok().stdout, bytes, "a program gets it as it is");
    assert_eq!(home.on_terminal(["output", "--raw", &id]), bytes, "so does whoever asks for it");
    for arguments in [&["output", &id][..], &["output", "-f", &id], &["list", "--all"], &["show", &id]] {
        let text = String::from_utf8(home.on_terminal(arguments)).unwrap();
        // On a line of its own a task may go back, as far as the beginning: progress bars and spinners do.
        let own_line = arguments[0] == "output";
        let harmless = |c: char| c == '\n' || (matches!(c, '\r' | '\u{8}') && own_line);
        let harmful = |c: &char| (c.is_control() && !harmless(*c)) || *c == '\u{202e}';
        assert_eq!(text.chars().find(harmful), None, "{arguments:?}: {text:?}");
        assert!(text.contains("safe") && text.contains("EVIL"), "{arguments:?}: {text:?}");
    }
}

#[test]
fn a_spinner_turns_on_a_terminal_but_never_over_the_time_before_it() {
    let home = super::home();
    let id = home.submit(&[], r"printf '|\b/\b\b\b\b\bX\b\n\bdone\b'");
    let _ = home.ended(&id);
    let shown = |words: &[&str]| String::from_utf8(home.on_terminal(words)).unwrap();
    assert_eq!(shown(&["output", &id]), "|\u{8}/\u{8}X\ndone");
    let timed = shown(&["output", "-t", &id]);
    assert!(timed.contains("Z |\u{8}/\u{8}X\n") && timed.ends_with("Z done"), "{timed:?}");
}

#[test]
fn a_progress_bar_rewrites_its_line_on_a_terminal_but_never_the_time_before_it() {
    let home = super::home();
    let id = home.submit(&[], r"printf '10%%\r100%%\r\ndone\r'");
    let _ = home.ended(&id);
    let shown = |words: &[&str]| String::from_utf8(home.on_terminal(words)).unwrap();
    assert_eq!(shown(&["output", &id]), "10%\r100%\ndone");
    assert_eq!(shown(&["output", "-f", &id]), "10%\r100%\ndone");
    let timed = shown(&["output", "-t", &id]);
    let states: Vec<_> = timed.split(['\r', '\n']).collect();
    assert_eq!(states.len(), 3, "{timed:?}");
    for (state, text) in states.iter().zip(["10%", "100%", "done"]) {
        assert!(state.len() == 25 + text.len() && state.ends_with(&format!("Z {text}")), "{timed:?}");
    }
    assert_eq!(home.cli(["output", &id]).ok().stdout, b"10%\r100%\r\ndone\r", "a program gets it as it is");
}

#[tokio::test]
async fn a_follower_far_ahead_does_not_keep_another_waiting() {
    let home = super::home();
    let engine = Engine::builder(home.path()).helper(home.program().into()).open().await.unwrap();
    let line = format!("cd {}; {}; echo first; sleep 300", home.scratch().display(), gate("say"));
    let spec = Spec { shell: Some(line.into()), ..Spec::default() };
    let id = engine.submit(spec, Caller::default(), None).await.unwrap().task.id;
    let follow = |offset| {
        let (engine, id) = (engine.clone(), id.clone());
        let wait = Some(Duration::from_secs(3_600));
        let query = OutputQuery { offset: Some(offset), limit: 100, wait, ..OutputQuery::default() };
        tokio::spawn(async move { engine.read_output(&id, query).await })
    };
    let near = follow(0);
    tokio::task::spawn_blocking(|| drift(Duration::from_millis(100))).await.unwrap();
    let far = follow(1 << 20);
    tokio::task::spawn_blocking(|| drift(Duration::from_millis(200))).await.unwrap();
    home.open("say");
    let part =
        tokio::time::timeout(PATIENCE, near).await.expect("what was printed is seen").unwrap().unwrap();
    assert_eq!(part.bytes, b"first\n");
    far.abort();
}
