//! `list --watch`: right as things happen, through a crash of the daemon, and the terminal given back on every way out.

use homing_testkit::wait_for;

use super::seat::Seat;

const ENTERED: &str = "\u{1b}[?1049h";
const LEFT: &str = "\u{1b}[?25h\u{1b}[?1049l";

fn ends_in_order(way: &str, seat: Seat, code: i32) {
    let (ended, seen) = seat.ends();
    let seen = String::from_utf8_lossy(&seen);
    assert_eq!(ended, code, "{way}: {seen:?}");
    assert!(seen.ends_with(LEFT), "{way}: the terminal is given back, and that is the last of it: {seen:?}");
    assert_eq!(seen.matches(ENTERED).count(), 1, "{way}: {seen:?}");
}

#[test]
fn the_list_follows_what_happens_and_a_key_ends_it() {
    let home = super::home();
    let _ = home.daemon_pid();
    let mut seat = Seat::take(&home, (80, 24), &[], &["list", "--watch"]);
    let empty = seat.sees("no tasks");
    assert!(seat.sees(ENTERED) <= empty);
    let gate = home.scratch().join("gate");
    assert!(std::process::Command::new("mkfifo").arg(&gate).status().unwrap().success());
    let id = home.submit(&["--name", "build"], "read x < gate; exit 3");
    let begun = seat.sees_after(empty, &id);
    seat.sees_after(empty, "build: read x");
    std::fs::write(gate, "go\n").unwrap();
    let _ = home.ended(&id);
    let ended = seat.sees_after(begun, "failed");
    home.kill(home.daemon_pid());
    let other = home.submit(&["--name", "later"], "exec sleep 1000");
    seat.sees_after(ended, &other);
    seat.sees_after(ended, "running");
    seat.press(b"q");
    ends_in_order("q", seat, 0);
}

#[test]
fn every_way_out_gives_the_terminal_back() {
    let home = super::home();
    let id = home.submit(&[], "exec sleep 1000");
    for (signal, code) in [("INT", 0), ("TERM", 143), ("HUP", 129), ("QUIT", 131)] {
        let seat = Seat::take(&home, (80, 24), &[], &["list", "--watch"]);
        seat.sees(&id);
        seat.signal(signal);
        ends_in_order(signal, seat, code);
    }
    // By keys, also behind one that holds the output of other programs.
    for (keys, code) in [(&b"\x03"[..], 0), (b"\x13\x03", 0), (b"\x1c", 131), (b"\x13q", 0)] {
        let mut seat = Seat::take(&home, (80, 24), &[], &["list", "-w"]);
        seat.sees(&id);
        seat.press(keys);
        ends_in_order(&format!("{keys:?}"), seat, code);
    }
}

#[test]
fn the_suspend_key_gives_the_terminal_back_for_as_long_as_the_command_is_stopped() {
    let home = super::home();
    let id = home.submit(&[], "exec sleep 1000");
    let mut seat = Seat::take(&home, (80, 24), &[], &["list", "-w"]);
    let drawn = seat.sees(&id);
    seat.press(b"\x1a");
    let left = seat.sees_after(drawn, LEFT);
    wait_for("the command to be stopped", || (seat.is_stopped() && !seat.is_raw()).then_some(()));
    seat.signal("CONT");
    let back = seat.sees_after(left, ENTERED);
    seat.sees_after(back, &id);
    seat.press(b"q");
    let (code, seen) = seat.ends();
    assert_eq!(code, 0);
    assert!(seen.ends_with(LEFT.as_bytes()), "{:?}", String::from_utf8_lossy(&seen));
}

#[test]
fn it_fits_the_terminal_also_after_that_was_resized() {
    let home = super::home();
    for _ in 0..6 {
        let _ = home.submit(&["--name", &"n".repeat(60)], "exec sleep 1000");
    }
    let mut seat = Seat::take(&home, (40, 5), &[], &["list", "--watch"]);
    let first = seat.sees("there are more; q or Ctrl-C ends this");
    let seen = String::from_utf8(seat.seen()[..first].to_vec()).unwrap();
    let frame = &seen[seen.rfind("\u{1b}[H").unwrap()..];
    assert_eq!(frame.matches("\r\n").count(), 4, "{frame:?}");
    seat.resize((120, 24));
    // Frames of the old size may come before, since tasks begin and get older; no name is whole in them.
    let wide = seat.sees_after(first, &"n".repeat(60));
    let seen = String::from_utf8(seat.seen()[..wide].to_vec()).unwrap();
    let frame = &seen[seen.rfind("\u{1b}[H").unwrap()..];
    assert!(frame.contains("AGE"), "{frame:?}");
    seat.sees_after(wide, "q or Ctrl-C ends this");
    seat.press(b"q");
    ends_in_order("q", seat, 0);
}

#[test]
fn what_cannot_be_drawn_on_is_refused_with_another_way() {
    let home = super::home();
    let _ = home.submit(&[], "true");
    for words in [&["list", "--watch"][..], &["list", "--watch", "--json"]] {
        let refused = home.cli(words);
        assert_eq!(refused.code, 2, "{}", refused.stderr);
        assert!(refused.stderr.contains("homing events -f"), "{}", refused.stderr);
        assert!(refused.stdout.is_empty());
    }
    let (code, seen) = Seat::take(&home, (80, 24), &[("TERM", "dumb")], &["list", "--watch"]).ends();
    assert_eq!(code, 2);
    assert!(!seen.contains(&0x1b), "{}", String::from_utf8_lossy(&seen));
}

#[test]
fn a_list_of_all_may_be_bounded() {
    let home = super::home();
    for _ in 0..3 {
        let _ = home.ended(&home.submit(&[], "true"));
    }
    let listed = |words: &[&str]| {
        let mut call = vec!["list", "--json"];
        call.extend(words);
        home.cli(call).ok().json()["items"].as_array().map(Vec::len)
    };
    assert_eq!((listed(&["--all"]), listed(&["--all", "--limit", "2"])), (Some(3), Some(2)));
}
