//! Programs that people sit in front of, on a task's terminal: attached to, typed into, seen, and again after the daemon was killed.

use homing_testkit::{Home, wait_for};

use super::seat::Seat;

/// One of them. What is typed before the death, after it, and by whoever attaches anew; each with what is seen of it then.
struct Program {
    line: &'static str,
    name: &'static str,
    begins: &'static str,
    turns: [(&'static str, &'static str); 3],
    leaves: (&'static str, i32),
}

const BASH: Program = Program {
    name: "bash",
    line: "exec env PS1='ready> ' bash --norc --noprofile -i",
    begins: "ready>",
    turns: [("echo $((6*7)).\r", "42."), ("echo $((6*8)).\r", "48."), ("echo $((6*9)).\r", "54.")],
    leaves: ("exit 5\r", 5),
};

const PYTHON: Program = Program {
    name: "python3",
    line: "exec python3 -q",
    begins: ">>>",
    turns: [("6*7001\r", "42006"), ("6*8001\r", "48006"), ("6*9001\r", "54006")],
    leaves: ("exit(5)\r", 5),
};

const TOP: Program = Program {
    name: "top",
    line: "exec top -d 1",
    begins: "PID",
    turns: [("?", "Help for Interactive"), ("q", "load average"), ("1", "%Cpu0")],
    leaves: ("q", 0),
};

fn is_there(name: &str) -> bool {
    let found = std::process::Command::new("sh").args(["-c", &format!("command -v {name}")]).output();
    found.is_ok_and(|found| found.status.success())
}

fn attached(home: &Home, id: &str) -> Seat {
    let seat = Seat::take(home, (80, 24), &[], &["attach", id]);
    wait_for("the terminal to be taken", || seat.is_raw().then_some(()));
    seat
}

/// Waits until it is on the screen now, which is less than that it was ever written.
fn shows(seat: &Seat, text: &str) {
    homing_testkit::wait_until(&format!("{text:?} on the screen"), homing_testkit::PATIENCE, || {
        let screen = seat.screen();
        if screen.contains(text) { Ok(()) } else { Err(screen) }
    });
}

fn goes_through_the_death_of_the_daemon(program: &Program) {
    if !is_there(program.name) {
        return;
    }
    let home = super::home();
    let id = home.submit(&["--pty", "--env", "TERM=xterm-256color"], program.line);
    let mut seat = attached(&home, &id);
    shows(&seat, program.begins);
    let [first, second, third] = program.turns;
    seat.press(first.0.as_bytes());
    shows(&seat, first.1);
    let process = home.task(&id)["pid"].clone();
    let seen = seat.seen().len();
    let old = home.kill_daemon();
    let _ = home.next_daemon(old);
    // Who was attached is so again, by itself, and is shown the whole screen. What is typed before it has noticed may not arrive.
    let _ = seat.sees_after(seen, first.1);
    seat.press(second.0.as_bytes());
    shows(&seat, second.1);
    // Who attaches anew sees the same, and types into it.
    let mut again = attached(&home, &id);
    shows(&again, second.1);
    again.press(third.0.as_bytes());
    for seat in [&again, &seat] {
        shows(seat, third.1);
    }
    assert_eq!(home.task(&id)["pid"], process, "it did not notice");
    seat.press(b"\x1c");
    assert_eq!(seat.ends().0, 0);
    again.press(program.leaves.0.as_bytes());
    assert_eq!(again.ends().0, program.leaves.1);
    assert_eq!(home.ended(&id)["outcome"]["exit_code"], program.leaves.1);
}

#[test]
fn p3_a_shell_is_typed_into_before_and_after_the_daemon_was_killed() {
    goes_through_the_death_of_the_daemon(&BASH);
}

#[test]
fn p3_a_repl_is_typed_into_before_and_after_the_daemon_was_killed() {
    goes_through_the_death_of_the_daemon(&PYTHON);
}

#[test]
fn p3_top_is_looked_at_before_and_after_the_daemon_was_killed() {
    goes_through_the_death_of_the_daemon(&TOP);
}
