//! How an attachment ends: what was typed before it, and who was told by it.

use homing_testkit::{Home, freeze, gate, wait_for};

use super::seat::Seat;

/// How many entries an owner has, held or not; asked by nobody in particular.
fn open_entries(home: &Home, owner: &str) -> u64 {
    let owners = home.get("/v1/inbox").json();
    let found = owners["items"].as_array().expect("a list").iter().find(|one| one["owner"] == owner);
    found.map_or(0, |one| one["open"].as_u64().expect("a number"))
}

#[test]
fn p6_an_end_that_its_owner_saw_by_being_attached_was_told() {
    let home = super::home();
    for (attached, left) in [("ann", 0), ("bob", 1)] {
        let id = home.submit(&["--pty", "--owner", "ann"], &format!("echo up; {}; exit 3", gate(attached)));
        let seat = Seat::take(&home, (80, 24), &[("HOMING_OWNER", attached)], &["attach", &id]);
        let _ = seat.sees("up");
        home.open(attached);
        let (code, _) = seat.ends();
        assert_eq!(code, 3);
        assert_eq!(open_entries(&home, "ann"), 1, "held, not gone");
        // The owner's next call says that it was heard.
        let items = home.cli(["inbox", "--owner", "ann", "--json"]).ok().json()["items"].clone();
        assert_eq!(items.as_array().map(Vec::len), Some(left), "{attached}: {items}");
        assert_eq!(open_entries(&home, "ann"), left as u64);
    }
}

#[test]
fn what_is_typed_just_before_the_detach_keys_arrives() {
    let home = super::home();
    let id = home.submit(&["--pty"], "stty -echo; echo up; cat > got");
    for number in 1..=5 {
        let mut seat = Seat::take(&home, (80, 24), &[], &["attach", &id]);
        let _ = seat.sees("up");
        wait_for("the terminal to be taken", || seat.is_raw().then_some(()));
        seat.press(format!("words {number}\r\x1c").as_bytes());
        let (code, _) = seat.ends();
        assert_eq!(code, 0);
    }
    wait_for("all that was typed", || {
        let got = std::fs::read_to_string(home.scratch().join("got")).unwrap_or_default();
        (got.lines().count() == 5 && got.ends_with("words 5\n")).then_some(())
    });
}

#[test]
fn what_was_under_way_when_the_daemon_died_is_not_sent_twice_and_that_is_said() {
    let home = super::home();
    let id = home.submit(&["--pty"], "stty -echo; echo up; cat > got");
    let mut seat = Seat::take(&home, (80, 24), &[], &["attach", &id]);
    let up = seat.sees("up");
    wait_for("the terminal to be taken", || seat.is_raw().then_some(()));
    let daemon = home.daemon_pid();
    freeze(daemon);
    seat.press(b"doubtful\r");
    wait_for("the viewer to have read it", || seat.was_read().then_some(()));
    home.kill_at_once(&[daemon]);
    let said = seat.sees_after(up, "the last 9 bytes typed may not have arrived");
    seat.press(b"certain\r");
    wait_for("what was typed afterwards", || {
        let got = std::fs::read_to_string(home.scratch().join("got")).unwrap_or_default();
        (got == "certain\n").then_some(())
    });
    seat.press(b"\x1c");
    let _ = seat.sees_after(said, "9 bytes that were typed may not have been read");
    assert_eq!(seat.ends().0, 0);
}

#[test]
fn a_daemon_that_stands_still_holds_up_neither_the_detach_keys_nor_a_signal() {
    let home = super::home();
    let id = home.submit(&["--pty"], "stty -echo; echo up; cat > got");
    for leaves in ["keys", "signal"] {
        let mut seat = Seat::take(&home, (80, 24), &[], &["attach", &id]);
        let _ = seat.sees("up");
        wait_for("the terminal to be taken", || seat.is_raw().then_some(()));
        let daemon = home.daemon_pid();
        freeze(daemon);
        // More, key by key, than a connection takes that nobody reads from.
        for _ in 0..600 {
            seat.press(b"x");
            wait_for("the viewer to have read it", || seat.was_read().then_some(()));
        }
        let code = match leaves {
            "keys" => {
                seat.press(b"\x1c");
                seat.ends().0
            }
            _ => {
                seat.signal("TERM");
                seat.ends().0
            }
        };
        assert_eq!(code, if leaves == "keys" { 0 } else { 143 });
        homing_testkit::thaw(daemon);
    }
}
