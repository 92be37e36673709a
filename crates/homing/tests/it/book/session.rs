//! The recorded session: the lines of docs/session.sh, typed on a terminal, and what came of them, in docs/session.svg.
//!
//! `cargo xtask record` records it. The test runs the lines again and compares what a reader of the picture reads.

use std::io::Read as _;
use std::process::{Command, Stdio};
use std::time::Instant;

use homing_testkit::{Home, left_out};

use super::screen::{self, Row};
use super::{picture, read, svg};

const COLUMNS: u16 = 84;
const ROWS: u16 = 60;
/// What whoever finds no daemon says on a terminal if the start of one takes longer than a moment.
const STARTING: &str = "homing: starting the daemon…";

/// The lines as they are typed, each behind a prompt.
fn script() -> String {
    let lines = read("docs/session.sh");
    let commands = lines.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    let typed = |line: &str| {
        format!(
            "printf '\\033[32m$\\033[0m \\033[1m%s\\033[0m\\n' '{}'\n{line}\n",
            line.replace('\'', r"'\''")
        )
    };
    format!("stty cols {COLUMNS} rows {ROWS}\n{}", commands.map(typed).collect::<String>())
}

/// Types them; none where there is no terminal to be had.
#[expect(clippy::disallowed_methods, reason = "a recording says when each line came")]
fn record(home: &Home) -> Option<Vec<Row>> {
    let file = home.scratch().join("session.sh");
    std::fs::write(&file, script()).expect("a file");
    let folder = home.program().parent().expect("a folder").display().to_string();
    let inherited = std::env::vars_os().find(|(name, _)| name == "PATH")?.1.into_string().ok()?;
    let mut terminal = Command::new("script");
    terminal.args(["-q", "-e", "-c"]).arg(format!("bash '{}'", file.display())).arg("/dev/null");
    terminal.current_dir(home.scratch()).stdin(Stdio::null()).stdout(Stdio::piped());
    terminal.env_clear().env("PATH", format!("{folder}:{inherited}")).env("HOME", home.scratch());
    terminal.envs([("LANG", "C.UTF-8"), ("TERM", "xterm-256color"), ("SHELL", "/bin/bash"), ("USER", "you")]);
    let mut child = terminal.spawn().ok()?;
    let mut stdout = child.stdout.take().expect("its output");
    let mut parser =
        vt100::Parser::new(ROWS.try_into().expect("a size"), COLUMNS.try_into().expect("a size"), 0);
    let mut rows: Vec<Row> = Vec::new();
    let (begun, mut buffer) = (Instant::now(), [0; 4096]);
    loop {
        let count = stdout.read(&mut buffer).expect("a file");
        if count == 0 {
            break;
        }
        parser.process(&buffer[..count]);
        for number in 0..ROWS {
            let pieces = screen::pieces(parser.screen(), number);
            let index = usize::from(number);
            if rows.len() == index {
                rows.push(Row { at: begun.elapsed(), pieces });
            } else if rows[index].pieces != pieces {
                rows[index] = Row { at: begun.elapsed(), pieces };
            }
        }
    }
    assert!(child.wait().expect("its end").success(), "the session ends well");
    // Told only where the start takes long.
    rows.retain(|row| row.text() != STARTING);
    let used = rows.iter().rposition(|row| !row.pieces.is_empty())? + 1;
    assert!(used < usize::from(ROWS), "the session is longer than its picture");
    rows.truncate(used);
    Some(rows)
}

#[test]
fn the_picture_of_the_session_shows_what_happens() {
    let home = Home::named(env!("CARGO_BIN_EXE_homing"), ".local/state/homing");
    let _ = home.cli(["daemon", "start"]).ok();
    let Some(rows) = record(&home) else {
        return left_out("the recorded session needs `script`");
    };
    let alt = "A terminal session with homing, recorded by `cargo xtask record`";
    picture("docs/session.svg", &screen::text(&rows), || svg::draw(&rows, COLUMNS, alt));
}
