//! The line that shows that a task goes on: only where somebody looks, and gone before anything else is printed.

use super::seat::Seat;

const CLEAR: &str = "\r\u{1b}[K";

/// A line that waits for gates, each opened once, so that a test decides when the task goes on. A second reader of one gate could find its first
/// writer still there, and go through.
fn gated(home: &homing_testkit::Home, line: &str) -> String {
    for gate in ["gate1", "gate2"] {
        assert!(
            std::process::Command::new("mkfifo")
                .arg(home.scratch().join(gate))
                .status()
                .expect("a gate")
                .success()
        );
    }
    line.replace("GATE1", "read x < gate1").replace("GATE2", "read x < gate2")
}

fn open(home: &homing_testkit::Home, gate: &str) {
    std::fs::write(home.scratch().join(gate), "go\n").expect("a gate");
}

#[test]
fn a_wait_shows_the_time_and_the_progress_and_leaves_nothing_behind() {
    let home = super::home();
    let program = home.program().display().to_string();
    let line = gated(&home, &format!("'{program}' progress 40 linking; GATE1; exit 3"));
    let seat = Seat::take(&home, (60, 24), &[], &["run", "--wait", "-c", &line]);
    seat.sees("40 % linking");
    open(&home, "gate1");
    let (code, seen) = seat.ends();
    let seen = String::from_utf8(seen).unwrap();
    assert_eq!(code, 3);
    let last = seen.rfind(CLEAR).unwrap();
    let (_, end) = seen.split_at(last + CLEAR.len());
    assert!(end.starts_with("\u{1b}[31mhoming:") || end.starts_with("homing: t-"), "{end:?}");
    for frame in seen.split(CLEAR).skip(1) {
        let shown = homing_model::sanitize::line(frame.lines().next().unwrap_or_default());
        assert!(shown.chars().count() < 60 || frame.contains("homing:"), "{shown}");
    }
}

#[test]
fn output_takes_its_place_and_a_question_is_left_alone() {
    let home = super::home();
    let line = gated(&home, "echo one; GATE1; printf 'name? '; GATE2; echo; echo two");
    let seat = Seat::take(&home, (60, 24), &[], &["exec", "-c", &line]);
    let first = seat.sees("one\r\n");
    let turning = seat.sees_after(first, "running");
    open(&home, "gate1");
    let asked = seat.sees_after(turning, "name? ");
    let seen = String::from_utf8(seat.seen()).unwrap();
    assert!(seen[..asked].ends_with(&format!("{CLEAR}name? ")), "{seen:?}");
    open(&home, "gate2");
    let (code, seen) = seat.ends();
    assert_eq!(code, 0);
    // After the end of a line it may show again, where the machine has no time for the next one.
    let rest = String::from_utf8_lossy(&seen[asked..]);
    assert!(rest.starts_with("\r\n"), "nothing was drawn beside the question: {rest:?}");
    assert!(rest.contains("two\r\n"), "{rest:?}");
}

#[test]
fn nothing_turns_where_nobody_looks() {
    let home = super::home();
    for variables in [&[("TERM", "dumb")][..], &[("CI", "true")]] {
        let seat = Seat::take(&home, (60, 24), variables, &["run", "--wait", "-c", "sleep 1.2"]);
        let (code, seen) = seat.ends();
        assert_eq!(code, 0);
        assert!(!seen.contains(&0x1b), "{variables:?}: {}", String::from_utf8_lossy(&seen));
    }
    let piped = home.cli(["run", "--wait", "-c", "sleep 1.2"]).ok();
    assert_eq!(piped.stderr, "");
}

#[test]
fn without_colours_the_line_has_none() {
    let home = super::home();
    let line = gated(&home, "GATE1");
    let seat = Seat::take(&home, (60, 24), &[("NO_COLOR", "1")], &["run", "--wait", "-c", &line]);
    let _ = seat.sees("running");
    open(&home, "gate1");
    let (code, seen) = seat.ends();
    let seen = String::from_utf8(seen).unwrap();
    assert_eq!(code, 0);
    assert!(seen.contains("running") && !seen.replace("\u{1b}[K", "").contains('\u{1b}'), "{seen:?}");
}

#[test]
fn who_is_ended_politely_takes_the_line_away_first() {
    let home = super::home();
    for (signal, code) in [("TERM", 143), ("HUP", 129)] {
        let seat = Seat::take(&home, (60, 24), &[], &["run", "--wait", "-c", "exec sleep 600"]);
        let _ = seat.sees("running");
        seat.signal(signal);
        let (left, seen) = seat.ends();
        let seen = String::from_utf8(seen).unwrap();
        assert_eq!(left, code, "{signal}");
        let (_, after) = seen.rsplit_once(CLEAR).expect("a line that was taken away");
        assert!(after.starts_with("homing: t-") && after.contains(" goes on; "), "{signal}: {seen:?}");
        assert!(!after.contains("running"), "{signal}: {seen:?}");
    }
    let running = home.cli(["list", "--status", "running", "--json"]).ok().json();
    assert_eq!(running["items"].as_array().map(Vec::len), Some(2), "the tasks go on");
}
