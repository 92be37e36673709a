//! A viewer whose terminal takes nothing, as after Ctrl-S in a terminal that knows it: it holds up nobody, can leave, and is right again when it
//! takes what there is.

use homing_testkit::wait_for;

use super::seat::Seat;

/// A shell without an echo that carries out what is typed.
const SHELL: &str = "stty -echo; echo ready; while read -r line; do eval \"$line\"; done; exit 3";

fn attached(home: &homing_testkit::Home, id: &str) -> Seat {
    let seat = Seat::take(home, (80, 24), &[], &["attach", id]);
    let _ = seat.sees("ready");
    wait_for("the terminal to be taken", || seat.is_raw().then_some(()));
    seat
}

#[test]
fn a_viewer_whose_terminal_is_stopped_holds_up_nobody_and_is_right_when_it_goes_on() {
    let home = super::home();
    let id = home.submit(&["--pty"], SHELL);
    let (stopped, mut other) = (attached(&home, &id), attached(&home, &id));
    stopped.holds_output(true);
    // Far more than lies anywhere between the task and a terminal.
    other.press(b"seq 1 300000; echo all-of-it\r");
    let printed = other.sees("all-of-it");
    other.press(b"printf '\\033[2J\\033[H'; echo the last words\r");
    let last = other.sees_after(printed, "the last words");
    stopped.holds_output(false);
    let _ = stopped.sees("the last words");
    wait_for("the same screen as the other's", || (stopped.screen() == other.screen()).then_some(()));
    assert_eq!(stopped.screen().lines().next(), Some("the last words"));
    // Not beside what the other was given: that may have missed much of it too.
    assert!(stopped.seen().len() < home.output(&id).len(), "what it missed was not sent afterwards");
    // And it is one that can be typed in.
    let mut stopped = stopped;
    stopped.press(b"echo typed $((6*7))\r");
    let _ = other.sees_after(last, "typed 42");
    let _ = stopped.sees("typed 42");
    other.press(b"exit 5\r");
    assert_eq!((stopped.ends().0, other.ends().0), (5, 5));
}

#[test]
fn who_cannot_be_shown_anything_leaves_by_the_detach_keys_and_by_a_signal() {
    let home = super::home();
    let id = home.submit(&["--pty"], SHELL);
    let mut other = attached(&home, &id);
    let mut begun = 0;
    for leaves in ["keys", "signal"] {
        let mut stopped = attached(&home, &id);
        stopped.holds_output(true);
        other.press(format!("seq 1 100000; echo all-of-it-{leaves}\r").as_bytes());
        begun = other.sees_after(begun, &format!("all-of-it-{leaves}"));
        other.press(b"printf '\\033[2J\\033[Hready\\n'\r");
        begun = other.sees_after(begun, "ready");
        match leaves {
            "keys" => stopped.press(b"\x1c"),
            _ => stopped.signal("TERM"),
        }
        assert_eq!(stopped.ends().0, if leaves == "keys" { 0 } else { 143 });
    }
    let _ = home.until_status(&id, "running");
    other.press(b"exit 5\r");
    assert_eq!(other.ends().0, 5);
}
