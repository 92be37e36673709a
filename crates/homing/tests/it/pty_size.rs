//! The size of a task's terminal: that of whoever asks for the task, from the first byte on.

use homing_testkit::wait_for;

use super::seat::Seat;

#[test]
fn a_task_with_a_terminal_begins_at_the_size_of_whoever_submits_it() {
    let home = super::home();
    let _ = home.cli(["daemon", "start"]).ok();
    let line = "stty size; printf '%s.\\n' done";
    let seat = Seat::take(&home, (132, 43), &[], &["run", "--pty", "--name", "large", "-c", line]);
    let (code, seen) = seat.ends();
    assert_eq!(code, 0);
    let id = String::from_utf8(seen).unwrap().lines().next().unwrap_or_default().trim().to_owned();
    let _ = home.ended(&id);
    assert_eq!(String::from_utf8(home.output(&id)).unwrap(), "43 132\r\ndone.\r\n");
    // Where nobody sits at a terminal it has the usual one.
    let id = home.submit(&["--pty"], "stty size");
    let _ = home.ended(&id);
    assert_eq!(String::from_utf8(home.output(&id)).unwrap(), "24 80\r\n");
}

#[test]
fn a_first_size_is_what_the_api_says_and_another_one_is_refused() {
    let home = super::home();
    let _ = home.cli(["daemon", "start"]).ok();
    let spec = |cols: u64, pty: bool| serde_json::json!({ "shell": "stty size", "pty": pty, "pty_size": { "cols": cols, "rows": 50 } });
    let task = home.post("/v1/tasks", &spec(200, true)).json();
    assert_eq!(task["pty"], true);
    let id = task["id"].as_str().unwrap().to_owned();
    let _ = home.ended(&id);
    assert_eq!(String::from_utf8(home.output(&id)).unwrap(), "50 200\r\n");
    for wrong in [spec(0, true), spec(1_001, true), spec(80, false)] {
        let refused = home.post("/v1/tasks", &wrong);
        assert_eq!(refused.json()["code"], "HM0003", "{wrong}");
    }
}

#[test]
fn a_terminal_in_the_foreground_follows_the_one_that_it_is_seen_on() {
    let home = super::home();
    let line =
        "trap 'stty size' WINCH; trap 'exit 7' TERM; stty size; while :; do sleep 60 & wait; kill $!; done";
    let mut seat = Seat::take(&home, (100, 30), &[], &["exec", "--pty", "-c", line]);
    let begun = seat.sees("30 100\r\n");
    seat.resize((90, 20));
    let then = seat.sees_after(begun, "20 90\r\n");
    // Also after the daemon died, and what is typed still arrives.
    let old = home.kill_daemon();
    let _ = home.next_daemon(old);
    seat.resize((70, 10));
    let then = seat.sees_after(then, "10 70\r\n");
    seat.press(b"words");
    let _ = seat.sees_after(then, "words");
    let running = home.cli(["list", "--status", "running", "--json"]).ok().json();
    let id = running["items"][0]["id"].as_str().unwrap().to_owned();
    let _ = home.cli(["stop", &id]).ok();
    let (code, _) = seat.ends();
    assert_eq!(code, 122);
}

#[test]
fn keys_by_name_come_in_the_form_that_the_program_asked_for() {
    let home = super::home();
    let read = "dd bs=1 count=6 2>/dev/null | od -An -tx1";
    let line = format!(
        "stty -icanon -echo; printf '\\033[?1happlication '; {read}; printf '\\033[?1lusual '; {read}"
    );
    let id = home.submit(&["--pty"], &line);
    let printed = |words: &str| {
        wait_for(words, || String::from_utf8_lossy(&home.output(&id)).contains(words).then_some(()));
    };
    printed("application ");
    let _ = home.cli(["input", &id, "--keys", "up,home"]).ok();
    printed("1b 4f 41 1b 4f 48");
    printed("usual ");
    let _ = home.cli(["input", &id, "--keys", "up,home"]).ok();
    printed("1b 5b 41 1b 5b 48");
    // What is no key is never changed.
    let _ = home.ended(&id);
    let id = home.submit(&["--pty"], &line);
    wait_for("the program", || {
        String::from_utf8_lossy(&home.output(&id)).contains("application").then_some(())
    });
    let _ = home.cli(["input", &id, "\u{1b}[A\u{1b}[H"]).ok();
    wait_for("the very bytes", || {
        String::from_utf8_lossy(&home.output(&id)).contains("1b 5b 41 1b 5b 48").then_some(())
    });
}
