//! The picture of the panel: `homing ui` on a terminal, with tasks of every kind, in docs/panel.svg.
//!
//! `cargo xtask record` draws it. The test looks at the panel again and compares what a reader of the picture reads.

use std::time::Duration;

use homing_testkit::{Home, PATIENCE, wait_until};

use super::screen::{self, Row};
use super::{fits, picture, svg};
use crate::seat::Seat;

const PICTURE: &str = "docs/panel.svg";

const COLUMNS: u16 = 90;
const ROWS: u16 = 19;

/// What must be seen before the picture is taken: the last line of each task, and the output of the one that is looked at.
const SEEN: &[&str] = &[
    "waits for input",
    "40%",
    "listening on 127.0.0.1",
    "1 failed, 41 passed",
    "no problems",
    "unused variable",
    "homing-engine v0.1.0",
    "▌",
];

/// What each task runs, as a file, so that the list shows how it would be called.
const SCRIPTS: &[(&str, &str)] = &[
    ("lint.sh", "sleep 0.1; echo 'no problems'"),
    ("check.sh", "sleep 0.1; echo '1 failed, 41 passed'; exit 2"),
    ("serve.sh", "echo 'listening on 127.0.0.1:8080'; sleep 600"),
    ("ship.sh", "read -p 'Deploy to production? ' answer"),
    (
        "build.sh",
        r"printf '\033[1;32m   Compiling\033[0m %s v0.1.0\n' homing-model homing-store homing-shim homing-engine
          printf '\033[1;33mwarning\033[0m: unused variable\n' >&2
          sleep 600",
    ),
];

fn tasks(home: &Home) {
    for (name, script) in SCRIPTS {
        std::fs::write(home.scratch().join(name), script).expect("a file");
    }
    let submit = |name: &str, options: &[&str]| {
        home.submit(&[&["--name", name], options].concat(), &format!("bash {name}.sh"))
    };
    for name in ["lint", "check"] {
        let _ = home.ended(&submit(name, &[]));
    }
    for (name, options) in [("serve", &[][..]), ("ship", &["--pty"]), ("build", &[])] {
        let _ = home.until_status(&submit(name, options), "running");
    }
    let _ = home.cli(["progress", "--task", "build", "40"]).ok();
}

/// What the panel shows once all is there.
fn look(home: &Home) -> Vec<Row> {
    let mut seat = Seat::take(home, (COLUMNS, ROWS), &[], &["ui", "--theme", "dark"]);
    let rows = wait_until("the panel with everything in it, as the picture has it", PATIENCE, || {
        let mut terminal =
            vt100::Parser::new(ROWS.try_into().expect("a size"), COLUMNS.try_into().expect("a size"), 0);
        terminal.process(&seat.seen());
        let rows = |number| Row { at: Duration::ZERO, pieces: screen::pieces(terminal.screen(), number) };
        let rows: Vec<_> = (0..ROWS).map(rows).collect();
        let text = screen::text(&rows);
        // What was written so far may end in the middle of a frame.
        let whole = SEEN.iter().all(|part| text.contains(part)) && fits(PICTURE, &text);
        if whole { Ok(rows) } else { Err(text) }
    });
    seat.press(b"q");
    assert_eq!(seat.ends().0, 0);
    rows
}

#[test]
fn the_picture_of_the_panel_shows_the_panel() {
    let home = crate::home();
    tasks(&home);
    let rows = look(&home);
    let alt = "The panel of homing, drawn by `cargo xtask record` from a terminal";
    picture(PICTURE, &screen::text(&rows), || svg::draw(&rows, COLUMNS, alt));
}
